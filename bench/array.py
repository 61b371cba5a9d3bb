"""Cost of an array of 100 short tasks, compared with plain `sbatch --array` of the same command, in a lab on this machine.

Both alternate and are measured from the submission to the end of the last task. Also measured are the files left by each task
and the requests to the controller, counted by sdiag. Limits: at least 0.95 of the plain rate, at most two files per task and no
additional requests."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import BIN, Interval, in_turns, ratio_interval
from on_a_lab import lab_environment
from slurm_requests import requests

TASKS = 100
AT_ONCE = 8
PAIRS = 3
LEAST = 0.95
FILES = 2.0


def wait_for(is_over, what: str) -> None:
    deadline = time.monotonic() + 600
    while not is_over():
        if time.monotonic() > deadline:
            sys.exit(f"not within 10 min: {what}")
        time.sleep(0.02)


class Bench:
    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder = folder
        self.environment = environment
        self.turn = 0
        self.asked = {"stoker": 0, "bare": 0}
        self.files = 0

    def _count(self, who: str, work) -> float:
        self.turn += 1
        before = requests(self.environment)
        began = time.perf_counter()
        work()
        took = time.perf_counter() - began
        # The controller is notified shortly after the file exists.
        time.sleep(3)
        self.asked[who] += requests(self.environment) - before
        return took

    def stoker(self) -> float:
        def work() -> None:
            command = [BIN / "stoker", "submit", "job.yaml", "--json"]
            done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, check=True)
            run = Path(json.loads(done.stdout)["folder"])
            records = [run / f"tasks/{task:05}.jsonl" for task in range(1, TASKS + 1)]
            wait_for(lambda: all(file.exists() for file in records), "all tasks begin")
            wait_for(lambda: all("task_ended" in file.read_text() for file in records), "all tasks end")
            self.files = len(list((run / "tasks").iterdir()))

        return self._count("stoker", work)

    def bare(self) -> float:
        def work() -> None:
            ends = self.folder / f"bare-{self.turn}"
            ends.mkdir()
            script = ends / "job.sh"
            script.write_text(
                f"#!/bin/bash\n#SBATCH --array=1-{TASKS}%{AT_ONCE}\n#SBATCH --ntasks=1\n#SBATCH --output={ends}/%a.log\n"
                "python3 -c 'print(1)'\necho end\n"
            )
            subprocess.run(["sbatch", "--parsable", script], env=self.environment, capture_output=True, check=True)
            logs = [ends / f"{task}.log" for task in range(1, TASKS + 1)]
            wait_for(lambda: all(log.exists() for log in logs), "all tasks begin")
            wait_for(lambda: all(log.read_text().endswith("end\n") for log in logs), "all tasks end")

        return self._count("bare", work)


def verdict(is_met: bool, text: str) -> bool:
    print(f"{'ok' if is_met else 'MISSED':7}{text}")
    return is_met


def main() -> None:
    with lab_environment() as environment, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "t.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(TASKS)))
        (folder / "job.yaml").write_text(
            f"name: bench\nrun: [python3, -c, print(1)]\narray: {{over: t.csv, at_once: {AT_ONCE}}}\n"
        )
        bench = Bench(folder, environment)
        pairs = in_turns(bench.bare, bench.stoker, PAIRS)
        rate: Interval = ratio_interval(pairs)
        print(f"bare {TASKS / pairs[-1][0]:.1f} tasks/s, stoker {TASKS / pairs[-1][1]:.1f} tasks/s in the last turn")
        met = [
            verdict(rate.value >= LEAST, f"rate beside bare sbatch: {rate}, at least {LEAST}"),
            verdict(bench.files <= FILES * TASKS, f"files: {bench.files / TASKS:g} a task, at most {FILES:g}"),
            verdict(
                bench.asked["stoker"] <= bench.asked["bare"] + PAIRS,
                f"requests to the controller: {bench.asked['stoker']}, bare {bench.asked['bare']}",
            ),
        ]
        sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
