"""stoker.profile: how long each step of a training loop waits for data, copies, computes, ...: for `stoker profile`."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from stoker.errors import InvalidError
from stoker.profiling_tools import open_tool

Batch = TypeVar("Batch")

# The parts of a step, as in src/profile/parts.h; the rest of it is the last one.
PARTS = ("data", "host_to_device", "forward", "backward", "communication", "optimizer", "checkpoint")
_DATA, _OTHER = 0, len(PARTS)
_HEADER = ",".join(["time", "step", *(f"{part}_s" for part in PARTS), "step_s"]) + "\n"
# Later steps are not recorded: a file of about 100 MB.
MAX_STEPS = 1_000_000

_last_steps: dict[Path, int] = {}  # of the files that this process has begun


class Profile:
    """Made by stoker.profile(). For the thread that runs the loop."""

    def __init__(self, folder: str | os.PathLike[str] | None, synchronize: bool | None) -> None:
        self._path = _path(folder)
        self._synchronize = synchronize
        self._sync: Callable[[], Any] | None = None
        self._fd = -1
        self._step = 0
        self._nanos = [0] * (len(PARTS) + 1)
        self._current = _OTHER
        self._outer: list[int] = []
        self._since = time.perf_counter_ns()
        self._tool = open_tool(self._path.parent if self._path else Path(), _rank())
        self._parts = {name: _Part(self, index) for index, name in enumerate(PARTS)}

    def __enter__(self) -> "Profile":
        if self._path is not None:
            self._open(self._path)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._path is not None and self._fd >= 0:
            _last_steps[self._path] = self._step
        self._close()
        if self._tool is not None:
            self._tool.close()

    def steps(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Iterates over batches, one a step. Fetching the next one is the wait for data."""
        iterator = iter(batches)
        self._begin_step()
        while True:
            self._switch(_DATA)
            try:
                batch = next(iterator)
            except StopIteration:
                self._switch(_OTHER)
                return
            self._switch(_OTHER)
            yield batch
            self._end_step()
            self._begin_step()

    def part(self, name: str) -> "_Part":
        """A context manager: the time inside counts for the part, without the time in parts that it contains.

        Names: "data", "host_to_device", "forward", "backward", "communication", "optimizer", "checkpoint"."""
        try:
            return self._parts[name]
        except (KeyError, TypeError):
            names = ", ".join(f"'{part}'" for part in PARTS)
            raise InvalidError(f"stoker.profile: no part {name!r} (one of: {names})") from None

    def _switch(self, part: int) -> None:
        if self._sync is not None:
            self._sync()
        now = time.perf_counter_ns()
        self._nanos[self._current] += now - self._since
        self._since, self._current = now, part

    def _begin_step(self) -> None:
        if self._tool is not None:
            self._tool.before(self._step + 1)
        self._sync = self._device_sync()
        self._switch(_OTHER)
        self._nanos = [0] * (len(PARTS) + 1)
        self._outer.clear()

    def _end_step(self) -> None:
        self._switch(_OTHER)
        self._step += 1
        if self._tool is not None:
            self._tool.after(self._step)
        if self._fd < 0:
            return
        seconds = [f"{1e-9 * nanos:.9f}" for nanos in self._nanos[:_OTHER]]
        row = ",".join([f"{time.time():.6f}", str(self._step), *seconds, f"{1e-9 * sum(self._nanos):.9f}"]) + "\n"
        self._write(row)
        if self._step == MAX_STEPS:
            self._stop(f"steps after {MAX_STEPS} are not recorded")

    def _device_sync(self) -> Callable[[], Any] | None:
        """Kernels run after their launch returns: without waiting for them, their time counts for a later part."""
        torch = sys.modules.get("torch")
        if torch is None or self._synchronize is False:
            return None
        return torch.cuda.synchronize if torch.cuda.is_initialized() else None

    def _open(self, path: Path) -> None:
        is_known = path in _last_steps
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, flags if is_known else flags | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            is_taken = isinstance(error, FileExistsError) and path.exists()
            why = "another process of this rank records its steps there" if is_taken else error.strerror
            self._stop(f"{path}: {why}; steps are not recorded")
            return
        if is_known:
            self._step = _last_steps[path]
        else:
            self._write(_HEADER)

    def _write(self, text: str) -> None:
        """One write(2) for each row: after kill -9 the file has whole rows, and at most one torn row at its end."""
        try:
            if os.write(self._fd, text.encode()) == len(text):
                return
            problem = "the disk is full"
        except OSError as error:
            problem = str(error.strerror)
        self._stop(f"{self._path}: {problem}; later steps are not recorded")

    def _stop(self, why: str) -> None:
        print(f"stoker.profile: {why}", file=sys.stderr)
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class _Part:
    """A part of one profile; may be entered again while it is open."""

    __slots__ = ("_index", "_profile")

    def __init__(self, profile: Profile, index: int) -> None:
        self._profile = profile
        self._index = index

    def __enter__(self) -> None:
        profile = self._profile
        profile._outer.append(profile._current)
        profile._switch(self._index)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        outer = self._profile._outer
        # A part that is open at the end of its step ends there.
        self._profile._switch(outer.pop() if outer else _OTHER)


def profile(folder: str | os.PathLike[str] | None = None, *, synchronize: bool | None = None) -> Profile:
    """Records where the time of the steps of a training loop goes, for `stoker profile RUN`.

        with stoker.profile() as p:
            for images, labels in p.steps(loader):
                with p.part("forward"):
                    loss = model(images, labels)
                with p.part("backward"):
                    loss.backward()
                with p.part("optimizer"):
                    optimizer.step()

    In a run, each rank writes one row a step to its attempt's folder. Outside a run, `folder` receives the records of
    `stoker profile FOLDER`. Where torch uses a GPU, each change of part waits for it, so that a part contains the work
    that it starts; synchronize=False omits that. A part costs about 2 us, a step about 10 us."""
    return Profile(folder, synchronize)


def _rank() -> int:
    rank = os.environ.get("RANK", "0")
    return int(rank) if rank.isdecimal() else 0


def _path(folder: str | os.PathLike[str] | None) -> Path | None:
    rank = _rank()
    folder = folder if folder is not None else os.environ.get("STOKER_ATTEMPT_DIR")
    if folder:
        return Path(folder).absolute() / f"profile-{rank:04}.csv"
    if rank == 0:
        print(
            "stoker.profile: steps are not recorded outside a run (STOKER_ATTEMPT_DIR is not set)\n"
            '  try: start the script with `stoker run`, or name a folder: stoker.profile("steps")',
            file=sys.stderr,
        )
    return None
