"""How long the command takes to start and answer: `stoker --version`, median of 100."""

from measure import BIN, conclude, median_interval, seconds_of


def main() -> None:
    command = [BIN / "stoker", "--version"]
    for _ in range(5):
        seconds_of(command)
    times = [1000 * seconds_of(command) for _ in range(100)]
    conclude("start of the command", median_interval(times), limit=10, unit="ms")


if __name__ == "__main__":
    main()
