"""Trains examples/cifar10-fast on all of CIFAR-10 with stoker-train on a GPU: top-1 in validation, and the time.

    python bench/gpu/accuracy.py CIFAR10 [--set KEY=VALUE]...

CIFAR10 is a packed dataset with the splits train and test, or an archive of images, which is packed first."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trainer import BIN, rows, train
from windows import print_line

JOB = Path(__file__).resolve().parents[2] / "examples/cifar10-fast/job.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cifar10", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work, dataset = Path(folder), options.cifar10
        if dataset.is_file():
            dataset = work / "dataset"
            subprocess.run([BIN / "stoker", "data", "pack", options.cifar10, dataset], check=True, stdout=sys.stderr)
        settings = [f"data.{name}.source={dataset.resolve()}" for name in ("train", "validation")]
        started = time.time()
        train(JOB.read_text(), work / "run", settings + options.set)
        seconds = time.time() - started
        epochs = rows(work / "run/attempt/1/epochs.csv")
    print_line(
        workload="cifar10-accuracy",
        who="stoker",
        mode="train",
        top1=epochs[-1]["val_top1"],
        epochs=len(epochs),
        seconds=round(seconds, 1),
        training_s=round(sum(epoch["seconds"] for epoch in epochs), 1),
    )


if __name__ == "__main__":
    main()
