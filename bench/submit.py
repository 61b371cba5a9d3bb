"""What `stoker submit` costs beside bare `sbatch` of the same script, on a lab of this machine.

Both submit the same held job, in turns; then how often each has asked the controller is counted by sdiag. What is added is
mostly the disk's: the run folder is synced before a job may exist, so that no power cut leaves a job without its run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import BIN, conclude, in_turns, median_interval, seconds_of

LIMIT_MS = 50.0
PAIRS = 30


def requests(environment: dict[str, str]) -> int:
    """Requests for a submission that the controller has served so far."""
    shown = subprocess.run(["sdiag"], env=environment, capture_output=True, text=True, check=True).stdout
    return sum(int(n) for n in re.findall(r"REQUEST_SUBMIT_BATCH_JOB\s*\(\s*\d+\)\s*count:(\d+)", shown))


def main() -> None:
    if shutil.which("sbatch") is None or shutil.which("slurmctld") is None:
        print("skipped: needs Slurm's commands and daemons (Debian: slurm-wlm)")
        return
    lab = f"b{os.getpid()}"
    up = [BIN / "stoker", "lab", "up", "--name", lab, "--owner", str(os.getpid()), "--json"]
    described = json.loads(subprocess.run(up, capture_output=True, text=True, check=True).stdout)
    environment = dict(os.environ) | {"SLURM_CONF": described["slurm_conf"]}
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = {"cwd": folder, "env": environment}
            (Path(folder) / "job.yaml").write_text("name: bench\nrun: 'true'\nslurm: {extra: [--hold]}\n")
            script = subprocess.run(
                [BIN / "stoker", "submit", "job.yaml", "--dry-run"], capture_output=True, text=True, check=True, **place
            ).stdout
            (Path(folder) / "job.sbatch").write_text(
                re.sub(r"^#SBATCH --output=.*$", "#SBATCH --output=/dev/null", script, flags=re.M)
            )
            before = requests(environment)
            pairs = in_turns(
                lambda: seconds_of([BIN / "stoker", "submit", "job.yaml"], **place),
                lambda: seconds_of(["sbatch", "--parsable", "job.sbatch"], **place),
                PAIRS,
            )
            asked = requests(environment) - before
            added = median_interval([1000 * (own - bare) for own, bare in pairs])
            bare = median_interval([1000 * bare for _, bare in pairs])
            print(f"bare sbatch {bare} ms; {asked} submissions for {2 * (PAIRS + 1)} jobs")
            if asked != 2 * (PAIRS + 1):
                print("MISSED one request per job")
                sys.exit(1)
            conclude("stoker submit over sbatch", added, limit=LIMIT_MS, unit="ms")
    finally:
        subprocess.run([BIN / "stoker", "lab", "down", "--name", lab], capture_output=True)


if __name__ == "__main__":
    main()
