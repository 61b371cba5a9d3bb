"""The main job by the commands: a folder of JPEG files becomes a dataset, is trained by two processes, survives kills,
resumes exactly, and ends in a report."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import receipts

JOB = """\
name: main-job
train:
  model: cifar-resnet20
  epochs: {epochs}
  batch: {batch}
  seed: 3
  optimizer: {{lr: {lr}, momentum: 0.9, nesterov: true, weight_decay: 0.0005}}
data:
  train: {{source: dataset, split: train}}
  validation: {{source: dataset, split: test}}
resources: {{ranks_per_node: 2, cpus_per_rank: 1}}
checkpoint: {{every: {every} steps, keep_last: 2}}
record: {{receipts: true}}
"""


def write_job(folder: Path, epochs: int, batch: int, every: int, lr: float = 0.1) -> None:
    (folder / "job.yaml").write_text(JOB.format(epochs=epochs, batch=batch, every=every, lr=lr))


def process_of_rank(folder: Path, rank: int) -> int | None:
    """The training process that is this rank of a run in `folder`, while there is one."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text() == "stoker-train\n":
                environment = (entry / "environ").read_bytes().split(b"\0")
                if f"RANK={rank}".encode() in environment and any(
                    value.startswith(f"STOKER_RUN_DIR={folder}/".encode()) for value in environment
                ):
                    return int(entry.name)
        except OSError:
            continue
    return None


def wait_until(condition, process, seconds: float = 120):
    """What `condition` gives once it gives something; fails when the process ends before."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert process.poll() is None, f"ended with {process.returncode}: {process.communicate()}"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def the_run(folder: Path) -> Path:
    (run,) = (folder / "runs").iterdir()
    return run


def check_main_job(stoker, images: Path, tmp_path: Path) -> None:
    stoker("data", "pack", images, "dataset", timeout=300, code=0)
    samples = json.loads(stoker("data", "info", "dataset", "--json", code=0).out)["splits"]
    training = next(split["samples"] for split in samples if split["name"] == "train")
    write_job(tmp_path, epochs=1, batch=64, every=10)

    process = stoker.start("run", "job.yaml")
    wait_until(lambda: list(tmp_path.glob("runs/*/checkpoints/step-*")), process, 300)
    os.kill(wait_until(lambda: process_of_rank(tmp_path, 1), process), signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == 137
    assert "killed by signal 9 (SIGKILL)" in err
    assert "  try: stoker resume last\n" in err
    assert process_of_rank(tmp_path, 0) is None

    stoker("resume", "last", code=0, timeout=1200)
    assert receipts.mistakes(receipts.receipts_of(the_run(tmp_path)), training) == []
    stoker("report", "last", code=0)
    page = (the_run(tmp_path) / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    (run,) = json.loads(stoker("report", "last", "--json", code=0).out)["runs"]
    assert (run["state"], run["resumes"], run["world_size"]) == ("done", 1, 2)
    assert len(run["epochs"]) == 1
    assert 0 <= run["epochs"][0]["val_top1"] <= 1


@pytest.mark.timeout(1500)
def test_pack_train_kill_resume_report(stoker, example_images, tmp_path):
    check_main_job(stoker, example_images, tmp_path)


@pytest.mark.soak
@pytest.mark.needs("data")
@pytest.mark.timeout(3600)
def test_all_of_cifar10_is_packed_trained_killed_and_resumed(stoker, cifar10_images, tmp_path):
    check_main_job(stoker, cifar10_images, tmp_path)


@pytest.mark.soak
@pytest.mark.needs("data")
@pytest.mark.timeout(7200)
def test_all_of_cifar10_reaches_its_accuracy(stoker, cifar10_images, tmp_path):
    stoker("data", "pack", cifar10_images, "dataset", timeout=300, code=0)
    write_job(tmp_path, epochs=12, batch=64, every=390, lr=0.2)
    stoker("run", "job.yaml", code=0, timeout=7000)
    (run,) = json.loads(stoker("report", "last", "--json", code=0).out)["runs"]
    assert run["epochs"][-1]["val_top1"] >= 0.83  # measured: 84.3 %
