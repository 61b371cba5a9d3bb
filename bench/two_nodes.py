"""Helpers for benchmarks of launching: a lab of two nodes on this machine, and an allocation of both."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from on_a_lab import lab_environment

_INSIDE = "--inside"


def in_an_allocation(measure: Callable[[Path], None]) -> None:
    """Calls `measure(folder)` inside an allocation of two nodes, which see the folder; then stops the lab."""
    if len(sys.argv) == 3 and sys.argv[1] == _INSIDE:
        measure(Path(sys.argv[2]))
        return
    with lab_environment("--nodes", "2") as environment, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        # With tasks for two ranks per node, so that every launcher has the same cores.
        allocate = ["salloc", "--quiet", "-N2", "--ntasks-per-node=2", sys.executable, sys.argv[0], _INSIDE, folder]
        code = subprocess.run(allocate, env=environment).returncode
    sys.exit(code)


def write_job(folder: Path, name: str, run: str, launcher: str = "srun", more: str = "") -> Path:
    """A job file of one rank on each of the two nodes."""
    file = folder / f"{name}.yaml"
    file.write_text(
        f"name: {name}\nrun: {json.dumps(run)}\nresources: {{nodes: 2}}\nlauncher: {launcher}\n"
        f"record: {{directory: {folder}/runs}}\n{more}"
    )
    return file


def by_hand(program: list[str], port: int) -> list[str]:
    """srun with the variables recommended by PyTorch's documentation."""
    variables = (
        "export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=1 "
        "NODE_RANK=$SLURM_NODEID OMP_NUM_THREADS=1 MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1) "
        f"MASTER_PORT={port}"
    )
    srun = ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
    return [*srun, "bash", "-c", f'{variables}; exec "$@"', "rank", *program]
