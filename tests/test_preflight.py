"""stoker check JOB: what can be known without a queue, in two seconds: room, quotas, files, ports, limits, the last run."""

import json
import resource
import socket
import subprocess
import time
from pathlib import Path

import pytest


def check(stoker, folder: Path, text: str, *words: str, **options) -> dict:
    (folder / "job.yaml").write_text(text)
    return json.loads(stoker("check", "job.yaml", "--json", *words, **options).out)


def found(value: dict) -> dict[str, dict]:
    return {finding["rule"]: finding for finding in value["findings"]}


def fact(value: dict, name: str) -> str:
    (text,) = [each["text"] for each in value["facts"] if each["name"] == name]
    return text


def test_room_is_told_in_bytes_and_files(stoker, tmp_path):
    value = check(stoker, tmp_path, "run: 'true'\n")
    assert fact(value, "room").startswith("runs: ")
    assert value["ready"] is True


@pytest.mark.needs("mount")
def test_a_disk_with_little_room_loses_the_job(stoker, tmp_path, tmpfs):
    small = tmpfs("2m")
    value = check(stoker, tmp_path, f"run: 'true'\nrecord: {{directory: {small}/runs}}\n", code=1)
    finding = found(value)["little-room"]
    assert finding["what"].startswith("record.directory: 2.")
    assert finding["what"].endswith(" MB left on the disk, and the records of a run want some 64.0 MB")
    assert finding["cure"] == "record: {directory: another place}"


@pytest.mark.needs("mount")
def test_a_disk_with_few_files_left_loses_the_job(stoker, tmp_path, tmpfs):
    few = tmpfs("100m,nr_inodes=20")
    value = check(stoker, tmp_path, f"run: 'true'\nrecord: {{directory: {few}/runs}}\n", code=1)
    what = found(value)["few-files"]["what"]
    assert what.endswith(" files left on the disk, and the run makes about 25")


@pytest.mark.needs("mount")
def test_checkpoints_that_do_not_fit_are_counted_before_the_run(stoker, tmp_path, tmpfs, example_dataset):
    small = tmpfs("400m")
    job = (
        "train: {model: resnet50}\n"
        f"data: {{train: {{source: {example_dataset}, split: train}}}}\n"
        f"checkpoint: {{directory: {small}/saves, keep: 3}}\n"
    )
    value = check(stoker, tmp_path, job, code=1)
    finding = found(value)["no-room-for-checkpoints"]
    # 23.58 million numbers, and as many of the optimizer.
    assert finding["what"].startswith(
        "checkpoint.directory: 4 checkpoints of 189 MB are expected (of resnet50 with sgd), and 4"
    )
    assert finding["cure"] == "checkpoint: {keep: 1}"
    # Two fit: the kept one and the one being written.
    assert "no-room-for-checkpoints" not in found(check(stoker, tmp_path, job, "--set", "checkpoint.keep=1"))
    assert fact(check(stoker, tmp_path, job), "saves").startswith("4 x 189 MB expected (of resnet50 with sgd), ")


def test_files_that_are_brought_to_the_nodes_are_looked_for(stoker, tmp_path):
    (tmp_path / "here.tar").write_bytes(b"")
    value = check(
        stoker,
        tmp_path,
        "run: 'true'\nstage: {unpack: [here.tar, gone.tar], copy: [lists]}\n",
        code=1,
    )
    assert [finding["what"] for finding in value["findings"]] == [
        f"stage.unpack: {tmp_path}/gone.tar: no such file",
        f"stage.copy: {tmp_path}/lists: no such file",
    ]
    assert [finding["where"] for finding in value["findings"]] == ["job.yaml:2:17", "job.yaml:2:45"]
    assert fact(value, "stage") == "1 source to every node"


def test_a_port_is_free_and_one_that_is_fixed_is_told(stoker, tmp_path):
    value = check(stoker, tmp_path, "run: 'true'\nsite: none\n")
    assert fact(value, "port") == "a free one is found below the ports of outgoing connections"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        value = check(
            stoker, tmp_path, f"run: 'true'\nsite: none\nenvironment: {{variables: {{MASTER_PORT: {port}}}}}\n"
        )
    assert found(value)["fixed-port"]["what"] == (
        f"environment.variables.MASTER_PORT: of two jobs on one node the second finds {port} taken"
    )


def test_a_port_outside_of_what_the_site_lets_through_loses_the_job(stoker, tmp_path):
    sites = tmp_path / "config/stoker/sites"
    sites.mkdir(parents=True)
    (sites / "ours.yaml").write_text(
        "name: ours\nwhat: a cluster\nsources: {page: {url: 'https://example.org', date: 2026-04-18}}\n"
        "network: {first_port: 21000, last_port: 21999, from: page}\n"
    )
    env = {"XDG_CONFIG_HOME": tmp_path / "config", "HOME": tmp_path}
    job = "run: 'true'\nsite: ours\n"
    assert fact(check(stoker, tmp_path, job, env=env), "port") == "a free one is found in 21000-21999 (site ours)"
    job += "environment: {variables: {MASTER_PORT: 29500}}\n"
    finding = found(check(stoker, tmp_path, job, env=env, code=1))["port-range"]
    assert finding["what"] == (
        "environment.variables.MASTER_PORT: 29500 is not one of 21000-21999 (site ours), which the nodes let through"
    )


def test_limits_of_the_shell_that_go_along_into_a_job_are_told(stoker, tmp_path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (600, resource.getrlimit(resource.RLIMIT_CPU)[1]))

    value = check(stoker, tmp_path, "run: 'true'\n", preexec_fn=limit, code=1)
    finding = found(value)["shell-limit"]
    assert finding["what"] == "ulimit -t: CPU seconds, after which a process is killed: 600 s"
    assert finding["where"] == "here"
    assert finding["cure"] == "ulimit -t unlimited"


def test_a_shell_command_is_told_which_tool_fits(stoker, tmp_path):
    job = "run: {shell: 'for s in 1 2 3 4; do python3 train.py --seed $s; done'}\n"
    finding = found(check(stoker, tmp_path, job))["fitting-tool"]
    assert (finding["level"], finding["where"]) == ("advice", "job.yaml:1:14")
    assert finding["what"].startswith(
        "run.shell: 4 runs one after the other: an array runs them on as many nodes as are free"
    )
    assert finding["cure"] == "array: {over: values.csv, at_once: 20}, and ${params.NAME} in run"
    alone = found(check(stoker, tmp_path, "run: {shell: 'python3 train.py | tee log'}\n"))
    assert "fitting-tool" not in alone


def test_data_that_are_no_longer_those_of_the_last_run_are_told(stoker, tmp_path, own_dataset, photos):
    job = f"name: again\nrun: 'true'\ndata: {{train: {{source: {own_dataset}, split: train}}}}\n"
    (tmp_path / "job.yaml").write_text(job)
    stoker("run", "job.yaml", code=0)
    assert "data-changed" not in found(check(stoker, tmp_path, job))
    stoker("data", "pack", photos, tmp_path / "other", code=0)
    other = f"name: again\nrun: 'true'\ndata: {{train: {{source: {tmp_path}/other}}}}\n"
    finding = found(check(stoker, tmp_path, other))["data-changed"]
    assert finding["level"] == "advice"
    assert ", and the last run of this name had " in finding["what"]
    assert finding["cure"] == f"stoker data diff {own_dataset} {tmp_path}/other"


def test_it_takes_two_seconds_at_most_beside_a_thousand_runs(stoker, tmp_path, example_dataset):
    job = f"name: many\nrun: 'true'\ndata: {{train: {{source: {example_dataset}, split: train}}}}\n"
    (tmp_path / "job.yaml").write_text(job)
    stoker("run", "job.yaml", code=0)
    (run,) = (tmp_path / "runs").iterdir()
    for i in range(1000):
        other = run.with_name(run.name.replace(run.name[:4], f"{1000 + i}", 1))
        subprocess.run(["cp", "-rl", run, other], check=True)
    best = 1e9
    for _ in range(5):
        started = time.monotonic()
        check(stoker, tmp_path, job)
        best = min(best, time.monotonic() - started)
    assert best < 2
