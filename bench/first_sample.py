"""From the start of a process to its first sample of CIFAR-10 in random order, median of 50."""

from cifar import packed_cifar
from measure import BIN, conclude, median_interval, seconds_of


def main() -> None:
    with packed_cifar() as dataset:
        command = [BIN / "samples_bench", "first", dataset]
        for _ in range(5):
            seconds_of(command)
        times = [1000 * seconds_of(command) for _ in range(50)]
        conclude("start to first sample", median_interval(times), limit=10, unit="ms")


if __name__ == "__main__":
    main()
