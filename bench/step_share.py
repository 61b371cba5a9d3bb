"""The share of a training step of the CIFAR example that is spent on waiting for data and on recording.

Recording is all time outside of data, forward, backward, communication, optimizer and checkpoint: metrics, beacon, receipts,
accuracy, progress lines. Two ranks on this machine, one epoch, without the first steps."""

import subprocess
import sys
import tempfile
from pathlib import Path

from measure import BIN, REPOSITORY, Interval, conclude, median_interval

sys.path.insert(0, str(REPOSITORY / "tests/training"))
from torch_ranks import rows

EPOCHS = 4
FIRST = 5
PARTS = ("data_s", "forward_s", "backward_s", "communication_s", "optimizer_s", "checkpoint_s")


def shares(folder: Path) -> tuple[list[float], list[float]]:
    """Shares in percent of waiting for data and of recording, per twenty steps."""
    (run,) = (folder / "runs").iterdir()
    waits, records = [], []
    for rank in range(2):
        steps = rows(run / f"attempts/1/metrics-000{rank}.csv")
        for begin in range(FIRST, len(steps) - 20, 20):
            stretch = steps[begin : begin + 20]
            if stretch[0]["epoch"] != stretch[-1]["epoch"]:
                continue  # a validation is between them
            seconds = stretch[-1]["time"] - stretch[0]["time"]
            counted = stretch[1:]  # a step's timestamp is its end
            waits.append(100 * sum(row["data_s"] for row in counted) / seconds)
            spent = sum(row[part] for row in counted for part in PARTS)
            records.append(100 * max(0.0, seconds - spent) / seconds)
    return waits, records


def main() -> None:
    with tempfile.TemporaryDirectory() as box:
        folder = Path(box)
        images = ["tar", "xf", REPOSITORY / "examples/cifar10/cifar10-6000.tar", "--one-top-level=images"]
        subprocess.run(images, cwd=folder, check=True)
        pack = [BIN / "stoker", "data", "pack", "images", "cifar10-6000"]
        subprocess.run(pack, cwd=folder, check=True, capture_output=True)
        job = folder / "job.yaml"
        job.write_text(
            (REPOSITORY / "examples/cifar10/job.yaml").read_text().replace("epochs: 10", f"epochs: {EPOCHS}")
        )
        subprocess.run([BIN / "stoker", "run", job], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        waits, records = shares(folder)
    codes = []
    found: tuple[str, Interval, float]
    for found in (
        ("wait for data, share of a step", median_interval(waits), 1.0),
        ("recording, share of a step", median_interval(records), 0.5),
    ):
        try:
            conclude(*found, unit="%")
        except SystemExit as end:
            codes.append(end.code)
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
