"""Peak memory of a rank: stoker-train with its loader and checkpoints, compared with Python's DistributedDataParallel without a loader,
both training the smallest ResNet at batch 64 on two ranks."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch_steps
from measure import BIN, REPOSITORY, conclude, in_turns, ratio_interval
from torch_ranks import write_batches

PAIRS = 5


def peak_mib(commands: list[list]) -> float:
    """The larger peak of two ranks."""
    peaks = []
    ranks = torch_steps.start(lambda rank: commands[rank], len(commands))
    for process in ranks:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        peaks.append(usage.ru_maxrss / 1024)
    if any(process.returncode for process in ranks):
        sys.exit(f"{commands[0]}: a rank failed")
    return max(peaks)


def main() -> None:
    with tempfile.TemporaryDirectory() as box:
        folder = Path(box)
        batches = write_batches(folder / "batches", seed=1, batch=64, size=32, steps=10)
        images = ["tar", "xf", REPOSITORY / "examples/cifar10/cifar10-6000.tar", "--one-top-level=images"]
        subprocess.run(images, cwd=folder, check=True)
        pack = [BIN / "stoker", "data", "pack", "images", "cifar10-6000"]
        subprocess.run(pack, cwd=folder, check=True, capture_output=True)
        job = folder / "job.yaml"
        job.write_text((REPOSITORY / "examples/cifar10/job.yaml").read_text())
        sets = ["train.steps=10", f"checkpoint.directory={folder}/checkpoints", "checkpoint.every=5 steps"]
        train = [BIN / "stoker-train", "--job", job, *(word for text in sets for word in ("--set", text))]

        def stoker() -> float:
            subprocess.run(["rm", "-rf", folder / "checkpoints"], check=True)
            return peak_mib([train, train])

        def python() -> float:
            peer = [*torch_steps.DISTRIBUTED_DATA_PARALLEL, "train", "cifar-resnet20", "10", "1", batches]
            return peak_mib([[*peer, folder / f"out-{rank}"] for rank in range(2)])

        pairs = in_turns(stoker, python, PAIRS)
    for name, column in (("stoker-train", 0), ("DistributedDataParallel", 1)):
        print(f"       {name}: {sorted(pair[column] for pair in pairs)[len(pairs) // 2]:.0f} MiB (median)")
    conclude("peak memory of a rank, ratio to DistributedDataParallel", ratio_interval(pairs), limit=0.7)


if __name__ == "__main__":
    main()
