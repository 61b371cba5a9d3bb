"""Seconds from the start of the process to the end of the first step of CIFAR ResNet-20: Python with a batch that is already
on the GPU, and stoker-train, which also opens the dataset.

    python bench/gpu/start.py [DATASET] [--rounds 5] [--device cuda]

DATASET is a packed dataset of CIFAR images; without it, only Python is measured. The first round is not counted."""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKLOAD = "cifar-resnet20-128-fp32"

JOB = """\
name: start
train: {{model: cifar-resnet20, batch: 128, steps: 1, validate_every: 0}}
data: {{train: {{source: {dataset}, split: {split}}}}}
checkpoint: {{every: never}}
"""


def first_step(device: str) -> None:
    """Runs in a new process; prints the time of day at the end of the step."""
    from steps import Training
    from windows import wait_for
    from workloads import WORKLOADS

    Training(WORKLOADS[WORKLOAD], device).step()
    wait_for(device)
    print(time.time())


def python_start(device: str) -> float:
    command = [sys.executable, __file__, "--child", "--device", device]
    started = time.time()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout) - started


def stoker_start(dataset: Path, split: str, device: str) -> float:
    from trainer import on, train

    job = JOB.format(dataset=dataset.resolve(), split=split)
    with tempfile.TemporaryDirectory() as work:
        started = time.time()
        return train(job, Path(work), on(device))[0]["time"] - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", type=Path)
    parser.add_argument("--split", default="all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        first_step(options.device)
        return
    from windows import print_line, print_machine

    print_machine(options.device)
    starts = {"python": lambda: python_start(options.device)}
    if options.dataset:
        starts["stoker"] = lambda: stoker_start(options.dataset, options.split, options.device)
    seconds: dict[str, list[float]] = {who: [] for who in starts}
    for turn in range(options.rounds + 1):
        for who, start in starts.items():
            found = start()
            if turn > 0:
                seconds[who].append(found)
    for who, found in seconds.items():
        low, median, high = (round(value, 3) for value in (min(found), statistics.median(found), max(found)))
        print_line(workload="start", who=who, mode="eager", seconds=median, low=low, high=high)


if __name__ == "__main__":
    main()
