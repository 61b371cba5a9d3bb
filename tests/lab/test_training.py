"""The main job on a real cluster: trained on one, two and four nodes, killed, resumed to the same weights; a script of one's
own on as many."""

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
import safetensors_files
from conftest import REPOSITORY
from lab_jobs import fault
from running import wait_until
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.timeout(600)]

JOB = """\
name: main-job
train: {{model: cifar-resnet20, epochs: {epochs}, batch: 16, seed: 3, optimizer: {{lr: 0.05}}}}
data:
  train: {{source: small, split: train}}
resources: {{nodes: {nodes}, ranks_per_node: 1, cpus_per_rank: 1, time: 10m}}
checkpoint: {{every: {every} steps, keep_last: 3}}
"""


@pytest.fixture
def project(runs: Runs, example_images: Path) -> Runs:
    """A folder that all nodes see, with a small dataset."""
    return copy_small_dataset(runs, example_images)


def copy_small_dataset(runs: Runs, example_images: Path) -> Runs:
    """16 images of each class, so 5 steps of two ranks an epoch."""
    for kind in sorted((example_images / "train").iterdir()):
        target = runs.folder / "images/train" / kind.name
        target.mkdir(parents=True)
        for image in sorted(kind.iterdir())[:16]:
            shutil.copy(image, target)
    runs.stoker("data", "pack", "images", "small")
    return runs


def submit(project: Runs, nodes: int, epochs: int, every: int = 5, more: str = "", **options) -> Path:
    """Submits the main job; its run folder."""
    (project.folder / "job.yaml").write_text(JOB.format(nodes=nodes, epochs=epochs, every=every) + more)
    return Path(json.loads(project.stoker("submit", "job.yaml", "--json", **options).out)["folder"])


def weights(run: Path) -> dict[str, bytes]:
    """The tensors of the run's last checkpoint, by file and name."""
    last = max((run / "checkpoints").glob("step-*"), key=lambda step: int(step.name.removeprefix("step-")))
    return {f"{last.name}/{name}": content for name, content in safetensors_files.tensors_of(last).items()}


def hosts_of(run: Path) -> list[str]:
    """The nodes whose ranks have ended."""
    events = map(json.loads, (run / "attempts/1/events-node-0000.jsonl").read_text().splitlines())
    return sorted(event["host"] for event in events if event["kind"] == "rank_ended")


@pytest.mark.soak
@pytest.mark.parametrize("nodes", [1, 4])
def test_trains_on_one_and_four_nodes(project: Runs, nodes: int):
    run = submit(project, nodes, epochs=1)
    assert project.wait(run) == f"run {run.name}: done\n"
    assert hosts_of(run) == [f"n{node + 1}" for node in range(nodes)]
    assert len(list(run.glob("attempts/1/metrics-*.csv"))) == nodes


def kill_rank_1_and_resume(project: Runs, undisturbed: Path, epochs: int, every: int) -> None:
    """On two nodes; the end has to be as that of the undisturbed run."""
    run = submit(project, 2, epochs, every)
    wait_until(lambda: list(run.glob("checkpoints/step-*")), "the first checkpoint", 120)
    (victim,) = wait_until(lambda: project.processes("stoker-train", node="n2"), "rank 1")
    os.kill(victim, signal.SIGKILL)
    output = project.wait(run, code=137)
    assert "failed (rank 1 (n2) exited at epoch" in output
    assert "killed by signal 9 (SIGKILL)" in output
    assert re.search(r"attempt 2, from \S+/checkpoints/step-\d+$", project.stoker("resume", run).out, re.MULTILINE)
    assert project.wait(run) == f"run {run.name}: done\n"
    assert weights(run) == weights(undisturbed)


def test_a_rank_killed_on_the_second_node_is_resumed_to_the_weights_of_an_undisturbed_run(project: Runs):
    undisturbed = submit(project, 2, epochs=2, every=2)
    project.wait(undisturbed)
    kill_rank_1_and_resume(project, undisturbed, epochs=2, every=2)


@pytest.mark.soak
def test_ten_kills_on_the_second_node_leave_no_trace_in_the_weights(project: Runs):
    undisturbed = submit(project, 2, epochs=8)
    project.wait(undisturbed)
    for _ in range(10):
        kill_rank_1_and_resume(project, undisturbed, epochs=8, every=5)


def test_a_time_limit_warning_saves_a_checkpoint_for_resume(project: Runs):
    run = submit(project, 2, epochs=40)
    job = project.status(str(run))["job"]
    wait_until(lambda: list(run.glob("checkpoints/step-*")), "the first checkpoint", 120)
    project.lab.run("scancel", "--batch", "--signal=USR1", job)
    assert project.wait(run, code=75) == f"run {run.name}: stopped (stopped after a checkpoint)\n"
    assert "valid" in project.stoker("checkpoint", "list", run).out
    project.stoker("resume", run)
    wait_until(lambda: list(run.glob("attempts/2/metrics-0001.csv")), "attempt 2 trains", 120)
    project.stoker("cancel", run)
    assert f"run {run.name}: cancelled" in project.wait(run, code=None)


@pytest.mark.parametrize("nodes", [pytest.param(1, marks=pytest.mark.soak), 2, pytest.param(4, marks=pytest.mark.soak)])
def test_a_script_of_one_s_own_trains_on_several_nodes(project: Runs, nodes: int):
    shutil.copy(REPOSITORY / "examples/pytorch/train.py", project.folder)
    shutil.copytree(project.folder / "images/train", project.folder / "images/test")
    (project.folder / "job.yaml").write_text(
        f"name: own\nrun: {sys.executable} train.py --data images --epochs 1 --batch 16 --steps 2\n"
        f"resources: {{nodes: {nodes}, cpus_per_rank: 1}}\n"
    )
    run = Path(json.loads(project.stoker("submit", "job.yaml", "--json").out)["folder"])
    assert project.wait(run) == f"run {run.name}: done\n"
    assert "epoch 1: loss" in (run / "attempts/1/rank-0000.log").read_text()
    assert hosts_of(run) == [f"n{node + 1}" for node in range(nodes)]


def wait_for_steps(run: Path, ranks: int) -> float:
    """Waits until every rank has reported two steps; returns the time."""
    metrics = [run / f"attempts/1/metrics-{rank:04}.csv" for rank in range(ranks)]
    wait_until(
        lambda: all(file.exists() and file.read_text().count("\n") > 2 for file in metrics), "all ranks train", 180
    )
    return time.monotonic()


def log_with(project: Runs, pattern: str) -> None:
    wait_until(lambda: re.search(pattern, project.batch_log(), re.MULTILINE), f"the log has {pattern}", 60)


PLACE = r"at epoch \d+ step \d+, phase \w+"


@pytest.mark.soak
@pytest.mark.needs("namespaces")
def test_a_link_cut_under_a_training_is_named_with_its_step_within_ten_seconds(project: Runs, firewall):
    run = submit(project, 3, epochs=400, every=1000)
    wait_for_steps(run, 3)
    firewall("n3", "n2")
    began = time.monotonic()
    log_with(
        project,
        rf"^rank [12] \(n[23]\) has been blocked for \d\.\d s {PLACE}: rank [12] \(n[23]\) acknowledges none of its packets, the link "
        r"between them is cut or blocked$",
    )
    assert time.monotonic() - began < 10
    assert project.status(str(run))["state"] == "running"
    project.stoker("cancel", run)
    project.wait(run, code=None)


@pytest.mark.soak
@pytest.mark.needs("namespaces")
def test_a_node_cut_off_under_a_training_ends_it_with_its_step(project: Runs):
    run = submit(project, 2, epochs=400, every=1000, more="restart: {node_failed: 0}\n")
    report = wait_for_steps(run, 2)
    # Each rank reports its position once a second, until it is disconnected.
    wait_until(lambda: time.monotonic() - report > 2.5, "the run knows the position of rank 1")
    fault(project.lab, "cut", "n2")
    output = project.wait(run, code=1)
    assert re.search(
        rf"rank 1 \(n2\) sent no heartbeat for [\d.]+ s {PLACE}, and its host acknowledges no packets", output
    )


@pytest.mark.soak
def test_a_frozen_rank_on_the_second_node_is_named_with_its_step_within_ten_seconds(project: Runs):
    run = submit(project, 2, epochs=400, every=1000)
    wait_for_steps(run, 2)
    fault(project.lab, "freeze", project.status(str(run))["job"], "--rank", "1")
    began = time.monotonic()
    log_with(
        project, rf"^rank 1 \(n2\) has been stopped by a signal \(state T\) for [\d.]+ s {PLACE}; the run ends after"
    )
    assert time.monotonic() - began < 10
    assert re.search(
        rf"rank 1 \(n2\) was stopped by a signal \(state T\) for [\d.]+ s {PLACE}", project.wait(run, code=1)
    )
