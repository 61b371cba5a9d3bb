"""A rank on two nodes exits with 7: time until the command has ended, its exit code and number of lines, for `stoker run` with srun
and with torchrun, compared with plain srun and with torchrun started by srun. The time starts at the exit of the rank."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

from measure import BIN, PYTHON, Interval, check_limit, median_interval
from two_nodes import by_hand, in_an_allocation, write_job

LIMIT_S = 1.0  # plus the grace time, which these ranks do not need
LIMIT_LINES = 10
ROUNDS = 5

_ports = itertools.count(26000 + os.getpid() % 5000)

# Both ranks have started before one exits; its peer would continue.
PROGRAM = """\
import os, pathlib, sys, time
folder, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
(folder / f"here-{rank}").touch()
while not (folder / f"here-{1 - int(rank)}").exists(): time.sleep(0.01)
if rank == "1":
    time.sleep(0.5)
    (folder / "failed").write_text(str(time.time()))
    raise SystemExit(7)
time.sleep(300)
"""


def torchrun_by_hand(program: list[str], port: int) -> list[str]:
    torchrun = f"{PYTHON} -m torch.distributed.run --nnodes=2 --nproc-per-node=1 --node-rank=$SLURM_NODEID"
    line = f"{torchrun} --master-addr=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1) --master-port={port}"
    srun = ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
    return [*srun, "bash", "-c", f"{line} {' '.join(program[1:])}"]


def failed(command: list[str | Path], folder: Path) -> tuple[float, int, int]:
    """Seconds from the rank's exit to the command's exit, the exit code, and the lines."""
    for file in folder.glob("here-*"):
        file.unlink()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=200)
    end = time.time()
    lines = len((done.stdout + done.stderr).splitlines())
    return end - float((folder / "failed").read_text()), done.returncode, lines


def measure(folder: Path) -> None:
    (folder / "fail.py").write_text(PROGRAM)
    program = [str(PYTHON), f"{folder}/fail.py", str(folder)]
    run = " ".join(program)
    ways = {
        "stoker run": lambda: [BIN / "stoker", "run", write_job(folder, "fails", run)],
        "stoker run, torchrun": lambda: [BIN / "stoker", "run", write_job(folder, "below", run, "torchrun")],
        "srun": lambda: by_hand(program, next(_ports)),
        "torchrun": lambda: torchrun_by_hand(program, next(_ports)),
    }
    seen: dict[str, list[tuple[float, int, int]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, command in ways.items():
            seen[name].append(failed(command(), folder))
    is_met = True
    for name, rounds in seen.items():
        took: Interval = median_interval([seconds for seconds, _, _ in rounds])
        codes = sorted({code for _, code, _ in rounds})
        lines = max(count for _, _, count in rounds)
        print(f"       {name}: {took} s, exit code {codes}, {lines} lines")
        if name.startswith("stoker"):
            is_met &= check_limit(f"{name}: from a rank's exit to the command's", took, LIMIT_S, "s")
            is_met &= codes == [7] and lines <= LIMIT_LINES
    print(f"{'ok' if is_met else 'MISSED':7}its exit code kept, at most {LIMIT_LINES} lines")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    in_an_allocation(measure)
