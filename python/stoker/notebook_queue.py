"""display_slurm_queue and gpu_jobs_submitter: the queue, and jobs of several GPUs."""

import os
import re
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import index
from pathlib import Path
from typing import Any

from stoker import command
from stoker.errors import InvalidError, NotFoundError, UnavailableError
from stoker.notebook_logs import FOLDER, displays

# The controller may be busy for some queries in a row.
_MAX_FAILURES = 5
# Reasons of squeue with which a job does not start unless somebody changes something.
_STUCK = re.compile(
    r"^ *(\S+) .*\((PartitionConfig|PartitionNodeLimit|PartitionTimeLimit|BadConstraints|DependencyNeverSatisfied|"
    r"AccountNotAllowed|InvalidAccount|InvalidQOS|QOSNotAllowed|JobHeldUser|JobHeldAdmin)\) *$",
    re.MULTILINE,
)
# Modules that come before the job's own, by the GPUs of Jean Zay.
_ARCHITECTURES = {"a100": "arch/a100", "h100": "arch/h100"}


def display_slurm_queue(name: str | None = None, timestep: float = 5) -> None:
    """Shows your jobs in the queue, refreshed every `timestep` seconds, until none is left. `name` selects jobs by their name.
    Interrupt the cell to stop earlier; the jobs continue."""
    if isinstance(timestep, bool) or not isinstance(timestep, int | float) or not timestep > 0:
        raise InvalidError(f"display_slurm_queue: timestep={timestep!r}: must be a number of seconds above 0")
    shown, failures = "", 0
    try:
        while True:
            try:
                table = _queue(name)
                failures = 0
            except UnavailableError:
                failures += 1
                if failures >= _MAX_FAILURES or not shown:
                    raise
                time.sleep(timestep)
                continue
            if table.count("\n") < 2:
                break
            notes = [
                f"job {job} does not start: {reason}      stoker explain {job}\n"
                for job, reason in _STUCK.findall(table)
            ]
            table += "".join(notes)
            _show(table, shown)
            shown = table
            time.sleep(timestep)
    except KeyboardInterrupt:
        print("interrupted: the jobs continue")
        return
    print("\n Done!")


def _show(table: str, shown: str) -> None:
    if (display := displays()) is not None:
        display.clear_output(wait=True)
        print(table, end="")
    elif table != shown:
        print(table, end="", flush=True)


def _queue(name: str | None) -> str:
    words = ["squeue", f"--user={os.geteuid()}"] + ([f"--name={name}"] if name else [])
    return _slurm(words)


def _slurm(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    except FileNotFoundError:
        raise UnavailableError(
            f"{words[0]}: program not found in PATH (is this a machine with Slurm?)\n"
            '  try: stoker lab up, then eval "$(stoker lab env)" and start Jupyter in the same shell'
        ) from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{words[0]}: no answer within 2 min") from None
    if done.returncode != 0:
        raise UnavailableError(f"{words[0]}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


@dataclass(frozen=True)
class _Node:
    """The nodes that jobs of some account, partition or constraint get."""

    gpus: int
    cores_per_gpu: int
    options: tuple[str, ...] = ()
    gpu: str = ""
    is_jean_zay: bool = False


@dataclass(frozen=True)
class _Shape:
    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    cpus_per_task: int


def gpu_jobs_submitter(
    srun_commands: str | Sequence[str],
    n_gpu: int | Sequence[int] = 1,
    module: str | None = None,
    singularity: str | None = None,
    name: str | None = None,
    n_gpu_per_task: int = 1,
    time_max: str = "02:00:00",
    qos: str | None = None,
    partition: str | None = None,
    constraint: str | None = None,
    cpus_per_task: int | None = None,
    exclusive: bool = False,
    account: str | None = None,
    verbose: int = 0,
    email: str | None = None,
    slurm_addon: str | None = None,
    script_addon: str | None = None,
) -> list[str]:
    """Submits a job for each command and each number of GPUs. Returns the ids of the jobs.

    The batch scripts are slurm/NAME.slurm, the logs slurm/log/NAME@JZ_JOB_....out and .err. Each job is also a run of Stoker:
    `stoker status`, `explain` and `report` know it by its id. A refused job raises the error of `stoker submit`; the jobs
    before it stay in the queue.

    srun_commands: a command or a list of them; a command that begins with a .py file runs with `python -u`
    n_gpu: GPUs of each job, or a list; 0 for a job of one task without GPUs. More GPUs than a node has: a multiple of them
    module, singularity: environment module to load, or .sif image in $SINGULARITY_ALLOWED_DIR; not both
    name: of the jobs; by default that of the script
    n_gpu_per_task: GPUs of each task
    cpus_per_task: by default the share of the task's GPUs in the cores of the node
    verbose: 1 makes NCCL log its collectives, for comm_profiler
    slurm_addon, script_addon: further #SBATCH lines, and lines before the command"""
    commands = [srun_commands] if isinstance(srun_commands, str) else list(srun_commands)
    sizes = [_whole("n_gpu", size, 0) for size in (n_gpu if isinstance(n_gpu, Iterable) else [n_gpu])]
    per_task = _whole("n_gpu_per_task", n_gpu_per_task, 1)
    names = [_name(text, name) for text in commands]
    header = _header(qos, exclusive, account, email, slurm_addon)
    node = _find_node(partition, constraint, account) if any(sizes) else _Node(0, 1)
    body = _environment(
        module, singularity, _ARCHITECTURES.get(node.gpu) if node.is_jean_zay else None, verbose, script_addon
    )
    shapes = [_shape(size, per_task, cpus_per_task, node) for size in sizes]
    place = (
        _placement(node, partition, constraint) if any(sizes) else _options(partition=partition, constraint=constraint)
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    ids = []
    for number, (size, shape) in enumerate(zip(sizes, shapes, strict=True)):
        print(f"batch job {number * len(commands)}: {_describe(size, shape)}")
        for text, each in zip(commands, names, strict=True):
            file = Path("slurm") / f"{each}.slurm"
            lines = [*_resources(each, shape, time_max), *place, *header]
            file.write_text("\n".join(["#!/bin/bash", *lines, "", body + _launch(text, singularity)]))
            answer = command.run_json("submit", str(file), "--set", f"name={each}", notes=print)
            ids.append(str(answer["job"]))
            print(f"Submitted batch job {ids[-1]}")
    return ids


def _name(text: str, name: str | None) -> str:
    if not isinstance(text, str) or not text.strip() or "\n" in text.strip():
        raise InvalidError(f"gpu_jobs_submitter: {text!r} is not a command of one line")
    program = next((word for word in text.split() if word.endswith(".py")), text.split()[0])
    chosen = Path(program).stem if name is None else name
    script = text.split()[0]
    if script.endswith(".py") and not re.search(r"[$~*?`]", script) and not Path(script).is_file():
        raise NotFoundError(f"gpu_jobs_submitter: {script}: no such file in {Path.cwd()}")
    if not re.fullmatch(r"[\w.+-]+", chosen) or chosen.startswith("-"):
        raise InvalidError(f"gpu_jobs_submitter: name='{chosen}': letters, digits and . _ + - only")
    return chosen


def _whole(what: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or index(value) < least:
        raise InvalidError(f"gpu_jobs_submitter: {what}={value!r}: must be an integer from {least}")
    return index(value)


def _shape(size: int, per_task: int, cpus: int | None, node: _Node) -> _Shape:
    if size == 0:
        return _Shape(1, 0, 1, cpus or 1)
    nodes = max(size // node.gpus, 1)
    if size > node.gpus and size % node.gpus:
        raise InvalidError(
            f"gpu_jobs_submitter: n_gpu={size}: must be a multiple of {node.gpus}, the GPUs of a node\n"
            f"  try: n_gpu={nodes * node.gpus}"
        )
    on_node = min(size, node.gpus)
    if on_node % per_task:
        raise InvalidError(
            f"gpu_jobs_submitter: n_gpu_per_task={per_task}: {on_node} GPUs of a node cannot be divided by it"
        )
    return _Shape(nodes, on_node, on_node // per_task, cpus or per_task * node.cores_per_gpu)


def _describe(size: int, shape: _Shape) -> str:
    def count(number: int, word: str) -> str:
        return f"{number} {word}" if number == 1 else f"{number} {word}s"

    return (
        f"{count(size, 'GPU')} distributed on {count(shape.nodes, 'node')} with {count(shape.tasks_per_node, 'task')} / "
        f"{count(shape.gpus_per_node, 'gpu')} per node and {count(shape.cpus_per_task, 'cpu')} per task"
    )


def _find_node(partition: str | None, constraint: str | None, account: str | None) -> _Node:
    """From the profile of the site, else from the nodes of the partition."""
    site = command.run_json("site", "show")
    node = _profiled(site, partition, constraint, account)
    return node or _counted(partition)


def _profiled(site: dict[str, Any], partition: str | None, constraint: str | None, account: str | None) -> _Node | None:
    default = next((each for each, facts in site["partitions"].items() if facts["default_for"] == "gpu"), None)
    kind = (account or "").rpartition("@")[2]

    def rank(facts: dict[str, Any]) -> tuple[bool, bool, bool, bool, int]:
        """What the user asked for decides before the default, and of equal nodes the ones that need fewer options."""
        return (
            bool(partition) and str(partition).startswith(facts["partition"]),
            bool(constraint) and f"-C {constraint}" in facts["options"],
            facts["gpu"] == kind,
            facts["partition"] == default,
            -len(facts["options"]),
        )

    known = [facts for facts in site["nodes"].values() if facts["gpus"] and facts["cores_per_gpu"]]
    best = max(known, key=rank, default=None)
    if best is None or not any(rank(best)[:1] if partition else rank(best)[:4]):
        return None
    return _Node(
        int(best["gpus"]),
        int(best["cores_per_gpu"]),
        tuple(best["options"]),
        str(best["gpu"]),
        site["name"] == "jean-zay",
    )


def _counted(partition: str | None) -> _Node:
    """The most GPUs that a node of the partition has, and its cores for each. Without a partition: the default one."""
    words = ["sinfo", "--noheader", "--Node", "--format=%P|%G|%c"] + ([f"--partition={partition}"] if partition else [])
    best = (0, 0)
    for line in _slurm(words).splitlines():
        where, resources, cores = line.split("|")
        gpus = sum(int(count) for count in re.findall(r"\bgpu(?::[^:,()]+)?:(\d+)", resources))
        if (partition or where.endswith("*")) and gpus:
            best = max(best, (gpus, int(re.sub(r"\D", "", cores)) // gpus))
    if best[0] == 0:
        where = f"partition '{partition}'" if partition else "the default partition"
        raise InvalidError(
            f"gpu_jobs_submitter: {where} has no GPUs\n  try: partition=... with one of `sinfo`, or n_gpu=0 for a job without"
        )
    return _Node(best[0], max(best[1], 1))


def _options(**values: str | None) -> list[str]:
    for name, value in values.items():
        if value is not None and not re.fullmatch(r"[^\s#\"'$`\\]+", str(value)):
            raise InvalidError(f"gpu_jobs_submitter: {name}={value!r}: must be one word")
    return [f"#SBATCH --{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]


def _placement(node: _Node, partition: str | None, constraint: str | None) -> list[str]:
    site = [f"#SBATCH {option}" for option in node.options if not (constraint and option.startswith("-C "))]
    return [*site, *_options(partition=partition, constraint=constraint)]


def _resources(name: str, shape: _Shape, time_max: str) -> list[str]:
    start = datetime.now().strftime("%Y-%m-%d_%H.%M.%S")
    log = f"{FOLDER}/{name}@JZ_%j_{shape.nodes}nodes_{shape.tasks_per_node}tasks_{start}"
    gpus = [f"#SBATCH --gres=gpu:{shape.gpus_per_node}"] if shape.gpus_per_node else []
    return [
        *_options(job_name=name, output=f"{log}.out", error=f"{log}.err"),
        *gpus,
        *_options(nodes=str(shape.nodes), ntasks_per_node=str(shape.tasks_per_node), time=time_max),
        *_options(cpus_per_task=str(shape.cpus_per_task)),
    ]


def _header(qos: str | None, exclusive: bool, account: str | None, email: str | None, addon: str | None) -> list[str]:
    # Without a type of mail, Slurm sends none.
    mail = _options(mail_user=email, mail_type="ALL") if email else []
    more = (addon or "").strip().splitlines()
    for line in more:
        if line.strip() and not line.startswith("#SBATCH "):
            raise InvalidError(
                f"gpu_jobs_submitter: slurm_addon: '{line}' is no line of the form '#SBATCH --option=value'"
            )
    return [*_options(qos=qos, account=account), *(["#SBATCH --exclusive"] if exclusive else []), *mail, *more]


def _environment(
    module: str | None, singularity: str | None, architecture: str | None, verbose: int, addon: str | None
) -> str:
    if module and singularity:
        raise InvalidError("gpu_jobs_submitter: module and singularity: give one of them")
    if singularity and not singularity.endswith(".sif"):
        raise InvalidError(f"gpu_jobs_submitter: singularity='{singularity}': must be an image whose name ends in .sif")
    text = ""
    if verbose:
        text += "export NCCL_DEBUG=INFO\nexport NCCL_DEBUG_SUBSYS=INIT,COLL\n\n"
    if module or singularity:
        modules = [each for each in (architecture if module else None, module or "singularity") if each]
        text += "module purge\n" + "".join(f"module load {each}\n" for each in modules) + "\n"
    return text + (f"{addon.strip()}\n\n" if addon else "")


def _launch(text: str, singularity: str | None) -> str:
    words = text.strip()
    if words.split()[0].endswith(".py"):
        words = f"python -u {words}"
    if singularity:
        words = f"singularity exec --nv $SINGULARITY_ALLOWED_DIR/{singularity} {words}"
    # The job ends with the exit code of srun, not with that of date.
    return f"set -x\ntime srun {words}\nstatus=$?\ndate\nexit $status\n"
