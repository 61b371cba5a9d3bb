"""A lab for benchmarks that need Slurm."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from measure import BIN


@contextmanager
def lab_environment(*options: str) -> Iterator[dict[str, str]]:
    """Starts a lab with these options of `stoker lab up` and yields the environment for commands. Stops it after the block.
    Without Slurm on this machine the benchmark prints a note and is skipped."""
    if shutil.which("sbatch") is None or shutil.which("slurmctld") is None:
        print("skipped: needs Slurm's commands and daemons (Debian: slurm-wlm)")
        sys.exit(0)
    name = f"b{os.getpid()}"
    up = [BIN / "stoker", "lab", "up", "--name", name, *options, "--owner", str(os.getpid()), "--json"]
    described = json.loads(subprocess.run(up, capture_output=True, text=True, check=True).stdout)
    try:
        yield dict(os.environ) | {"SLURM_CONF": described["slurm_conf"]}
    finally:
        subprocess.run([BIN / "stoker", "lab", "down", "--name", name], capture_output=True)
