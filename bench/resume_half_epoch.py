"""Two ranks stop at half an epoch of CIFAR-10 and three resume: time from opening the dataset to the first batch of 128, and a check
that every sample was returned exactly once. Median of 20."""

import subprocess
import sys

from cifar import packed_cifar
from measure import BIN, check_limit, median_interval


def main() -> None:
    times, wrong = [], 0
    with packed_cifar() as dataset:
        for _ in range(20):
            command = [BIN / "samples_bench", "resume", dataset, "3"]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds, repeated, missing = text.split()
            times.append(1000 * float(seconds))
            wrong += int(repeated) + int(missing)
    print(f"{'MISSED' if wrong else 'ok':7}2 to 3 ranks: {wrong} samples repeated or missing in 20 runs")
    met = check_limit("resume at half an epoch", median_interval(times), limit=5, unit="ms")
    sys.exit(0 if met and wrong == 0 else 1)


if __name__ == "__main__":
    main()
