"""The cost of `stoker submit`, compared with plain `sbatch` of the same script, in a lab on this machine.

Both submit the same held job, alternating. The requests to the controller are counted by sdiag. Most of the additional time is
disk time: the run folder is synced before the job exists, so that a power failure never leaves a job without its run. The same is
measured with a snapshot of a repository of 1 000 files."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import BIN, check_limit, in_turns, median_interval, seconds_of
from on_a_lab import lab_environment
from slurm_requests import requests

LIMIT_MS = 15.0
SNAPSHOT_LIMIT_MS = 100.0
FILES = 1000
PAIRS = 30


def make_repository(folder: Path) -> None:
    for number in range(FILES):
        file = folder / f"source/part{number % 20}/module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# module {number}\n" + "value = 1\n" * 100)
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["init", "-q"], ["add", "source"], ["commit", "-qm", "sources"]):
        subprocess.run([*git, *words], cwd=folder, check=True)


def measure(folder: Path, environment: dict[str, str], what: str, limit: float, more: str = "") -> bool:
    place = {"cwd": folder, "env": environment}
    (folder / "job.yaml").write_text(f"name: bench\nrun: 'true'\nslurm: {{extra: [--hold]}}\n{more}")
    script = subprocess.run(
        [BIN / "stoker", "submit", "job.yaml", "--dry-run"], capture_output=True, text=True, check=True, **place
    ).stdout
    (folder / "job.sbatch").write_text(
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
    print(f"bare sbatch {bare} ms; {asked} requests to the controller for {2 * (PAIRS + 1)} jobs")
    is_one_each = asked == 2 * (PAIRS + 1)
    if not is_one_each:
        print("MISSED one request per job")
    return check_limit(what, added, limit=limit, unit="ms") and is_one_each


def main() -> None:
    with lab_environment() as environment, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        off, on = "code: {snapshot: false}\n", "code: {snapshot: true}\n"
        met = [measure(folder, environment, "stoker submit over sbatch", LIMIT_MS, off)]
        make_repository(folder)
        met.append(measure(folder, environment, "with a snapshot of 1 000 files", SNAPSHOT_LIMIT_MS, on))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
