"""Python functions in the queue of a Slurm cluster: stoker.submit(fn, *args, nodes=2) and what becomes of it. Everything
goes through `stoker submit`, so that such a run is one like all others: status, logs, cancel, resume and report know it."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict, Unpack

from stoker import call as calls
from stoker import command
from stoker.errors import CancelledError, InvalidError, StokerError, WaitTimeoutError

# The job file's keys, by the names that submit's keywords have.
_KEYS = {
    "name": ("name",),
    "working_directory": ("working_directory",),
    "nodes": ("resources", "nodes"),
    "ranks_per_node": ("resources", "ranks_per_node"),
    "ranks": ("resources", "ranks"),
    "cpus_per_rank": ("resources", "cpus_per_rank"),
    "gpus_per_rank": ("resources", "gpus_per_rank"),
    "ranks_per_gpu": ("resources", "ranks_per_gpu"),
    "memory_per_node": ("resources", "memory_per_node"),
    "time": ("resources", "time"),
    "account": ("slurm", "account"),
    "partition": ("slurm", "partition"),
    "qos": ("slurm", "qos"),
    "reservation": ("slurm", "reservation"),
    "extra": ("slurm", "extra"),
    "launcher": ("launcher",),
    "runs": ("record", "directory"),
    "variables": ("environment", "variables"),
}
_ENDED = {"done", "failed", "stopped", "cancelled", "timeout", "out of memory", "node failed", "preempted", "lost"}
_FIRST_QUESTION_S, _LONGEST_PAUSE_S = 1.0, 15.0
# What a node has written a shared filesystem may show so much later.
_SETTLES_S = 5.0


class Settings(TypedDict, total=False):
    """The keywords of submit: keys of the job file."""

    name: str
    working_directory: str | os.PathLike[str]
    nodes: int
    ranks_per_node: int
    ranks: int
    cpus_per_rank: int
    gpus_per_rank: int
    ranks_per_gpu: int
    memory_per_node: str
    time: str
    account: str
    partition: str
    qos: str
    reservation: str
    extra: list[str]
    launcher: str
    runs: str | os.PathLike[str]
    variables: Mapping[str, str]


class FailedRunError(StokerError, RuntimeError):
    """The run ended without an answer: a signal, no memory, no time, a lost node."""


class _Watch:
    """What is asked about a run, for all futures that belong to it: ever more seldom."""

    def __init__(self, run: str, folder: Path):
        self.run = run
        self.folder = folder
        self.state = ""
        self.reason = ""
        self.over_since: float | None = None
        self._next = time.monotonic() + _FIRST_QUESTION_S
        self._pause = _FIRST_QUESTION_S

    def ask(self) -> str:
        (run,) = command.ask("status", str(self.folder))["runs"]
        self.state, self.reason = run["state"], run["reason"] or ""
        if self.state in _ENDED:
            self.over_since = self.over_since or time.monotonic()
        return self.state

    def is_over(self) -> bool:
        """As far as was asked: a question comes after a pause that grows."""
        if self.over_since is None and time.monotonic() >= self._next:
            self.ask()
            self._next = time.monotonic() + self._pause
            self._pause = min(1.5 * self._pause, _LONGEST_PAUSE_S)
        return self.over_since is not None

    def has_settled(self) -> bool:
        """It is over, and what its nodes have written last is seen."""
        settles = _SETTLES_S if self.state == "done" else _SETTLES_S / 10
        return self.is_over() and time.monotonic() - (self.over_since or 0) > settles

    def hurry(self) -> None:
        self._next = 0

    @property
    def pause_s(self) -> float:
        return 0.02 if self._pause < 2 else 0.1


class Future:
    """A call that was submitted. Waiting looks at the run's own files, and asks Slurm ever more seldom."""

    def __init__(self, watch: _Watch, job: str, world_size: int = 1):
        self._watch = watch
        self.run = watch.run
        self.folder = watch.folder
        self.job = job
        self.world_size = world_size

    def __repr__(self) -> str:
        return f"<stoker.Future {self.run} job {self.job}>"

    def state(self) -> str:
        """As `stoker status` says it now: "queued", "running", "done", "failed", ..."""
        return self._watch.ask()

    def done(self) -> bool:
        """Whether there is an answer, or will be none. Slurm is asked at most once a second, later more seldom."""
        return self._answers() is not None or self._why_none() is not None or self._watch.is_over()

    def running(self) -> bool:
        return not self.done() and self.state() == "running"

    def cancel(self) -> bool:
        """Ends it, in the queue or while it runs; False when it was over before."""
        if self.done():
            return False
        command.ask("cancel", str(self.folder))
        self._watch.hurry()
        return True

    def cancelled(self) -> bool:
        return self._answers() is None and self._watch.is_over() and self._watch.state == "cancelled"

    def result(self, timeout: float | None = None) -> Any:
        """What the function gave, on rank 0 where there are several. Raises what it raised, with the traceback of the other
        process as its cause; FailedRunError when it left no answer, CancelledError, and WaitTimeoutError after `timeout` s."""
        return self.results(timeout)[0]

    def results(self, timeout: float | None = None) -> list[Any]:
        """What the function gave on every rank, in their order; raises as `result` does."""
        return [calls.read_answer(answer) for answer in self._wait(timeout)]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What `result` would raise, or None. A timeout is raised."""
        try:
            self.result(timeout)
        except WaitTimeoutError:
            raise
        except BaseException as error:
            return error
        return None

    def log(self, rank: int = 0) -> str:
        """What that rank has printed so far in the last attempt that began; empty before there is a log."""
        logs = sorted(
            self.folder.glob(f"attempts/*/rank-{rank:04}.log"), key=lambda log: int(log.parent.name), reverse=True
        )
        return logs[0].read_text(errors="replace") if logs else ""

    def _answers(self) -> list[bytes] | None:
        """Of all ranks, or of the one that failed first; None while some are missing and none failed."""
        files = [self.folder / f"result-{rank:04}.pkl" for rank in range(self.world_size)]
        there = [file for file in files if file.exists()]
        failed = [file for file in there if calls.is_failure(file)]
        if failed:
            return [min(failed, key=lambda file: file.stat().st_mtime_ns).read_bytes()]
        return [file.read_bytes() for file in files] if len(there) == len(files) else None

    def _why_none(self) -> str | None:
        """Why there will be no answer, where the call's own records tell."""
        return None

    def _wait(self, timeout: float | None) -> list[bytes]:
        end = None if timeout is None else time.monotonic() + timeout
        while (answers := self._answers()) is None:
            if self._why_none() is not None or self._watch.has_settled():
                raise self._failure()
            if end is not None and time.monotonic() >= end:
                said = self._watch.state or "submitted"
                raise WaitTimeoutError(f"{self._name()}: no result within {timeout:g} s ({said})")
            time.sleep(self._watch.pause_s)
        return answers

    def _name(self) -> str:
        return f"run {self.run}"

    def _failure(self) -> StokerError:
        why = self._why_none() or self._watch.reason
        state = "failed" if self._why_none() else self._watch.state
        said = f"{self._name()}: {state}" + (f" ({why})" if why else "")
        if state == "cancelled":
            return CancelledError(said)
        return FailedRunError(f"{said}\n  try: stoker logs {self.run}")


class TaskFuture(Future):
    """One call of map_array: a task of the array, whose own record says how it ended."""

    def __init__(self, watch: _Watch, job: str, task: int):
        super().__init__(watch, job)
        self.task = task

    def __repr__(self) -> str:
        return f"<stoker.TaskFuture {self.run} task {self.task}>"

    def cancel(self) -> bool:
        """Tasks end together: cancels the whole array. False when it was over before."""
        return super().cancel()

    def log(self, rank: int = 0) -> str:
        """What the task has printed so far; empty before there is a log."""
        file = self.folder / f"tasks/{self.task:05}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def _answers(self) -> list[bytes] | None:
        answer, _ = calls.find_task_answer(self.folder, self.task)
        return None if answer is None else [answer]

    def _why_none(self) -> str | None:
        answer, why = calls.find_task_answer(self.folder, self.task)
        return why if answer is None else None

    def _name(self) -> str:
        return f"run {self.run}: task {self.task}"


def map_array(
    function: Callable[..., Any],
    items: Iterable[Any],
    /,
    *,
    at_once: int | None = None,
    job: Mapping[str, Any] | None = None,
    **settings: Unpack[Settings],
) -> list[TaskFuture]:
    """Puts `function(item)` into the queue for each item, as tasks of one array of which at most `at_once` run at a time; a
    future for each, in the order of the items. One process each; the other keywords are those of submit."""
    arguments: list[calls.Arguments] = [((item,), {}) for item in items]
    if not arguments:
        return []
    described = _job(function, settings, job)
    array = described.setdefault("array", {})
    if at_once is not None:
        array["at_once"] = at_once
    watch, job_id = _submit(described, function, arguments)
    return [TaskFuture(watch, job_id, task) for task in range(1, len(arguments) + 1)]


def submit(
    function: Callable[..., Any],
    /,
    *arguments: Any,
    kwargs: Mapping[str, Any] | None = None,
    job: Mapping[str, Any] | None = None,
    **settings: Unpack[Settings],
) -> Future:
    """Puts `function(*arguments, **kwargs)` into the queue; every rank of the job calls it. The other keywords are keys of the
    job file by their last name (nodes=2, time="1h", partition="gpu"); `job` is a job file as a dict, for all other keys."""
    watch, job_id = _submit(_job(function, settings, job), function, [(arguments, dict(kwargs or {}))])
    world_size = int(json.loads((watch.folder / "run.json").read_text())["world_size"])
    return Future(watch, job_id, world_size)


def _submit(
    described: dict[str, Any], function: Callable[..., Any], arguments: list[calls.Arguments]
) -> tuple[_Watch, str]:
    """Submits the job with what it calls; the run, and Slurm's job id."""
    runs = Path(described["record"]["directory"])
    runs.mkdir(parents=True, exist_ok=True)
    written = runs / f".call-{os.getpid()}-{os.urandom(6).hex()}.pkl"
    try:
        calls.write_call(written, function, arguments)
        described["run"] = _literal(shlex.join([sys.executable, "-m", "stoker.call", str(written)]))
        with TemporaryDirectory() as folder:
            if "array" in described:
                table = Path(folder) / "calls.json"
                table.write_text(json.dumps([{"call": number} for number in range(1, len(arguments) + 1)]))
                described["array"]["over"] = str(table)
            file = Path(folder) / "job.yaml"
            file.write_text(json.dumps(described, ensure_ascii=False))
            told = command.ask("submit", str(file))
        where = Path(told["folder"])
        written.rename(where / "call.pkl")
    finally:
        written.unlink(missing_ok=True)
    return _Watch(told["run"], where), str(told["job"])


def _job(function: Callable[..., Any], settings: Settings, job: Mapping[str, Any] | None) -> dict[str, Any]:
    if calls.is_inside():
        raise InvalidError(
            "submit: is called by a script that is imported for one of its functions\n"
            '  try: put what the script does below if __name__ == "__main__":'
        )
    described: dict[str, Any] = json.loads(json.dumps(job or {}))
    for name, value in settings.items():
        if name not in _KEYS:
            raise InvalidError(f"submit: there is no keyword '{name}' (of: {', '.join(_KEYS)}; or job={{...}})")
        *groups, last = _KEYS[name]
        place = described
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = os.fspath(value) if isinstance(value, os.PathLike) else value
    described.setdefault("name", _name_of(function))
    described["working_directory"] = os.path.abspath(described.get("working_directory", "."))
    record = described.setdefault("record", {})
    record["directory"] = os.path.abspath(record.get("directory", "runs"))
    variables = described.setdefault("environment", {}).setdefault("variables", {})
    own = str(Path(__file__).absolute().parents[1])
    path = variables.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    variables["PYTHONPATH"] = own if not path else f"{own}:{path}"
    escaped: dict[str, Any] = _literal(described)
    return escaped


def _literal(value: Any) -> Any:
    """With texts that mean themselves: a job file has references in `${...}`."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {name: _literal(each) for name, each in value.items()}
    if isinstance(value, Iterable):
        return [_literal(each) for each in value]
    return value


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)[:64].lstrip(".")
    return kept or "call"
