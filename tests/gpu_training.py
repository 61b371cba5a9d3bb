"""Helpers and fixtures of tests on a GPU, as a plugin of pytest. They need the built commands and Python alone:
script/gpu-check runs such tests on machines that have no more."""

import csv
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("STOKER_BIN") or REPOSITORY / "build/release/bin")
IMAGES = REPOSITORY / "examples/cifar10/cifar10-6000.tar"

JOB = """\
name: gpu
train:
  model: cifar-resnet20
  device: cuda
  epochs: 2
  batch: 50
  seed: 3
  num_workers: 4
  print_every: 10
  optimizer: {{lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.0005}}
  schedule: {{kind: constant}}
data:
  train: {{source: {dataset}, split: train}}
  validation: {{source: {dataset}, split: test}}
checkpoint: {{every: never}}
"""


@dataclass(frozen=True)
class Trained:
    """A run of stoker-train: its exit code and output, and metrics and checkpoints of its folder."""

    code: int
    out: str
    folder: Path

    def rows(self, rank: int = 0) -> list[dict[str, float]]:
        file = self.folder / f"attempt/1/metrics-{rank:04}.csv"
        with open(file, newline="") as lines:
            return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]

    def losses(self, rank: int = 0) -> list[float]:
        return [row["loss"] for row in self.rows(rank)]

    def epochs(self) -> list[dict[str, float]]:
        with open(self.folder / "attempt/1/epochs.csv", newline="") as lines:
            return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]


def pack_images(folder: Path, train: int = 50, test: int = 10) -> Path:
    """The first images of each class of the example."""
    taken: dict[Path, int] = {}
    with tarfile.open(IMAGES) as archive:
        for member in archive:
            path = Path(member.name)
            limit = train if path.parts[0] == "train" else test
            if member.isfile() and taken.setdefault(path.parent, 0) < limit:
                taken[path.parent] += 1
                target = folder / "images" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())
    command = [BIN / "stoker", "data", "pack", folder / "images", folder / "packed"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "packed"


class Trainer:
    """Runs stoker-train on a small dataset, one folder per run."""

    def __init__(self, folder: Path, dataset: Path):
        self.folder = folder
        self.dataset = dataset
        self._runs = 0

    def start(
        self, *settings: str, rank: int = 0, world: int = 1, port: int = 0, run: Path | None = None, **environment: str
    ) -> tuple[subprocess.Popen[str], Path]:
        """One rank. Settings are KEY=VALUE."""
        if run is None:
            run = self.new_run()
        names = {"STOKER_ATTEMPT_DIR": run / "attempt/1", "STOKER_CHECKPOINT_DIR": run}
        if world > 1 or port:
            names |= {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
            names |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        words = [word for setting in settings for word in ("--set", setting)]
        process = subprocess.Popen(
            [BIN / "stoker-train", "--job", run / "job.yaml", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {name: str(value) for name, value in names.items()} | environment,
        )
        return process, run

    def new_run(self) -> Path:
        self._runs += 1
        run = self.folder / f"run-{self._runs}"
        (run / "attempt/1").mkdir(parents=True)
        (run / "job.yaml").write_text(JOB.format(dataset=self.dataset))
        return run

    def __call__(self, *settings: str, code: int = 0, port: int = 0, **environment: str) -> Trained:
        process, run = self.start(*settings, port=port, **environment)
        out, _ = process.communicate(timeout=300)
        assert process.returncode == code, out
        return Trained(process.returncode, out, run)

    def ranks(self, world: int, port: int, *settings: str, code: int = 0, **environment: str) -> list[Trained]:
        """All ranks of a training on this host."""
        run = self.new_run()
        started = [
            self.start(*settings, rank=rank, world=world, port=port, run=run, **environment)[0] for rank in range(world)
        ]
        outs = [process.communicate(timeout=300)[0] for process in started]
        for process, out in zip(started, outs, strict=True):
            assert process.returncode == code, out
        return [Trained(process.returncode, out, run) for process, out in zip(started, outs, strict=True)]


@pytest.fixture(scope="session")
def gpu_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few images of each class."""
    return pack_images(tmp_path_factory.mktemp("gpu-data"))


@pytest.fixture
def trainer(tmp_path: Path, gpu_dataset: Path) -> Trainer:
    return Trainer(tmp_path, gpu_dataset)


@pytest.fixture(scope="session")
def example_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All images of the example. The fixture of conftest.py takes its place where that is loaded."""
    return pack_images(tmp_path_factory.mktemp("example"), train=10_000, test=10_000)
