"""Every cure of `stoker explain` and `stoker check SCRIPT` is in the terms of what the user has, and works when pasted."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cures import Cures
from test_status_jobs import Cluster

RECORDS = "source of stoker"


def cures_of(explained: str) -> Iterator[tuple[str, str]]:
    """The cures and the command of an explanation."""
    diagnosis = json.loads(explained)["diagnosis"]
    yield diagnosis["cure"] or "", diagnosis["confirm"] or ""
    for each in diagnosis["also"]:
        yield each["cure"], ""


def rules(stoker) -> list[dict]:
    listed = json.loads(stoker("explain", "--rules", "--json", code=0).out)["rules"]
    return [rule for rule in listed if rule["kind"] != "noise" and rule["example"]]


def check_all(stoker, tmp_path: Path, log: Path, command: tuple, *, script: bool, job_file: bool, env=None) -> None:
    cures = Cures(stoker, tmp_path)
    for rule in rules(stoker):
        lines = [line for line in rule["example"].split("\n") if line]
        for line in lines if command == ("train.log",) else lines[:1]:
            log.write_text(line + "\n")
            done = stoker("explain", *command, "--json", env=env or {})
            for cure, confirm in cures_of(done.out):
                # Lines of Stoker itself are about runs of job files.
                cures.add(cure, script=script, job_file=job_file or rule["origin"] == RECORDS)
                assert "SCRIPT" not in confirm and "{" not in confirm, (rule["rule"], confirm)
                if confirm:
                    cures.add_code(confirm)
    cures.check()


def test_cures_for_logs(stoker, tmp_path: Path):
    check_all(stoker, tmp_path, tmp_path / "train.log", ("train.log",), script=True, job_file=False)


def test_cures_for_batch_scripts(stoker, tmp_path: Path):
    cluster = Cluster(tmp_path / "slurm")
    log = tmp_path / "slurm-7.out"
    cluster.job("FAILED", "ExitCode=1:0", log)
    check_all(stoker, tmp_path, log, ("7",), script=True, job_file=False, env=cluster.env)


@pytest.fixture
def failed_run(stoker) -> Path:
    """The log of the only rank."""
    (stoker.folder / "job.yaml").write_text("name: x\nrun: {shell: exit 7}\n")
    stoker("run", "job.yaml", code=7)
    (log,) = (stoker.folder / "runs").glob("*/attempts/1/rank-0000.log")
    return log


def test_cures_for_runs_of_this_machine(stoker, tmp_path: Path, failed_run: Path):
    check_all(stoker, tmp_path, failed_run, ("last",), script=False, job_file=True)


def test_cures_for_submitted_job_files(stoker, tmp_path: Path, failed_run: Path):
    events = failed_run.parent / "events-node-0000.jsonl"
    started, *rest = events.read_text().splitlines()
    events.write_text("\n".join([json.dumps(json.loads(started) | {"scheduler_job": "7"}), *rest]) + "\n")
    cluster = Cluster(tmp_path / "slurm")
    cluster.job("FAILED", "ExitCode=7:0")
    failed_run.write_text("srun: error: n2: task 1: Out Of Memory\n")
    explained = stoker("explain", "last", "--json", env=cluster.env).out
    assert "`resources: {memory_per_node: 64GiB}`" in json.loads(explained)["diagnosis"]["cure"]
    check_all(stoker, tmp_path, failed_run, ("last",), script=False, job_file=True, env=cluster.env)


def test_fixes_for_findings_in_scripts(stoker, tmp_path: Path):
    """A fix is a line, perhaps with a remark in parentheses, or a sentence with its code in backticks."""
    cures = Cures(stoker, tmp_path)
    listed = json.loads(stoker("check", "--rules", "--json", code=0).out)["rules"]
    fixes = 0
    for rule in listed:
        if not rule["example"]:  # of a site
            continue
        (tmp_path / "bad.sbatch").write_text(rule["example"])
        done = stoker("check", "bad.sbatch", "--site", "none", "--json")
        for finding in json.loads(done.out)["findings"] if done.out else ():
            fix = finding["fix"] or ""
            if finding["rule"] != rule["rule"] or not fix:
                continue
            fixes += 1
            if "`" in fix:
                cures.add(fix, script=True, job_file=True)
            else:
                # A changed line may be a part of a longer command.
                cures.add_code(fix.split("    (")[0].removesuffix("; do").removesuffix("; then").removeprefix("if "))
    assert fixes >= 60
    cures.pieces["shell"] -= {code for code in cures.pieces["shell"] if code.startswith("for ")}
    cures.check()
