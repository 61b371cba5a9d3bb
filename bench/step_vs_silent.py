"""A training step of two ranks, compared with two ranks without communication and with Python's DistributedDataParallel: the smallest
ResNet, batch 64. With and without communication alternate every five steps inside the same processes; a turn lasts until the
slower rank has finished. Three to five minutes.

    python bench/step_vs_silent.py [--rounds N]       number of process starts of each kind (default 4)"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import torch_steps
from measure import check_limit, median_interval, ratio_interval
from torch_ranks import write_batches

STEPS = 40
PYTHON_STEPS = 10  # of each kind: the difference to Python is much larger than the variation of its steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4)
    rounds = parser.parse_args().rounds
    pace: list[tuple[float, float]] = []
    cpu: list[tuple[float, float]] = []
    python: list[float] = []
    against_python: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as box:
        batches = write_batches(Path(box) / "batches", seed=1, batch=64, size=32, steps=1)
        for _ in range(rounds):
            turns = torch_steps.with_and_without(torch_steps.STOKER, "pace", batches, STEPS)
            program = torch_steps.DISTRIBUTED_DATA_PARALLEL
            peers = torch_steps.with_and_without(program, "pace", batches, PYTHON_STEPS)
            cpu += torch_steps.with_and_without(torch_steps.STOKER, "cost", batches, STEPS)
            pace += turns
            python.append(statistics.median(peer for peer, _ in peers))
            against_python.append((statistics.median(ours for ours, _ in turns), python[-1]))
    print(f"       stoker {1000 * statistics.median(a for a, _ in pace):.1f} ms a step, silent ranks", end=" ")
    print(f"{1000 * statistics.median(b for _, b in pace):.1f} ms, of {len(pace)} turns (medians)", end=", ")
    print(f"DistributedDataParallel {1000 * statistics.median(python):.1f} ms")
    met = [
        check_limit("step, ratio to two ranks without communication", ratio_interval(pace), limit=1.03),
        check_limit("step, ratio to DistributedDataParallel", ratio_interval(against_python), limit=1.0),
        check_limit(
            "CPU of communication, share of a step",
            median_interval([100 * (a - b) / b for a, b in cpu]),
            limit=3.0,
            unit="%",
        ),
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
