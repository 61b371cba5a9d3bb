"""Trains a job of examples/cifar10-fast on all of CIFAR-10 with stoker-train: top-1 in validation, and the time.

    python bench/gpu/accuracy.py CIFAR10 [--job job.yaml] [--set KEY=VALUE]...

CIFAR10 is a packed dataset with the splits train and test, or an archive of images, which is packed first. For
resnet9.yaml, the network is written first, which the time does not include."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trainer import BIN, rows, train
from windows import print_line

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/cifar10-fast"


def settings_for(job: str, dataset: Path, work: Path) -> list[str]:
    settings = [f"data.{name}.source={dataset.resolve()}" for name in ("train", "validation")]
    if job == "resnet9.yaml":
        network = work / "resnet9.pt"
        subprocess.run([sys.executable, EXAMPLE / "make_resnet9.py", network], check=True)
        settings.append(f"train.file={network}")
    return settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cifar10", type=Path)
    parser.add_argument("--job", default="job.yaml", choices=("job.yaml", "resnet9.yaml"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work, dataset = Path(folder), options.cifar10
        if dataset.is_file():
            dataset = work / "dataset"
            subprocess.run([BIN / "stoker", "data", "pack", options.cifar10, dataset], check=True, stdout=sys.stderr)
        settings = settings_for(options.job, dataset, work) + options.set
        job = (EXAMPLE / options.job).read_text()
        started = time.time()
        train(job, work / "run", settings)
        seconds = time.time() - started
        epochs = rows(work / "run/attempt/1/epochs.csv")
    if not epochs:
        sys.exit(f"{options.job}: no epoch is complete")
    print_line(
        workload=f"cifar10-fast/{options.job}",
        who="stoker",
        mode="train",
        top1=epochs[-1]["val_top1"],
        epochs=len(epochs),
        seconds=round(seconds, 1),
        training_s=round(sum(epoch["seconds"] for epoch in epochs), 1),
    )


if __name__ == "__main__":
    main()
