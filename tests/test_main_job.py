"""The main job by the commands: a folder of JPEG files becomes a dataset, is trained by two processes, survives kills,
resumes exactly, and ends in a report."""

import contextlib
import hashlib
import json
import os
import random
import signal
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest
import receipts
from packing import jpeg

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
checkpoint: {{every: {every} steps, keep: 2}}
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


def tensor_bytes(path: Path) -> str:
    """SHA-256 of a safetensors file without its metadata, which names the run that wrote it."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__")
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + data[8 + length :]).hexdigest()


def final_tensors(run: Path) -> dict[str, str]:
    """Weights, buffers and optimizer state of the newest checkpoint, bit by bit."""
    newest = max((run / "checkpoints").glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))
    files = sorted(newest.rglob("*.safetensors"))
    assert files
    return {str(file.relative_to(run)): tensor_bytes(file) for file in files}


def the_run(folder: Path) -> Path:
    (run,) = (folder / "runs").iterdir()
    return run


@pytest.mark.timeout(1500)
def test_pack_train_kill_resume_report(stoker, cifar10_images, tmp_path):
    stoker("data", "pack", cifar10_images, "dataset", timeout=300, code=0)
    samples = json.loads(stoker("data", "info", "dataset", "--json", code=0).out)["splits"]
    training = next(split["samples"] for split in samples if split["name"] == "train")
    write_job(tmp_path, epochs=1, batch=64, every=10)

    process = stoker.start("run", "job.yaml")
    wait_until(lambda: list(tmp_path.glob("runs/*/checkpoints/step-*")), process, 300)
    os.kill(wait_until(lambda: process_of_rank(tmp_path, 1), process), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
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


@pytest.fixture
def small_dataset(stoker, tmp_path) -> int:
    """dataset/ with 256 training images of 32x32; returns how many."""
    for split, count in (("train", 128), ("test", 16)):
        for kind in ("cat", "dog"):
            folder = tmp_path / "images" / split / kind
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{number:03}.jpg").write_bytes(
                    jpeg(zlib.crc32(f"{split}/{kind}/{number}".encode()), (32, 32))
                )
    stoker("data", "pack", "images", "dataset", code=0)
    return 256


@pytest.mark.timeout(7000)
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_killed_at_random_it_ends_with_the_weights_of_an_undisturbed_run(stoker, small_dataset, tmp_path, kills):
    write_job(tmp_path, epochs=4, batch=16, every=3)
    stoker("run", "job.yaml", "--set", "record.directory=undisturbed", code=0, timeout=300)
    (undisturbed,) = (tmp_path / "undisturbed").iterdir()
    expected = final_tensors(undisturbed)
    duration = json.loads((stoker("report", undisturbed, "--json", code=0)).out)["runs"][0]["running_s"]

    chance = random.Random(kills)
    killed = attempt = 0
    while killed < kills:
        run = None
        attempt += 1
        command = ("run", "job.yaml", "--set", f"record.directory=runs{attempt}")
        for _ in range(8):
            if killed == kills:
                break
            process = stoker.start(*command)
            rank = chance.randrange(2)
            pid = wait_until(lambda rank=rank: process_of_rank(tmp_path, rank), process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.2, max(1.0, duration / 2)))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            process.communicate(timeout=60)
            (run,) = (tmp_path / f"runs{attempt}").iterdir()
            if process.returncode == 0:
                break
            assert process.returncode == 137
            killed += 1
            command = ("resume", run)
        if process.returncode != 0:
            stoker("resume", run, code=0, timeout=300)
        assert final_tensors(run) == expected, f"after {killed} kills"
        assert receipts.mistakes(receipts.receipts_of(run), small_dataset) == []


@pytest.mark.soak
@pytest.mark.needs("data")
@pytest.mark.timeout(7200)
def test_all_of_cifar10_reaches_its_accuracy(stoker, cifar10_images, tmp_path):
    stoker("data", "pack", cifar10_images, "dataset", timeout=300, code=0)
    write_job(tmp_path, epochs=12, batch=64, every=390, lr=0.2)
    stoker("run", "job.yaml", code=0, timeout=7000)
    (run,) = json.loads(stoker("report", "last", "--json", code=0).out)["runs"]
    assert run["epochs"][-1]["val_top1"] >= 0.85
