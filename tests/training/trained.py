"""Helpers for tests of training: a small job on a few images, and access to the files of a run."""

import json
import os
import random
import shlex
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import safetensors_files
from conftest import Stoker
from ports import free_port
from running import Process, wait_for

JOB = """\
name: small
train:
  model: cifar-resnet20
  epochs: {epochs}
  batch: 16
  seed: 3
  optimizer: {{lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.0005}}
  {more}
data:
  train: {{source: {dataset}, split: train}}
  validation: {{source: {dataset}, split: test}}
resources: {{ranks_per_node: 2, cpus_per_rank: 1}}
checkpoint: {{every: {every}, keep_last: 3}}
record: {{receipts: true}}
"""


def small_dataset(stoker: Stoker, images: Path, train: int = 32, test: int = 10) -> Path:
    """Packs the first images of each class: `train` x 10 samples are train x 10 / 32 steps of two ranks."""
    folder = stoker.folder / "few"
    for split, count in (("train", train), ("test", test)):
        for kind in sorted((images / split).iterdir()):
            target = folder / split / kind.name
            target.mkdir(parents=True)
            for image in sorted(kind.iterdir())[:count]:
                (target / image.name).symlink_to(image)
    stoker("data", "pack", folder, stoker.folder / "small", code=0)
    return stoker.folder / "small"


def write_job(folder: Path, dataset: Path, epochs: int, every: str = "never", more: str = "") -> Path:
    path = folder / "job.yaml"
    path.write_text(JOB.format(dataset=dataset, epochs=epochs, every=every, more=more))
    return path


def train_ranks(stoker: Stoker, world: int, *arguments, env: dict | None = None) -> list[str]:
    """Outputs of the ranks of a successful training without `stoker run`."""
    port = free_port()
    place = {"WORLD_SIZE": world, "MASTER_PORT": port}
    ranks = [
        stoker.start(*arguments, program=stoker.train_path, env=place | {"RANK": rank} | (env or {}))
        for rank in range(world)
    ]
    with ThreadPoolExecutor(world) as threads:
        output = list(threads.map(_finish, ranks))
    failed = [
        f"rank {rank}: exit {process.returncode}\nstdout:\n{out}\nstderr:\n{err}"
        for rank, (process, (out, err)) in enumerate(zip(ranks, output, strict=True))
        if process.returncode != 0
    ]
    if failed:  # all of them: where one rank fails, others wait for it
        pytest.fail("\n".join([shlex.join(map(str, arguments)), *failed]))
    return [out for out, _ in output]


def _finish(rank: Process) -> tuple[str, str]:
    try:
        return rank.communicate()
    except subprocess.TimeoutExpired:
        rank.kill()
        return rank.communicate()


def the_run(folder: Path) -> Path:
    (run,) = (folder / "runs").iterdir()
    return run


def attempts(run: Path) -> list[Path]:
    return sorted((run / "attempts").iterdir(), key=lambda path: int(path.name))


def events(attempt: Path, kind: str) -> list[dict]:
    found = []
    for file in sorted(attempt.glob("events-*.jsonl")):
        found += [event for line in file.read_text().splitlines() if (event := json.loads(line))["kind"] == kind]
    return found


def wait_for_steps(folder: Path, count: int) -> Path:
    """The first attempt of the run in `folder`, after `count` steps of rank 0."""

    def attempt() -> Path | None:
        for metrics in folder.glob("runs/*/attempts/1/metrics-0000.csv"):
            if metrics.read_text().count("\n") > count:  # the first line is the header
                return metrics.parent
        return None

    return wait_for(attempt)


def stop_after(stoker: Stoker, job: Path, count: int, *arguments: str) -> Path:
    """Stops a run after `count` steps with a checkpoint; returns its folder."""
    process = stoker.start("run", job, *arguments)
    run = wait_for_steps(stoker.folder, count).parents[1]
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert process.returncode == 75, out + err
    return run


def steps(run: Path) -> list[int]:
    folder = run / "checkpoints"
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


STEPS_PATIENCE = 600  # seconds for a few steps on a busy machine


def kill_at_random(process: Process, run: Path, attempt: int, chance: random.Random, delay_s: float = 0) -> bool:
    """Kills a random rank of the attempt once rank 0 is a random number of steps further, and at most `delay_s` later; False
    if the run ended."""
    wanted, victim = chance.randint(0, 8), chance.randint(0, 1)
    deadline = time.monotonic() + STEPS_PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        # Rank 0's header line is written before its first step: no rows yet is zero steps.
        metrics = run / f"attempts/{attempt}/metrics-0000.csv"
        done = metrics.read_text().count("\n") - 1 if metrics.exists() else -1
        if done >= wanted:
            ranks = {event["rank"]: event["pid"] for event in events(metrics.parent, "rank_started")}
            if victim in ranks:
                time.sleep(chance.random() * delay_s)
                try:
                    os.kill(ranks[victim], signal.SIGKILL)
                except ProcessLookupError:
                    return False
                return True
        time.sleep(0.002)
    pytest.fail(f"attempt {attempt} did not reach step {wanted} within {STEPS_PATIENCE} s")


def tensors(run: Path, step: int) -> dict[str, bytes]:
    """A checkpoint's tensors by file and name, without metadata about the save."""
    return safetensors_files.tensors_of(run / f"checkpoints/step-{step}")
