"""The cost of `stoker status` for an array of 100 tasks, in addition to its one squeue, in a lab on this machine; and the time for
10 000 tasks, with a squeue that responds immediately."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import BIN, check_limit, in_turns, median_interval, seconds_of
from on_a_lab import lab_environment

LIMIT_MS = 15.0
LIMIT_LARGE_MS = 1000.0
PAIRS = 40
HEADER = "JOBID|STATE|REASON|START_TIME|END_TIME|PARTITION|NODELIST|USER|NAME"


def hundred_tasks() -> bool:
    with lab_environment() as environment, tempfile.TemporaryDirectory() as folder:
        environment["STOKER_SLURM_CALLS_PER_S"] = "0"
        place = {"cwd": folder, "env": environment}
        submit = ["sbatch", "--parsable", "--hold", "--array=0-99", "--output=/dev/null", "--wrap=true"]
        job = subprocess.run(submit, capture_output=True, text=True, check=True, **place).stdout.strip()
        own = [BIN / "stoker", "status", job]
        shown = subprocess.run([*own, "--json"], capture_output=True, text=True, check=True, **place).stdout
        calls = json.loads(shown)["scheduler"]["calls"]
        bare = [
            "squeue",
            "--all",
            "--states=all",
            "--array",
            f"--jobs={job}",
            "--format=%i|%T|%r|%S|%e|%P|%N|%u|%j",
        ]
        pairs = in_turns(lambda: seconds_of(own, **place), lambda: seconds_of(bare, **place), PAIRS)
    print(f"squeue alone {median_interval([1000 * bare for _, bare in pairs])} ms; {calls} call")
    met = check_limit(
        "status of 100 tasks over squeue", median_interval([1000 * (a - b) for a, b in pairs]), LIMIT_MS, "ms"
    )
    return met and calls == 1


def ten_thousand_tasks() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        rows = "".join(f"8_{i}|COMPLETED|None|1795255200|1795258800|cpu|n1|ada|sweep\n" for i in range(10_000))
        (Path(folder) / "rows").write_text(f"{HEADER}\n{rows}")
        program = Path(folder) / "squeue"
        program.write_text(f"#!/bin/sh\nexec cat {folder}/rows\n")
        program.chmod(0o755)
        place = {"cwd": folder, "env": dict(os.environ) | {"PATH": f"{folder}:{os.environ['PATH']}"}}
        place["env"]["STOKER_SLURM_CALLS_PER_S"] = "0"
        command = [BIN / "stoker", "status", "8", "--json"]
        seconds_of(command, **place)
        return check_limit(
            "status of 10 000 tasks",
            median_interval([1000 * seconds_of(command, **place) for _ in range(PAIRS)]),
            LIMIT_LARGE_MS,
            "ms",
        )


def main() -> None:
    if shutil.which("sbatch") is None or shutil.which("slurmctld") is None:
        print("skipped: needs Slurm's commands and daemons (Debian: slurm-wlm)")
        return
    met = [hundred_tasks(), ten_thousand_tasks()]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
