"""From the command to the end of the first training step on two ranks: `stoker run` with the built-in trainer, which reads its images
from a dataset, compared with torchrun and a minimal script that makes the same step on a batch from a file, and with the lower
bound for launchers: two independent processes that only use libtorch and make that step. All three alternate, because a machine
that has to reclaim memory from its host slows all of them."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch_steps
from measure import BIN, PYTHON, REPOSITORY, check_limit, median_interval, ratio_interval

sys.path.insert(0, str(REPOSITORY / "tests"))
sys.path.insert(0, str(REPOSITORY / "tests/training"))
from ports import free_port
from torch_ranks import REFERENCE, rows, write_batches

ROUNDS = 12
MODEL = ["cifar-resnet20", "10", "1"]


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
    command += ["first-step", *MODEL, folder / "batches", out]
    subprocess.run(
        [str(word) for word in command],
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    return latest(out) - started


def bare_s(folder: Path) -> float:
    out = folder / "bare"
    started = time.time()
    # As set by `stoker run` for its trainer.
    variables = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    torch_steps.run(
        lambda rank: [*torch_steps.STOKER, "first-step", *MODEL, folder / "batches", f"{out}-{rank}"], 2, **variables
    )
    return latest(out) - started


def latest(out: Path) -> float:
    """The time at which the slower of the two ranks has finished."""
    return max(float(Path(f"{out}-{rank}").read_text()) for rank in range(2))


def in_turns_of_three(folder: Path) -> list[tuple[float, float, float]]:
    """Stoker, torchrun, bare; their order rotates. The first round is not measured."""
    measures = [stoker_s, torchrun_s, bare_s]
    found = []
    for turn in range(ROUNDS + 1):
        order = [(turn + i) % 3 for i in range(3)]
        seconds = {i: measures[i](folder) for i in order}
        found.append((seconds[0], seconds[1], seconds[2]))
    return found[1:]


def main() -> None:
    with tempfile.TemporaryDirectory() as box:
        folder = Path(box)
        write_batches(folder / "batches", seed=1, batch=50, size=32, steps=1)  # as in the job
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
        found = in_turns_of_three(folder)
    ours, torchrun, bare = zip(*found, strict=True)
    print(f"       torchrun: {median_interval(torchrun)} s, nothing but the step: {median_interval(bare)} s (medians)")
    step = "launch to the end of the first step"
    met = [
        check_limit(step, median_interval(ours), limit=0.6, unit="s"),
        check_limit(f"{step}, ratio to torchrun", ratio_interval(list(zip(ours, torchrun, strict=True))), limit=0.2),
        check_limit(f"{step}, ratio to the lower bound", ratio_interval(list(zip(ours, bare, strict=True))), limit=1.5),
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
