"""Runs stoker-train for the benches: STOKER_BIN, or build/release/bin, has it."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/training"))
from safetensors_files import tensors_of
from torch_ranks import rows

__all__ = ["BIN", "on", "rows", "tensors_of", "train"]

BIN = Path(os.environ.get("STOKER_BIN") or Path(__file__).resolve().parents[2] / "build/release/bin")


def train(job: str, work: Path, settings: list[str]) -> list[dict[str, float]]:
    """Trains this job in an empty folder, and returns the metrics of its steps. Checkpoints are work/step-N, the
    other records are in work/attempt/1."""
    attempt = work / "attempt/1"
    attempt.mkdir(parents=True)
    (work / "job.yaml").write_text(job)
    words = [word for setting in settings for word in ("--set", setting)]
    environment = os.environ | {"STOKER_ATTEMPT_DIR": str(attempt), "STOKER_CHECKPOINT_DIR": str(work)}
    command = [BIN / "stoker-train", "--job", work / "job.yaml", *words]
    subprocess.run(command, check=True, stdout=sys.stderr, env=environment)
    return rows(attempt / "metrics-0000.csv")


def on(device: str) -> list[str]:
    """The setting for a device; trainers without GPU support have none."""
    return [] if device == "cpu" else [f"train.device={device}"]
