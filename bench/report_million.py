"""`stoker report` of a run of a million steps: as HTML and as text, of the trainer's records and of two metrics that a script logs
with stoker.log. Beside it, pandas only reads the same file.

    bench/report_million.py [--steps 1000000] [--rounds 7]"""

import argparse
import math
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, check_limit, in_turns, median_interval, ratio_interval, seconds_of

sys.path.insert(0, str(REPOSITORY / "tests"))
from run_folders import BEGIN, STEP_COLUMNS, RunFolder

LIMIT_S = 3.0
STEP_S = 0.01


def write_run(runs: Path, steps: int, rows) -> Path:
    """Creates a finished run of one attempt; `rows` appends the records of its steps. Returns the largest file of it."""
    run = RunFolder.create(runs, world_size=1)
    run.started(1, BEGIN)
    path = rows(run.attempt(1), steps)
    run.ended(1, BEGIN + steps * STEP_S, "done", 0)
    return path


def trainer_rows(attempt: Path, steps: int) -> Path:
    path = attempt / "metrics-0000.csv"
    with path.open("w") as file:
        file.write(",".join(STEP_COLUMNS) + "\n")
        for step in range(1, steps + 1):
            loss = 2.3 * math.exp(-step / steps) + 0.1 * math.sin(step)
            file.write(f"{BEGIN + step * STEP_S:.6f},{step // 10_000},{step},64,{loss:.6f},0.5,0.8,0.1,")
            file.write("0.0001,0.003,0.005,0.0005,0.0004,0,0.0093\n")
    return path


def logged_points(attempt: Path, steps: int) -> Path:
    path = attempt / "points-0000.csv"
    with path.open("w") as file:
        file.write("time,step,value,metric\n")
        for step in range(1, steps + 1):
            time, loss = BEGIN + step * STEP_S, 2.3 * math.exp(-step / steps) + 0.1 * math.sin(step)
            file.write(f"{time:.6f},{step},{loss:.6f},loss\n{time:.6f},{step},0.1,lr\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    is_met = True
    for what, rows in (("trainer's records", trainer_rows), ("stoker.log", logged_points)):
        with tempfile.TemporaryDirectory() as name:
            path = write_run(Path(name) / "runs", options.steps, rows)
            reads = [PYTHON, "-c", "import pandas, sys; pandas.read_csv(sys.argv[1])", path]
            for form, words in (("html", ["--out", Path(name) / "report.html"]), ("text", ["--format", "text"])):
                report = [BIN / "stoker", "report", "last", "--runs", Path(name) / "runs", *words]
                pairs = in_turns(partial(seconds_of, report), partial(seconds_of, reads), options.rounds)
                is_met &= check_limit(
                    f"report of {options.steps} steps as {form}, {what}",
                    median_interval([ours for ours, _ in pairs]),
                    LIMIT_S * options.steps / 1e6,
                    "s",
                )
                print(
                    f"       beside pandas.read_csv of its {path.stat().st_size / 1e6:.0f} MB: {ratio_interval(pairs)}"
                )
    print(f"       load {os.getloadavg()[0]:.1f}")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
