"""From the command to the end of the first training step on two ranks: `stoker run` with the built-in trainer, reading
its images from a dataset, beside torchrun with a bare script that makes the same step on a batch it finds in a file."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, in_turns, median_interval, ratio_interval, told

sys.path.insert(0, str(REPOSITORY / "tests/training"))
from torch_ranks import REFERENCE, free_port, rows, write_batches

PAIRS = 12


def stoker_s(folder: Path) -> float:
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    started = time.time()
    subprocess.run([BIN / "stoker", "run", "job.yaml"], cwd=folder, check=True, capture_output=True)
    (run,) = runs.iterdir()
    return max(rows(run / f"attempts/1/metrics-000{rank}.csv")[0]["time"] for rank in range(2)) - started


def torchrun_s(folder: Path) -> float:
    out = folder / "first-step"
    started = time.time()
    command = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port(), REFERENCE]
    command += ["first-step", "cifar-resnet20", "10", "1", folder / "batches", out]
    subprocess.run(
        [str(word) for word in command],
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    return max(float(Path(f"{out}-{rank}").read_text()) for rank in range(2)) - started


def main() -> None:
    with tempfile.TemporaryDirectory() as box:
        folder = Path(box)
        write_batches(folder / "batches", seed=1, batch=64, size=32, steps=1)
        subprocess.run(
            ["tar", "xf", REPOSITORY / "examples/cifar10/cifar10-6000.tar", "--one-top-level=images"],
            cwd=folder,
            check=True,
        )
        subprocess.run(
            [BIN / "stoker", "data", "pack", "images", "cifar10-6000"], cwd=folder, check=True, capture_output=True
        )
        shutil.copy(REPOSITORY / "examples/cifar10/job.yaml", folder)
        job = folder / "job.yaml"
        job.write_text(job.read_text().replace("  epochs: 10", "  epochs: 10\n  steps: 1"))
        pairs = in_turns(lambda: stoker_s(folder), lambda: torchrun_s(folder), PAIRS)
    ours, theirs = zip(*pairs, strict=True)
    print(f"       torchrun: {median_interval(theirs)} s (median)")
    met = [
        told("launch to the end of the first step", median_interval(ours), limit=0.6, unit="s"),
        told("launch to the end of the first step, ratio to torchrun", ratio_interval(pairs), limit=0.2),
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
