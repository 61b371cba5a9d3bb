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


def test_free_space_is_shown_in_bytes_and_files(stoker, tmp_path):
    value = check(stoker, tmp_path, "run: 'true'\n")
    assert fact(value, "space").startswith("runs: ")
    assert value["ready"] is True


@pytest.mark.needs("mount")
def test_low_disk_space_loses_the_job(stoker, tmp_path, tmpfs):
    small = tmpfs("2m")
    value = check(stoker, tmp_path, f"run: 'true'\nrecord: {{directory: {small}/runs}}\n", code=1)
    finding = found(value)["low-disk-space"]
    assert finding["what"].startswith("record.directory: 2.")
    assert finding["what"].endswith(" MB left on the disk, and the records of a run need about 64.0 MB")
    assert finding["cure"] == "record: {directory: a different folder}"


@pytest.mark.needs("mount")
def test_few_free_inodes_lose_the_job(stoker, tmp_path, tmpfs):
    few = tmpfs("100m,nr_inodes=20")
    value = check(stoker, tmp_path, f"run: 'true'\nrecord: {{directory: {few}/runs}}\n", code=1)
    what = found(value)["few-inodes"]["what"]
    assert what.endswith(" files left on the disk, and the run creates about 25")


@pytest.mark.needs("mount")
def test_checkpoints_without_space_are_reported_before_the_run(stoker, tmp_path, tmpfs, example_dataset):
    small = tmpfs("400m")
    job = (
        "train: {model: resnet50}\n"
        f"data: {{train: {{source: {example_dataset}, split: train}}}}\n"
        f"checkpoint: {{directory: {small}/saves, keep_last: 3}}\n"
    )
    value = check(stoker, tmp_path, job, code=1)
    finding = found(value)["no-space-for-checkpoints"]
    # 23.58 million numbers, and as many of the optimizer.
    assert finding["what"].startswith(
        "checkpoint.directory: 4 checkpoints of 189 MB expected (of resnet50 with sgd), 4"
    )
    assert finding["cure"] == "checkpoint: {keep_last: 1}"
    # Two fit: the kept one and the one being written.
    assert "no-space-for-checkpoints" not in found(check(stoker, tmp_path, job, "--set", "checkpoint.keep_last=1"))
    assert fact(check(stoker, tmp_path, job), "saves").startswith("4 x 189 MB expected (of resnet50 with sgd), ")


def test_staged_files_must_exist(stoker, tmp_path):
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


def test_fixed_ports_are_reported(stoker, tmp_path):
    value = check(stoker, tmp_path, "run: 'true'\nsite: none\n")
    assert fact(value, "port") == "chosen automatically at start, below the ephemeral port range"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        value = check(
            stoker, tmp_path, f"run: 'true'\nsite: none\nenvironment: {{variables: {{MASTER_PORT: {port}}}}}\n"
        )
    assert found(value)["fixed-port"]["what"] == (
        f"environment.variables.MASTER_PORT: a second job on the same node finds {port} in use"
    )


def test_a_port_outside_the_open_ports_of_the_site_loses_the_job(stoker, tmp_path):
    sites = tmp_path / "config/stoker/sites"
    sites.mkdir(parents=True)
    (sites / "ours.yaml").write_text(
        "name: ours\nwhat: a cluster\nsources: {page: {url: 'https://example.org', date: 2026-04-18}}\n"
        "network: {first_port: 21000, last_port: 21999, from: page}\n"
    )
    env = {"XDG_CONFIG_HOME": tmp_path / "config", "HOME": tmp_path}
    job = "run: 'true'\nsite: ours\n"
    assert (
        fact(check(stoker, tmp_path, job, env=env), "port")
        == "chosen automatically at start, in 21000-21999 (site ours)"
    )
    job += "environment: {variables: {MASTER_PORT: 29500}}\n"
    finding = found(check(stoker, tmp_path, job, env=env, code=1))["port-range"]
    assert finding["what"] == (
        "environment.variables.MASTER_PORT: 29500 is not in 21000-21999 (site ours), the open ports of the nodes"
    )


def test_shell_limits_that_a_job_inherits_are_reported(stoker, tmp_path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (600, resource.getrlimit(resource.RLIMIT_CPU)[1]))

    value = check(stoker, tmp_path, "run: 'true'\n", preexec_fn=limit, code=1)
    finding = found(value)["shell-limit"]
    assert finding["what"] == "ulimit -t: CPU seconds per process: 600 s"
    assert finding["where"] == "here"
    assert finding["cure"] == "ulimit -t unlimited"


def test_a_better_tool_for_a_shell_command_is_suggested(stoker, tmp_path):
    job = "run: {shell: 'for s in 1 2 3 4; do python3 train.py --seed $s; done'}\n"
    finding = found(check(stoker, tmp_path, job))["better-tool"]
    assert (finding["level"], finding["where"]) == ("advice", "job.yaml:1:14")
    assert finding["what"].startswith("run.shell: 4 sequential runs: an array uses all free nodes")
    assert finding["cure"] == "array: {over: values.csv, at_once: 20}, and ${params.NAME} in run"
    alone = found(check(stoker, tmp_path, "run: {shell: 'python3 train.py | tee log'}\n"))
    assert "better-tool" not in alone


def test_launchers_that_do_not_add_up_lose_the_job(stoker, tmp_path):
    job = "run: {shell: 'torchrun --nproc-per-node 4 train.py'}\nresources: {ranks_per_node: 2}\n"
    finding = found(check(stoker, tmp_path, job, code=1))["agent-per-task"]
    assert (finding["level"], finding["where"]) == ("job", "job.yaml:1:14")
    finding = found(check(stoker, tmp_path, "run: accelerate launch t.py\nresources: {nodes: 2}\n", code=1))[
        "separate-trainings"
    ]
    assert finding["what"] == (
        "run: Stoker starts 2 copies of accelerate, and each one trains separately (--num_machines is 1)"
    )
    assert finding["cure"] == "run: python t.py    resources: {nodes: 2, ranks_per_node: 1}"


OWN_CHECKPOINTS = "import os\nfor epoch in range(3):\n    torch.save(state, 'ckpt/last.pt')\n"


def test_a_script_that_saves_to_its_own_folder_is_reported(stoker, tmp_path):
    def saving(job: str, **files: str) -> dict | None:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        return found(check(stoker, tmp_path, job, code=None)).get("own-checkpoints")

    finding = saving("run: python3 own.py\n", own=OWN_CHECKPOINTS)
    assert (finding["level"], finding["where"]) == ("time", "job.yaml:1:6")
    assert finding["what"] == (
        "run: torch.save in own.py:3 saves to a separate folder: Stoker finds no checkpoint there, and a resumed or "
        "requeued run starts at the beginning"
    )
    assert saving("run: {shell: 'cd . && python3 own.py'}\n")["where"] == "job.yaml:1:14"
    assert saving("run: torchrun own.py\n")
    # In a module of the project, and in a comment.
    assert saving("run: python3 main.py\n", main="import saver\n", saver="def save():\n    torch.save(1, 'a')\n")
    assert not saving("run: python3 note.py\n", note="# torch.save(state, 'a')\nprint(1)\n")
    # The folder comes from Stoker: in the script, in its modules, or in its arguments.
    assert not saving("run: python3 good.py\n", good=OWN_CHECKPOINTS + "folder = os.environ['STOKER_CHECKPOINT_DIR']\n")
    assert not saving("run: python3 far.py\n", far="import near\n" + OWN_CHECKPOINTS, near="import stoker\n")
    assert not saving("run: {shell: 'python3 own.py --out $STOKER_CHECKPOINT_DIR'}\n")


def test_the_default_cores_of_slurm_are_shown(stoker, tmp_path):
    slurm_conf = tmp_path / "slurm.conf"
    slurm_conf.write_text("ClusterName=somewhere\n")
    env = {"SLURM_CONF": str(slurm_conf)}
    value = check(stoker, tmp_path, "run: 'true'\nresources: {nodes: 2, ranks_per_node: 4}\n", env=env)
    assert fact(value, "ranks").startswith("2 x 4 x 1 core, Slurm's default")
    finding = found(value)["default-cores"]
    assert finding["level"] == "time"
    assert finding["what"] == (
        "resources.cpus_per_rank: not set, and a submitted job gets 1 core per rank, Slurm's default"
    )
    assert finding["cure"].startswith("resources: {cpus_per_rank: ")
    value = check(stoker, tmp_path, "run: 'true'\nresources: {nodes: 2, cpus_per_rank: 3}\n", env=env)
    assert fact(value, "ranks").startswith("2 x 1 x 3 cores")
    assert "default-cores" not in found(value)
    # Without a queue, the cores of this machine count.
    assert "default-cores" not in found(check(stoker, tmp_path, "run: 'true'\n"))


def test_missing_imports_lose_the_job_if_they_are_certain(stoker, tmp_path):
    (tmp_path / "sure.py").write_text("import surely_not_there\n")
    (tmp_path / "later.py").write_text("def f():\n    import surely_not_there\n")
    (tmp_path / "path.py").write_text("import sys\nsys.path.append('lib')\nimport surely_not_there\n")
    (tmp_path / "main.py").write_text("if __name__ == '__main__':\n    import surely_not_there\n")
    (tmp_path / "hints.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import surely_not_there\n"
    )

    def level(run: str) -> str | None:
        finding = found(check(stoker, tmp_path, f"run: {run}\n", code=None)).get("no-import")
        return finding and finding["level"]

    assert level("python3 sure.py") == "job"
    assert level("{shell: 'exec python3 sure.py'}") == "job"
    assert level("python3 main.py") == "job"
    assert level("python3 later.py") == "advice"
    assert level("python3 path.py") == "advice"
    assert level("python3 hints.py") is None
    stoker("check", "job.yaml", "--set", "run=python3 sure.py", code=1)


def test_data_that_differ_from_the_last_run_are_reported(stoker, tmp_path, own_dataset, photos):
    job = f"name: again\nrun: 'true'\ndata: {{train: {{source: {own_dataset}, split: train}}}}\n"
    (tmp_path / "job.yaml").write_text(job)
    stoker("run", "job.yaml", code=0)
    assert "data-changed" not in found(check(stoker, tmp_path, job))
    stoker("data", "pack", photos, tmp_path / "other", code=0)
    other = f"name: again\nrun: 'true'\ndata: {{train: {{source: {tmp_path}/other}}}}\n"
    finding = found(check(stoker, tmp_path, other))["data-changed"]
    assert finding["level"] == "advice"
    assert "; the last run with this name used " in finding["what"]
    assert finding["cure"] == f"stoker data diff {own_dataset} {tmp_path}/other"


def test_check_takes_at_most_two_seconds_with_a_thousand_runs(stoker, tmp_path, example_dataset):
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
