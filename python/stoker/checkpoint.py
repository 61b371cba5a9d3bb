"""Checkpoints for any training loop: saved atomically, every byte verified when loaded, no pickle.

    stoker.checkpoint.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "ckpt", step=300)
    state = stoker.checkpoint.load("ckpt")

docs/python.md describes the arguments, docs/formats/checkpoint.md the format."""

import atexit
import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker import _core, checkpoint_arguments, checkpoint_tree, metrics
from stoker import checkpoint_tensors as tensors_of
from stoker.checkpoint_latest import Latest, latest
from stoker.checkpoint_load import Loaded, load
from stoker.checkpoint_tree import OPTIMIZER
from stoker.checkpoint_world import World, world
from stoker.errors import InvalidError, StokerError

__all__ = ["Latest", "Loaded", "SaveFuture", "async_save", "close", "latest", "load", "reserve", "save"]

Folder = str | os.PathLike[str]
Values = Mapping[str, "bool | int | float | str | bytes"]


@dataclass(frozen=True)
class _Options:
    keep_last: int
    keep_every: float
    keep_best: int
    metric: str
    timeout: float
    run: str | None


class SaveFuture:
    """A step being written in the background."""

    def __init__(self, saver: "_Saver", save_id: int, step: int) -> None:
        self._saver, self._save_id = saver, save_id
        self.step = step
        self.folder = saver.folder / f"step-{step}"
        self._is_reported = False

    def wait(self, timeout: float | None = None) -> Path:
        """Waits until the step is on disk on all ranks and returns its folder. Raises the error of the save, or
        stoker.WaitTimeoutError after `timeout` seconds."""
        limit = 0.0 if timeout is None else checkpoint_arguments.seconds("timeout", timeout, is_zero_allowed=True)
        try:
            self._saver.core.wait(self._save_id, limit)
        finally:
            self._is_reported = self.done()
        return self.folder

    def done(self) -> bool:
        """Whether the save has ended, successfully or not."""
        return bool(self._saver.core.is_done(self._save_id))

    def warn(self) -> None:
        """Warns about a failed step that was not waited for."""
        failure = None if self._is_reported or not self.done() else self._saver.core.failure(self._save_id)
        if failure is not None:
            self._is_reported = True
            warnings.warn(f"{self.folder}: not saved: {failure}", RuntimeWarning, stacklevel=4)


@dataclass
class _Attempts:
    """What names the saves of a folder, the same on all ranks. The generation counts savers with different options. A
    rank that could not create its saver keeps counting, since its peers may have one."""

    options: _Options
    place: World
    generation: int
    failed: dict[int, int] = field(default_factory=dict)  # saves that failed without a saver, by step


class _Saver:
    """Writes to one folder in this process."""

    def __init__(self, folder: Path, attempts: _Attempts) -> None:
        self.folder, self.attempts = folder, attempts
        self._pending: list[SaveFuture] = []
        self._known: set[int] = set()  # steps that need no further warning
        self._last: int | None = None  # step saved last
        self.core = _core.CheckpointSaver(_core_options(folder, attempts))

    @contextlib.contextmanager
    def abandons(self, step: int) -> Iterator[None]:
        """An error inside fails the save on all ranks at once: the other ranks do not wait for this one."""
        try:
            yield
        except BaseException as error:
            with contextlib.suppress(StokerError):
                self.core.abandon(step, _first_line(error))
            raise

    def warn_of_conflicts(self, step: int) -> None:
        """Warns of steps that a different training saves to the folder, and of steps that load() prefers to this one."""
        if self.attempts.place.rank != 0:
            return
        existing = set(_core.checkpoint_steps(os.fspath(self.folder)))
        newest = max(existing, default=-1)
        if newest > step and (self._last is None or step <= self._last):
            _warn(
                f"{self.folder}: step-{newest} is newer than step {step}, so load() returns step {newest} if it is intact\n"
                "  try: a new folder for a new training; after a return to an earlier step, remove the later ones"
            )
        for number in sorted(existing - self._known):
            who = _core.checkpoint_writer(os.fspath(self.folder / f"step-{number}"))
            if who is not None and who["state"] == "running":
                _warn(
                    f"{self.folder}: process {who['pid']} on {who['host']} is running and also saves to this folder "
                    f"(step {number})\n  try: a separate folder for each training"
                )
                break
        self._known |= existing | {step}
        self._last = step

    def save(
        self, memories: list[Any], rows: list[tuple[Any, ...]], step: int, state: str, values: tuple[str, str]
    ) -> SaveFuture:
        for pending in self._pending:
            pending.warn()
        self._pending = [pending for pending in self._pending if not pending.done()]
        # The memory is kept alive until the C++ part has copied it.
        save_id = self.core.save(step, rows, state, *values)
        del memories
        future = SaveFuture(self, save_id, step)
        self._pending.append(future)
        return future

    def reserve(self, flat: checkpoint_tree.Flat) -> None:
        _, rows = _memories(flat)
        self.core.reserve(rows)

    def close(self) -> None:
        try:
            self.core.finish(self.attempts.options.timeout)
        except StokerError:
            for pending in self._pending:
                pending.warn()
        self._pending = []


def _core_options(folder: Path, attempts: _Attempts) -> dict[str, Any]:
    options, place = attempts.options, attempts.place
    return {
        "directory": os.fspath(folder),
        "rank": place.rank,
        "world_size": place.size,
        "run": options.run if options.run is not None else _run_of(folder),
        "writer": f"{place.writer}-{attempts.generation}",
        "failed_attempts": attempts.failed,
        "keep_last": options.keep_last,
        "keep_every_s": options.keep_every,
        "keep_best": options.keep_best,
        "metric": options.metric,
        "timeout_s": options.timeout,
    }


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=5)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text if isinstance(error, StokerError) else f"{type(error).__name__}: {text}"


_savers: dict[Path, _Saver] = {}
_refused: dict[Path, _Attempts] = {}  # folders whose saver could not be created
_forgotten: list[_Saver] = []


def _memories(flat: checkpoint_tree.Flat) -> tuple[list[Any], list[tuple[Any, ...]]]:
    memories, rows = [], []
    for place, value in flat.tensors.items():
        memory = tensors_of.memory(value, flat.paths[place])
        memories.append(memory)
        rows.append(tensors_of.saved(memory, place[1], place[0] == OPTIMIZER))
    return memories, rows


def _run_of(folder: Path) -> str:
    """The run of existing checkpoints in the folder, otherwise a name derived from the folder."""
    for step in reversed(_core.checkpoint_steps(os.fspath(folder))):
        try:
            return str(_core.CheckpointStep(os.fspath(folder / f"step-{step}")).run)
        except StokerError:
            continue
    name = folder.name
    return name if name and name.isprintable() and name.isascii() else "python"


def _saver(
    folder: Folder,
    rank: int | None,
    world_size: int | None,
    writer: str | None,
    options: _Options,
    step: int | None = None,
) -> _Saver:
    """The saver of the folder; a new one if options change. If it cannot be created, the save of `step` fails on all
    ranks."""
    at = Path(os.path.abspath(checkpoint_arguments.folder(folder)))
    place = world(rank, world_size, writer)
    old = _savers.get(at)
    attempts = old.attempts if old is not None else _refused.get(at)
    is_same = attempts is not None and (attempts.options, attempts.place) == (options, place)
    if old is not None:
        if is_same:
            return old
        old.close()
    if attempts is None or not is_same:
        attempts = _Attempts(options, place, 0 if attempts is None else attempts.generation + 1)
    try:
        _savers[at] = _Saver(at, attempts)
        _refused.pop(at, None)
    except Exception as error:
        _savers.pop(at, None)
        _refused[at] = attempts
        if step is not None and place.size > 1:
            repeat = attempts.failed.get(step, 0)
            attempts.failed[step] = repeat + 1
            with contextlib.suppress(Exception):
                _core.report_failed_save(_core_options(at, attempts), step, repeat, _first_line(error))
        raise
    return _savers[at]


def _options(
    keep_last: int, keep_every: float, keep_best: int, metric: str, timeout: float, run: str | None
) -> _Options:
    is_negative = {"keep_last": keep_last, "keep_every": keep_every, "keep_best": keep_best}
    for name, value in is_negative.items():
        if isinstance(value, (int, float)) and value < 0:
            raise InvalidError(f"checkpoint: {name}: {value} is negative")
    keep_last = checkpoint_arguments.count("keep_last", keep_last)
    keep_best = checkpoint_arguments.count("keep_best", keep_best)
    keep_every = checkpoint_arguments.seconds("keep_every", keep_every, is_zero_allowed=True)
    metric = checkpoint_arguments.text("metric", metric)
    timeout = checkpoint_arguments.seconds("timeout", timeout)
    if run is not None:
        checkpoint_arguments.text("run", run)
    if (keep_every or keep_best) and not keep_last:
        raise InvalidError("checkpoint: keep_every and keep_best require keep_last: without it all steps are kept")
    if bool(keep_best) != bool(metric):
        raise InvalidError("checkpoint: keep_best and metric: set both or neither")
    return _Options(keep_last, keep_every, keep_best, metric, timeout, run)


def _values(name: str, values: Values | None) -> str:
    checkpoint_arguments.mapping(name, values)
    for key, value in (values or {}).items():
        if not isinstance(key, str):
            raise InvalidError(f"checkpoint: {name}: key {key!r} is {type(key).__name__}, expected str")
        if type(value) not in (bool, int, float, str, bytes):
            cure = "\n  try: its .item()" if hasattr(value, "item") else ""
            raise InvalidError(
                f"checkpoint: {name}: '{key}' is {type(value).__name__}, expected a number, str or bytes{cure}"
            )
        if type(value) is int and not -(2**63) <= value < 2**64:
            raise InvalidError(f"checkpoint: {name}: '{key}' is {value}, which is not a 64-bit number")
    return json.dumps({key: checkpoint_tree.stored_value(value) for key, value in (values or {}).items()})


def _flatten(state: Any) -> checkpoint_tree.Flat:
    if not isinstance(state, Mapping):
        raise InvalidError(f"checkpoint: state is {type(state).__name__}, expected a dict such as {{'model': ...}}")
    return checkpoint_tree.flatten(state, tensors_of.is_tensor, tensors_of.describe)


def async_save(
    state: Any,
    folder: Folder,
    *,
    step: int,
    keep_last: int = 0,
    keep_every: float = 0,
    keep_best: int = 0,
    metric: str = "",
    rank_state: Values | None = None,
    hyper_parameters: Values | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    run: str | None = None,
    writer: str | None = None,
    timeout: float = 600,
) -> SaveFuture:
    """Copies this rank's share of `state` and returns; a thread without the GIL writes it. Arguments as for save(). At
    most two steps are in flight: a third save waits for the first. If a step fails and is not waited for, the next save
    emits a RuntimeWarning."""
    number = checkpoint_arguments.whole("step", step)
    options = _options(keep_last, keep_every, keep_best, metric, timeout, run)
    saver = _saver(folder, rank, world_size, writer, options, number)
    with saver.abandons(number):
        flat = _flatten(state)
        shown = checkpoint_tree.top_level(state) | {"python": checkpoint_tree.to_text(flat.tree)}
        values = _values("rank_state", rank_state), _values("hyper_parameters", hyper_parameters)
        memories, rows = _memories(flat)
        saver.warn_of_conflicts(number)
    future = saver.save(memories, rows, number, json.dumps(shown), values)
    metrics.sync_later()
    return future


def save(
    state: Any,
    folder: Folder,
    *,
    step: int,
    keep_last: int = 0,
    keep_every: float = 0,
    keep_best: int = 0,
    metric: str = "",
    rank_state: Values | None = None,
    hyper_parameters: Values | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    run: str | None = None,
    writer: str | None = None,
    timeout: float = 600,
) -> Path:
    """Writes `state` to `folder`/step-<step>, which appears atomically when everything is on disk. Returns that folder.

    `state`: dicts, lists, tuples, numbers, str, bytes and tensors; other types are refused. With several processes (torchrun, `stoker run`: RANK
    and WORLD_SIZE) every rank calls it with its state. Large tensors are divided among the ranks; small tensors and all
    other values are rank 0's. Values that differ between ranks belong in `rank_state`. `keep_last`: number of newest
    steps to keep, 0: all. Additionally kept are the first step of every `keep_every` seconds and the `keep_best` best
    steps by `metric`, a number at the top level of the state (lower is better for a loss or an error). `run`: a folder
    with steps of a different run is an error. `timeout`: seconds that the ranks wait for each other."""
    future = async_save(
        state,
        folder,
        step=step,
        keep_last=keep_last,
        keep_every=keep_every,
        keep_best=keep_best,
        metric=metric,
        rank_state=rank_state,
        hyper_parameters=hyper_parameters,
        rank=rank,
        world_size=world_size,
        run=run,
        writer=writer,
        timeout=timeout,
    )
    written = future.wait()
    metrics.sync()
    return written


def reserve(
    state: Any,
    folder: Folder,
    *,
    keep_last: int = 0,
    keep_every: float = 0,
    keep_best: int = 0,
    metric: str = "",
    rank: int | None = None,
    world_size: int | None = None,
    run: str | None = None,
    writer: str | None = None,
    timeout: float = 600,
) -> None:
    """Allocates the memory for saves of such a state, so that the first save is as fast as later ones. The remaining
    arguments must match the saves."""
    options = _options(keep_last, keep_every, keep_best, metric, timeout, run)
    _saver(folder, rank, world_size, writer, options).reserve(_flatten(state))


def close(folder: Folder | None = None) -> None:
    """Waits for saves in flight to `folder` (default: all folders) and frees their memory. Also called at interpreter
    exit."""
    chosen = list(_savers) if folder is None else [Path(os.path.abspath(checkpoint_arguments.folder(folder)))]
    for at in chosen:
        saver = _savers.pop(at, None)
        if saver is not None:
            saver.close()


def _forget() -> None:
    for saver in _savers.values():
        saver.core.forget()
        _forgotten.append(saver)
    _savers.clear()


atexit.register(close)
os.register_at_fork(after_in_child=_forget)
