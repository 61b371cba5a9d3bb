"""CPU seconds per step of two ranks for communication, compared with Python's DistributedDataParallel: a step that averages
gradients and statistics minus a step without, alternating within one process, with the smallest ResNet at batch 4."""

import statistics
import tempfile
from pathlib import Path

import torch_steps
from measure import conclude, in_turns, ratio_interval
from torch_ranks import write_batches

PAIRS = 12
STEPS = 60


def communication_s(program: list, batches: Path) -> float:
    """CPU seconds per step with communication minus without, averaged over ranks."""
    turns = torch_steps.with_and_without(program, "cost", batches, STEPS)
    return statistics.fmean(with_s - without_s for with_s, without_s in turns)


def main() -> None:
    with tempfile.TemporaryDirectory() as box:
        batches = write_batches(Path(box) / "batches", seed=1, batch=4, size=32, steps=1)
        pairs = in_turns(
            lambda: communication_s(torch_steps.STOKER, batches),
            lambda: communication_s(torch_steps.DISTRIBUTED_DATA_PARALLEL, batches),
            PAIRS,
        )
    for name, column in (("stoker", 0), ("DistributedDataParallel", 1)):
        print(
            f"       {name}: {1000 * sum(pair[column] for pair in pairs) / len(pairs):.2f} ms of CPU per step and rank"
        )
    conclude("CPU of communication, ratio to DistributedDataParallel", ratio_interval(pairs), limit=1.0)


if __name__ == "__main__":
    main()
