"""Starts ranks of build/release/bin/torch-steps, or of its Python equivalent, for the benchmarks of training."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
sys.path.insert(0, str(REPOSITORY / "tests/training"))
from ports import free_port
from torch_ranks import REFERENCE

STOKER = [BIN / "torch-steps"]
DISTRIBUTED_DATA_PARALLEL = [PYTHON, REFERENCE]


def start(command: Callable[[int], list], ranks: int, **variables: str) -> list[subprocess.Popen]:
    """`command` is run by each rank."""
    environment = os.environ | {
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    return [
        subprocess.Popen(
            [str(word) for word in command(rank)],
            env=environment | {"RANK": str(rank)},
            stdout=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]


def run(command: Callable[[int], list], ranks: int, **variables: str) -> None:
    """Waits until all of them have succeeded."""
    codes = [process.wait(300) for process in start(command, ranks, **variables)]
    if any(codes):
        sys.exit(f"{command(0)}: a rank failed")


def with_and_without(program: list, mode: str, batches: Path, steps: int) -> list[tuple[float, float]]:
    """Seconds per step with and without communication, averaged over two ranks: wall time (pace), or CPU time (cost). Uses the
    smallest ResNet. Both alternate every five steps within the same processes, with one result per turn."""
    outs = [batches.with_name(f"{mode}-{rank}") for rank in range(2)]
    run(lambda rank: [*program, mode, "cifar-resnet20", "10", "1", batches, outs[rank], steps], 2)
    ranks = [[[float(word) for word in line.split()] for line in out.read_text().splitlines()] for out in outs]
    return [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in zip(*ranks, strict=True)]
