"""What the benches of training share: the same steps run by Stoker and by plain PyTorch, two ranks on this machine."""

import csv
import json
import os
import resource
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY

JOB = """
name: bench
train: {model: cifar-resnet20, epochs: 50, steps: STEPS, batch: 64, seed: 1, validate_every: 0,
        optimizer: {lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.0005}}
data: {train: {source: data, split: train}}
resources: {nodes: 1, ranks_per_node: RANKS, cpus_per_rank: 1}
checkpoint: {every: never}
"""


@dataclass
class Steps:
    """What some steps took: Unix time when the first was done, CPU seconds of all processes, peak memory of a rank."""

    first_step: float
    cpu_s: float
    peak_bytes: int
    rows: list[dict[str, float]]  # rank 0's metrics; Stoker's only


def prepare(folder: Path) -> None:
    """The shipped images, packed as folder/data."""
    with tarfile.open(REPOSITORY / "examples/cifar10/cifar10-6000.tar") as archive:
        archive.extractall(folder / "images")
    subprocess.run([BIN / "stoker", "data", "pack", "images", "data"], cwd=folder, check=True, capture_output=True)


def _peak_of_trainers(process: subprocess.Popen) -> int:
    """Waits for the run, looking at the trainers below it meanwhile: the largest VmHWM that one of them shows."""
    peak = 0
    while process.poll() is None:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "comm").read_text() != "stoker-train\n":
                    continue
                lines = (folder / "status").read_text().splitlines()
                peak = max([peak, *(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))])
            except OSError:
                continue
        time.sleep(0.1)
    return peak


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stoker_steps(folder: Path, steps: int, ranks: int = 2) -> Steps:
    """`stoker run` of so many steps, from an empty page of history: its run folder is left for the caller to read."""
    (folder / "job.yaml").write_text(JOB.replace("STEPS", str(steps)).replace("RANKS", str(ranks)))
    before = _cpu()
    process = subprocess.Popen(
        [BIN / "stoker", "run", "job.yaml"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    peak = _peak_of_trainers(process)
    if process.returncode != 0:
        raise SystemExit(f"stoker run failed: {process.stderr.read().decode()}")
    run = max((folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    tables = []
    for rank in range(ranks):
        with open(run / f"attempts/1/metrics-{rank:04}.csv") as table:
            tables.append([{name: float(value) for name, value in row.items()} for row in csv.DictReader(table)])
    return Steps(max(table[0]["time"] for table in tables), _cpu() - before, peak, tables[0])


def pytorch_steps(folder: Path, steps: int) -> Steps:
    """The same by torchrun and DistributedDataParallel; its images are made up, not read."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    script = REPOSITORY / "bench/peers/ddp_steps.py"
    before = _cpu()
    subprocess.run(
        [PYTHON.parent / "torchrun", "--standalone", "--nproc-per-node", "2", script, str(steps), folder / "ddp-"],
        env=environment,
        check=True,
        capture_output=True,
    )
    ranks = [json.loads((folder / f"ddp-{rank}").read_text()) for rank in range(2)]
    return Steps(max(r["first_step"] for r in ranks), _cpu() - before, max(r["peak_bytes"] for r in ranks), [])


def _together(commands: list[list[str | Path]], folder: Path) -> float:
    """Runs them side by side to their ends; CPU seconds of all."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    before = _cpu()
    processes = [
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit(f"{commands[0]} failed")
    return _cpu() - before


def stoker_alone(folder: Path, steps: int) -> float:
    """Two trainers side by side that know nothing of each other: CPU seconds."""
    (folder / "alone.yaml").write_text(JOB.replace("STEPS", str(steps)).replace("RANKS", "1"))
    return _together([[BIN / "stoker-train", "--job", "alone.yaml"]] * 2, folder)


def pytorch_alone(folder: Path, steps: int) -> float:
    """The same in Python."""
    script = REPOSITORY / "bench/peers/ddp_steps.py"
    return _together([[PYTHON, script, str(steps), folder / f"alone-{i}-", "--alone"] for i in range(2)], folder)
