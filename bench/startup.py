"""Start-up time of the command: `stoker --version`, median of 100."""

from measure import BIN, conclude, start_times


def main() -> None:
    conclude("start of the command", start_times([BIN / "stoker", "--version"], 100), limit=10, unit="ms")


if __name__ == "__main__":
    main()
