"""Starting and stopping a lab of four nodes: `stoker lab up` until all nodes are idle, with and without accounting, and
`stoker lab down`. Each has a fixed limit, and is compared with a careful shell script for the same (bench/lab_by_hand.sh). Needs
root, Slurm and MariaDB."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, REPOSITORY, check_limit, in_turns, median_interval, ratio_interval, seconds_of

BY_HAND = REPOSITORY / "bench/lab_by_hand.sh"
PAIRS = {"": 10, "accounting": 5}


def ours(folder: Path, accounting: str, downs: list[float]) -> float:
    name = f"b{os.getpid()}"
    environment = os.environ | {"STOKER_LAB_DIR": str(folder)}
    options = ["--accounting"] if accounting else []
    up = seconds_of([BIN / "stoker", "lab", "up", "--name", name, *options], env=environment)
    downs.append(seconds_of([BIN / "stoker", "lab", "down", "--name", name], env=environment))
    return up


def by_hand(folder: Path, accounting: str, downs: list[float]) -> float:
    up = seconds_of([BY_HAND, "up", folder / "hand", accounting])
    downs.append(seconds_of([BY_HAND, "down", folder / "hand"]))
    return up


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("needs root: nodes are network namespaces")
    met = []
    with tempfile.TemporaryDirectory(prefix="lb-", dir="/tmp") as box:
        folder = Path(box)
        folder.chmod(0o755)
        our_downs: list[float] = []
        for accounting, pairs in PAIRS.items():
            hand_downs: list[float] = []
            try:
                ups = in_turns(
                    partial(ours, folder, accounting, our_downs),
                    partial(by_hand, folder, accounting, hand_downs),
                    pairs,
                )
            except subprocess.CalledProcessError:
                subprocess.run([BY_HAND, "down", folder / "hand"], stderr=subprocess.DEVNULL)
                raise
            what = f" with {accounting}" if accounting else ""
            met.append(
                check_limit(f"lab up{what}", median_interval([up for up, _ in ups]), 8 if accounting else 4, "s")
            )
            print(f"       by hand: {median_interval([up for _, up in ups])} s; ratio {ratio_interval(ups)}")
            print(f"       down by hand{what}: {median_interval(hand_downs)} s")
        met.append(check_limit("lab down", median_interval(our_downs), 3, "s"))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
