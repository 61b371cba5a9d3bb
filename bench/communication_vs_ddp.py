"""CPU seconds that a step of two ranks spends on communication, beside Python's DistributedDataParallel: a step with
averaging of gradients and statistics less a step without, in turns within one process, the smallest ResNet at batch 4."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, conclude, in_turns, ratio_interval

sys.path.insert(0, str(REPOSITORY / "tests/training"))
from torch_ranks import REFERENCE, free_port, write_batches

PAIRS = 12
STEPS = 60


def communication_s(program: list, batches: Path) -> float:
    """Mean over the ranks of CPU seconds per step with communication less those without."""
    environment = os.environ | {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
    }
    outs = [batches.with_name(f"cost-{rank}") for rank in range(2)]
    ranks = [
        subprocess.Popen(
            [*map(str, program), "cost", "cifar-resnet20", "10", "1", str(batches), str(out), str(STEPS)],
            env=environment | {"RANK": str(rank)},
        )
        for rank, out in enumerate(outs)
    ]
    codes = [process.wait(300) for process in ranks]
    if any(codes):
        sys.exit(f"{program}: a rank failed")
    costs = [[float(word) for word in out.read_text().split()] for out in outs]
    return sum(with_s - without_s for with_s, without_s in costs) / len(costs)


def main() -> None:
    with tempfile.TemporaryDirectory() as box:
        batches = write_batches(Path(box) / "batches", seed=1, batch=4, size=32, steps=1)
        pairs = in_turns(
            lambda: communication_s([BIN / "torch-steps"], batches),
            lambda: communication_s([PYTHON, REFERENCE], batches),
            PAIRS,
        )
    for name, column in (("stoker", 0), ("DistributedDataParallel", 1)):
        print(
            f"       {name}: {1000 * sum(pair[column] for pair in pairs) / len(pairs):.2f} ms of CPU per step and rank"
        )
    conclude("CPU of communication, ratio to DistributedDataParallel", ratio_interval(pairs), limit=1.0)


if __name__ == "__main__":
    main()
