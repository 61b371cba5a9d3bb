"""What the tests of training share: a small job on a few images, and what a run left behind."""

import json
import struct
from pathlib import Path

import pytest
from conftest import Stoker
from running import wait_for

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
checkpoint: {{every: {every}, keep: 3}}
record: {{receipts: true}}
"""


def small_dataset(stoker: Stoker, images: Path, train: int = 32, test: int = 10) -> Path:
    """The first so many images of each class, packed: `train` x 10 samples make train x 10 / 32 steps of two ranks."""
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
    """The first attempt of the run in `folder`, once its rank 0 has done so many steps."""

    def attempt() -> Path | None:
        for metrics in folder.glob("runs/*/attempts/1/metrics-0000.csv"):
            if metrics.read_text().count("\n") > count:  # the first line has the columns' names
                return metrics.parent
        return None

    return wait_for(attempt, 60)


def steps(run: Path) -> list[int]:
    folder = run / "checkpoints"
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


def tensors(run: Path, step: int) -> dict[str, bytes]:
    """A checkpoint's tensors, by file and name; what says who wrote it when is left out."""
    found = {}
    for file in sorted((run / f"checkpoints/step-{step}").rglob("*.safetensors")):
        data = file.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        for name, entry in json.loads(data[8 : 8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[f"{file.parent.name}/{file.name}/{name}"] = data[8 + length + begin : 8 + length + end]
    if not found:
        pytest.fail(f"no tensors in step {step} of {run}")
    return found
