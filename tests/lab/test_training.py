"""The main job on a real cluster: trained on one, two and four nodes, killed, resumed to the same weights; a script of one's
own on two nodes."""

import json
import os
import shutil
import signal
import struct
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY
from labs import Lab, wait_until

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.timeout(600)]

JOB = """\
name: main-job
train: {{model: cifar-resnet20, epochs: {epochs}, batch: 16, seed: 3, optimizer: {{lr: 0.05}}}}
data:
  train: {{source: small, split: train}}
resources: {{nodes: {nodes}, ranks_per_node: 1, cpus_per_rank: 1, time: 10m}}
checkpoint: {{every: 5 steps, keep: 3}}
"""


@pytest.fixture
def project(lab: Lab, example_images: Path) -> Path:
    """A folder that all nodes see, with a small dataset: 16 images of each class, so 5 steps of two ranks an epoch."""
    folder = lab.shared / "project"
    for kind in sorted((example_images / "train").iterdir()):
        target = folder / "images/train" / kind.name
        target.mkdir(parents=True)
        for image in sorted(kind.iterdir())[:16]:
            shutil.copy(image, target)
    lab.stoker("data", "pack", "images", "small", cwd=folder)
    return folder


def submit(lab: Lab, project: Path, nodes: int, epochs: int) -> Path:
    """Submits the main job; its run folder."""
    (project / "job.yaml").write_text(JOB.format(nodes=nodes, epochs=epochs))
    return Path(json.loads(lab.stoker("submit", "job.yaml", "--json", cwd=project).out)["folder"])


def wait(lab: Lab, project: Path, run: Path, code: int = 0) -> str:
    return lab.stoker("wait", run, cwd=project, code=code, timeout=300).out


def weights(run: Path) -> dict[str, bytes]:
    """The tensors of the run's last checkpoint, by file and name."""
    last = max((run / "checkpoints").glob("step-*"), key=lambda step: int(step.name.removeprefix("step-")))
    found = {}
    for file in sorted(last.rglob("*.safetensors")):
        data = file.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        for name, entry in json.loads(data[8 : 8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[f"{last.name}/{file.parent.name}/{file.name}/{name}"] = data[
                    8 + length + begin : 8 + length + end
                ]
    assert found
    return found


def process_of_rank(run: Path, rank: int) -> int | None:
    wanted = {f"RANK={rank}", f"STOKER_RUN_DIR={run}"}
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or (entry / "comm").read_text() != "stoker-train\n":
                continue
            if wanted <= set((entry / "environ").read_bytes().decode(errors="replace").split("\0")):
                return int(entry.name)
        except OSError:
            continue
    return None


@pytest.mark.parametrize("nodes", [1, 4])
def test_trains_on_one_and_four_nodes(lab: Lab, project: Path, nodes: int):
    run = submit(lab, project, nodes, epochs=1)
    assert wait(lab, project, run) == f"run {run.name}: done\n"
    started = json.loads((run / "attempts/1/events-node-0000.jsonl").read_text().splitlines()[0])
    assert started["world_size"] == nodes
    assert len(list(run.glob("attempts/1/metrics-*.csv"))) == nodes


def test_a_rank_killed_on_the_second_node_is_resumed_to_the_weights_of_an_undisturbed_run(lab: Lab, project: Path):
    undisturbed = submit(lab, project, 2, epochs=4)
    wait(lab, project, undisturbed)

    run = submit(lab, project, 2, epochs=4)
    wait_until(lambda: list(run.glob("checkpoints/step-*")), "the first checkpoint", 120)
    victim = wait_until(lambda: process_of_rank(run, 1), "rank 1")
    os.kill(victim, signal.SIGKILL)
    said = wait(lab, project, run, code=137)
    assert "failed (rank 1 (n2) left at epoch" in said
    assert "killed by signal 9 (SIGKILL)" in said
    resumed = lab.stoker("resume", run, cwd=project).out
    assert "attempt 2, from the last valid checkpoint" in resumed
    assert wait(lab, project, run) == f"run {run.name}: done\n"
    assert weights(run) == weights(undisturbed)


def test_a_warning_of_the_end_is_a_checkpoint_from_which_the_run_goes_on(lab: Lab, project: Path):
    run = submit(lab, project, 2, epochs=40)
    job = json.loads(lab.stoker("status", run, "--json", cwd=project).out)["runs"][0]["job"]
    wait_until(lambda: list(run.glob("checkpoints/step-*")), "the first checkpoint", 120)
    lab.run("scancel", "--batch", "--signal=USR1", job)
    assert wait(lab, project, run, code=75) == f"run {run.name}: stopped (stopped after a checkpoint)\n"
    assert "valid" in lab.stoker("checkpoint", "list", run, cwd=project).out
    lab.stoker("resume", run, "--set", "train.epochs=40", cwd=project)
    wait_until(lambda: list(run.glob("attempts/2/metrics-0001.csv")), "attempt 2 trains", 120)
    lab.stoker("cancel", run, cwd=project)
    assert f"run {run.name}: cancelled" in wait(lab, project, run, code=None)


def test_a_script_of_one_s_own_trains_on_two_nodes(lab: Lab, project: Path):
    shutil.copy(REPOSITORY / "examples/pytorch/train.py", project)
    shutil.copytree(project / "images/train", project / "images/test")
    (project / "job.yaml").write_text(
        f"name: own\nrun: {sys.executable} train.py --data images --epochs 1 --batch 16 --steps 3\n"
        "resources: {nodes: 2, cpus_per_rank: 1}\n"
    )
    run = Path(json.loads(lab.stoker("submit", "job.yaml", "--json", cwd=project).out)["folder"])
    assert wait(lab, project, run) == f"run {run.name}: done\n"
    assert "epoch 1: loss" in (run / "attempts/1/rank-0000.log").read_text()
    ended = [
        line for line in (run / "attempts/1/events-node-0000.jsonl").read_text().splitlines() if "rank_ended" in line
    ]
    assert sorted(json.loads(line)["host"] for line in ended) == ["n1", "n2"]
