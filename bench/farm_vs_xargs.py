"""Tasks per second of `stoker farm` with its ledger, beside xargs -P without one, alternating in one run.

  bench/farm_vs_xargs.py [--tasks 3000] [--rounds 5]

Each task is /bin/true. Also: the same command again when all is done (`resume`), and `xargs` with a shell for each line
beside lines that need one."""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

STOKER = Path(__file__).resolve().parents[1] / "build/release/bin/stoker"


def seconds(command: list[str] | str, folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, shell=isinstance(command, str), check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    slots = len(os.sched_getaffinity(0))
    folder = Path(tempfile.mkdtemp(prefix="farm-bench-"))
    (folder / "plain.txt").write_text("".join(f"true {n}\n" for n in range(options.tasks)))
    (folder / "shell.txt").write_text("".join(f"true {n} > /dev/null\n" for n in range(options.tasks)))
    rates: dict[str, list[float]] = {}

    def measure(name: str, command: list[str] | str) -> None:
        rates.setdefault(name, []).append(options.tasks / seconds(command, folder))

    for _ in range(options.rounds):
        for name in ("plain", "shell"):
            shutil.rmtree(folder / f"{name}.farm", ignore_errors=True)
        measure("xargs, true", f"sed 's/^true //' plain.txt | xargs -P {slots} -n 1 true")
        measure("farm, a program", [str(STOKER), "farm", "plain.txt"])
        measure("xargs, a shell", f"tr '\\n' '\\0' < shell.txt | xargs -0 -P {slots} -n 1 sh -c")
        measure("farm, a shell", [str(STOKER), "farm", "shell.txt"])
        measure("farm again", [str(STOKER), "farm", "plain.txt"])
    print(f"{options.tasks} tasks, {slots} at once, median of {options.rounds}, tasks/s")
    for name, values in rates.items():
        print(f"  {name:18} {statistics.median(values):10.0f}   {min(values):.0f} to {max(values):.0f}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
