"""Python functions as Slurm jobs: stoker.submit(fn, *args, nodes=2) and its future. Uses `stoker submit`, so that status, logs,
cancel, resume and report work as for every run."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypedDict

from stoker import call as calls
from stoker import command
from stoker.errors import CancelledError, InvalidError, StokerError, WaitTimeoutError

if TYPE_CHECKING:
    from typing_extensions import Unpack  # in typing since Python 3.11; type checkers have both

# Keys of the job file, by keyword of submit().
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
_FIRST_POLL_S, _MAX_POLL_INTERVAL_S = 1.0, 15.0
# Delay until a shared filesystem shows a node's last writes.
_SETTLE_S = 5.0


class Settings(TypedDict, total=False):
    """Keywords of submit(): keys of the job file."""

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
    """The run ended without a result: a signal, out of memory, a time limit, a lost node."""


class _RunPoller:
    """Polls the status of a run for all its futures, with growing intervals."""

    def __init__(self, run: str, folder: Path):
        self.run = run
        self.folder = folder
        self.state = ""
        self.reason = ""
        self.over_since: float | None = None
        self._next = time.monotonic() + _FIRST_POLL_S
        self._pause = _FIRST_POLL_S

    def poll(self) -> str:
        (run,) = command.run_json("status", str(self.folder))["runs"]
        self.state, self.reason = run["state"], run["reason"] or ""
        if self.state in _ENDED:
            self.over_since = self.over_since or time.monotonic()
        return self.state

    def is_over(self) -> bool:
        """Whether the run has ended, according to the last poll. Polls after a growing interval."""
        if self.over_since is None and time.monotonic() >= self._next:
            self.poll()
            self._next = time.monotonic() + self._pause
            self._pause = min(1.5 * self._pause, _MAX_POLL_INTERVAL_S)
        return self.over_since is not None

    def is_settled(self) -> bool:
        """Whether the run has ended and the last writes of its nodes are visible."""
        settles = _SETTLE_S if self.state == "done" else _SETTLE_S / 10
        return self.is_over() and time.monotonic() - (self.over_since or 0) > settles

    def poll_now(self) -> None:
        self._next = 0

    @property
    def pause_s(self) -> float:
        return 0.02 if self._pause < 2 else 0.1


class Future:
    """A submitted call. Waiting checks the run's files, and polls Slurm with growing intervals."""

    def __init__(self, poller: _RunPoller, job: str, world_size: int = 1):
        self._poller = poller
        self.run = poller.run
        self.folder = poller.folder
        self.job = job
        self.world_size = world_size

    def __repr__(self) -> str:
        return f"<stoker.Future {self.run} job {self.job}>"

    def state(self) -> str:
        """The current state as in `stoker status`: "queued", "running", "done", "failed", ..."""
        return self._poller.poll()

    def done(self) -> bool:
        """Whether the call has ended, with or without a result. Polls Slurm at most once per second, later less often."""
        return self._answers() is not None or self._failure_reason() is not None or self._poller.is_over()

    def running(self) -> bool:
        return not self.done() and self.state() == "running"

    def cancel(self) -> bool:
        """Cancels the queued or running call; False if it has already ended."""
        if self.done():
            return False
        command.run_json("cancel", str(self.folder))
        self._poller.poll_now()
        return True

    def cancelled(self) -> bool:
        return self._answers() is None and self._poller.is_over() and self._poller.state == "cancelled"

    def result(self, timeout: float | None = None) -> Any:
        """The function's return value, of rank 0 if there are several. Raises the function's exception, with the remote
        traceback as its cause; FailedRunError without a result, CancelledError, or WaitTimeoutError after `timeout`
        seconds."""
        return self.results(timeout)[0]

    def results(self, timeout: float | None = None) -> list[Any]:
        """Return values of all ranks, in rank order. Raises like result()."""
        return [calls.read_answer(answer) for answer in self._wait(timeout)]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The exception that result() would raise, or None. A timeout is raised."""
        try:
            self.result(timeout)
        except WaitTimeoutError:
            raise
        except BaseException as error:
            return error
        return None

    def log(self, rank: int = 0) -> str:
        """The rank's output so far in the latest attempt; empty without a log."""
        logs = sorted(
            self.folder.glob(f"attempts/*/rank-{rank:04}.log"), key=lambda log: int(log.parent.name), reverse=True
        )
        return logs[0].read_text(errors="replace") if logs else ""

    def _answers(self) -> list[bytes] | None:
        """Answers of all ranks, or only of the first failed one; None while some are missing and none has failed."""
        files = [self.folder / f"result-{rank:04}.pkl" for rank in range(self.world_size)]
        there = [file for file in files if file.exists()]
        failed = [file for file in there if calls.is_failure(file)]
        if failed:
            return [min(failed, key=lambda file: file.stat().st_mtime_ns).read_bytes()]
        return [file.read_bytes() for file in files] if len(there) == len(files) else None

    def _failure_reason(self) -> str | None:
        """The reason for a missing answer, if recorded."""
        return None

    def _wait(self, timeout: float | None) -> list[bytes]:
        end = None if timeout is None else time.monotonic() + timeout
        while (answers := self._answers()) is None:
            if self._failure_reason() is not None or self._poller.is_settled():
                raise self._failure()
            if end is not None and time.monotonic() >= end:
                text = self._poller.state or "submitted"
                raise WaitTimeoutError(f"{self._name()}: no result within {timeout:g} s ({text})")
            time.sleep(self._poller.pause_s)
        return answers

    def _name(self) -> str:
        return f"run {self.run}"

    def _failure(self) -> StokerError:
        why = self._failure_reason() or self._poller.reason
        state = "failed" if self._failure_reason() else self._poller.state
        text = f"{self._name()}: {state}" + (f" ({why})" if why else "")
        if state == "cancelled":
            return CancelledError(text)
        return FailedRunError(f"{text}\n  try: stoker logs {self.run}")


class TaskFuture(Future):
    """One call of map_array(): a task of the array, with its own record."""

    def __init__(self, poller: _RunPoller, job: str, task: int):
        super().__init__(poller, job)
        self.task = task

    def __repr__(self) -> str:
        return f"<stoker.TaskFuture {self.run} task {self.task}>"

    def cancel(self) -> bool:
        """Cancels the whole array; False if it has already ended."""
        return super().cancel()

    def log(self, rank: int = 0) -> str:
        """The task's output so far; empty without a log."""
        file = self.folder / f"tasks/{self.task:05}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def _answers(self) -> list[bytes] | None:
        answer, _ = calls.find_task_answer(self.folder, self.task)
        return None if answer is None else [answer]

    def _failure_reason(self) -> str | None:
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
    **settings: "Unpack[Settings]",
) -> list[TaskFuture]:
    """Submits `function(item)` for each item as tasks of one job array; at most `at_once` run at the same time. Returns a
    future for each, in the order of the items. Each task is one process; the other keywords are as in submit()."""
    arguments: list[calls.Arguments] = [((item,), {}) for item in items]
    if not arguments:
        return []
    described = _job(function, settings, job)
    array = described.setdefault("array", {})
    if at_once is not None:
        array["at_once"] = at_once
    poller, job_id = _submit(described, function, arguments)
    return [TaskFuture(poller, job_id, task) for task in range(1, len(arguments) + 1)]


def submit(
    function: Callable[..., Any],
    /,
    *arguments: Any,
    kwargs: Mapping[str, Any] | None = None,
    job: Mapping[str, Any] | None = None,
    **settings: "Unpack[Settings]",
) -> Future:
    """Submits `function(*arguments, **kwargs)`; every rank of the job calls it. The other keywords are keys of the job file by
    their last name (nodes=2, time="1h", partition="gpu"). `job` is a job file as a dict, for all other keys."""
    poller, job_id = _submit(_job(function, settings, job), function, [(arguments, dict(kwargs or {}))])
    world_size = int(json.loads((poller.folder / "run.json").read_text())["world_size"])
    return Future(poller, job_id, world_size)


def _submit(
    described: dict[str, Any], function: Callable[..., Any], arguments: list[calls.Arguments]
) -> tuple[_RunPoller, str]:
    """Submits the job with its calls; returns the run and Slurm's job id."""
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
            answer = command.run_json("submit", str(file))
        where = Path(answer["folder"])
        written.rename(where / "call.pkl")
    finally:
        written.unlink(missing_ok=True)
    return _RunPoller(answer["run"], where), str(answer["job"])


def _job(function: Callable[..., Any], settings: Settings, job: Mapping[str, Any] | None) -> dict[str, Any]:
    if calls.is_inside():
        raise InvalidError(
            "submit: called while the script is imported for one of its functions\n"
            '  try: move the call below if __name__ == "__main__":'
        )
    described: dict[str, Any] = json.loads(json.dumps(job or {}))
    for name, value in settings.items():
        if name not in _KEYS:
            raise InvalidError(f"submit: unknown keyword '{name}' (one of: {', '.join(_KEYS)}; or job={{...}})")
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
    """Escapes strings: job files have references in `${...}`."""
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
