"""From the start of a process to its first sample of CIFAR-10 in random order, median of 50."""

from cifar import packed_cifar
from measure import BIN, conclude, start_times


def main() -> None:
    with packed_cifar() as dataset:
        found = start_times([BIN / "samples_bench", "first", dataset], 50)
        conclude("start to first sample", found, limit=10, unit="ms")


if __name__ == "__main__":
    main()
