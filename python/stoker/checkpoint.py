"""Checkpoints for any training loop: saved whole or not at all, every byte checked when they are loaded, no pickle.

    stoker.checkpoint.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "ckpt", step=300)
    state = stoker.checkpoint.load("ckpt")

docs/python.md describes the arguments, docs/formats/checkpoint.md what is on disk."""

import atexit
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker import _core, checkpoint_tree
from stoker import checkpoint_tensors as tensors_of
from stoker.checkpoint_latest import Latest, latest
from stoker.checkpoint_reading import Loaded, load
from stoker.checkpoint_tree import OPTIMIZER
from stoker.checkpoint_world import World, world
from stoker.errors import InvalidError, StokerError

__all__ = ["Latest", "Loaded", "Saving", "close", "latest", "load", "reserve", "save", "save_async"]

Folder = str | os.PathLike[str]
Values = Mapping[str, "bool | int | float | str | bytes"]


@dataclass(frozen=True)
class _Options:
    keep: int
    keep_every: float
    keep_best: int
    metric: str
    timeout: float
    run: str | None


class Saving:
    """A step that is being written in the background."""

    def __init__(self, saver: "_Saver", turn: int, step: int) -> None:
        self._saver, self._turn = saver, turn
        self.step = step
        self.folder = saver.folder / f"step-{step}"
        self._is_told = False

    def wait(self, timeout: float | None = None) -> Path:
        """Until the step is safe on disk, on all ranks; its folder. Raises why it could not be written, or
        stoker.WaitTimeoutError after `timeout` seconds."""
        try:
            self._saver.core.wait(self._turn, timeout or 0)
        finally:
            self._is_told = self.done()
        return self.folder

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return bool(self._saver.core.is_done(self._turn))

    def warn(self) -> None:
        """Says that the step failed when nobody has waited for it."""
        failure = None if self._is_told or not self.done() else self._saver.core.failure(self._turn)
        if failure is not None:
            self._is_told = True
            warnings.warn(f"{self.folder}: not saved: {failure}", RuntimeWarning, stacklevel=4)


class _Saver:
    """The writer of one folder in this process."""

    def __init__(self, folder: Path, place: World, options: _Options, generation: int) -> None:
        self.folder, self.place, self.options, self.generation = folder, place, options, generation
        self._pending: list[Saving] = []
        self.core = _core.CheckpointSaver(
            {
                "directory": os.fspath(folder),
                "rank": place.rank,
                "world_size": place.size,
                "run": options.run or _run_of(folder),
                "writer": f"{place.writer}-{generation}",
                "keep": options.keep,
                "keep_every_s": options.keep_every,
                "keep_best": options.keep_best,
                "metric": options.metric,
                "timeout_s": options.timeout,
            }
        )

    def save(self, flat: checkpoint_tree.Flat, step: int, state: str, rank_state: str, hyper_parameters: str) -> Saving:
        for pending in self._pending:
            pending.warn()
        self._pending = [pending for pending in self._pending if not pending.done()]
        # After this line the memories are held until the C++ part has copied them.
        memories, rows = _memories(flat)
        turn = self.core.save(step, rows, state, rank_state, hyper_parameters)
        del memories
        saving = Saving(self, turn, step)
        self._pending.append(saving)
        return saving

    def reserve(self, flat: checkpoint_tree.Flat) -> None:
        _, rows = _memories(flat)
        self.core.reserve(rows)

    def close(self) -> None:
        try:
            self.core.finish(self.options.timeout)
        except StokerError:
            for pending in self._pending:
                pending.warn()
        self._pending = []


_savers: dict[Path, _Saver] = {}
_forgotten: list[_Saver] = []


def _memories(flat: checkpoint_tree.Flat) -> tuple[list[Any], list[tuple[Any, ...]]]:
    memories, rows = [], []
    for place, value in flat.tensors.items():
        memory = tensors_of.memory(value, flat.paths[place])
        memories.append(memory)
        rows.append(tensors_of.saved(memory, place[1], place[0] == OPTIMIZER))
    return memories, rows


def _run_of(folder: Path) -> str:
    """The run whose checkpoints lie there, else a name for them: who names a folder owns it."""
    for step in reversed(_core.checkpoint_steps(os.fspath(folder))):
        try:
            return str(_core.CheckpointStep(os.fspath(folder / f"step-{step}")).run)
        except StokerError:
            continue
    name = folder.name
    return name if name and name.isprintable() and name.isascii() else "python"


def _saver(folder: Folder, rank: int | None, world_size: int | None, writer: str | None, options: _Options) -> _Saver:
    """The one of that folder; another one when it is asked for other options."""
    at = Path(os.path.abspath(folder))
    place = world(rank, world_size, writer)
    old = _savers.get(at)
    if old is not None and (old.options, old.place) == (options, place):
        return old
    generation = 0
    if old is not None:
        generation = old.generation + 1
        old.close()
    _savers[at] = _Saver(at, place, options, generation)
    return _savers[at]


def _options(keep: int, keep_every: float, keep_best: int, metric: str, timeout: float, run: str | None) -> _Options:
    for name, value in (("keep", keep), ("keep_every", keep_every), ("keep_best", keep_best)):
        if value < 0:
            raise InvalidError(f"checkpoint: {name}: {value} is less than 0")
    if (keep_every or keep_best) and not keep:
        raise InvalidError("checkpoint: keep_every and keep_best: without keep all steps stay")
    if bool(keep_best) != bool(metric):
        raise InvalidError("checkpoint: keep_best and metric: give both or none")
    return _Options(keep, keep_every, keep_best, metric, timeout, run)


def _values(name: str, values: Values | None) -> str:
    for key, value in (values or {}).items():
        if not isinstance(key, str) or not isinstance(value, (bool, int, float, str, bytes)):
            raise InvalidError(f"checkpoint: {name}: '{key}' is {type(value).__name__}, not a number, text or bytes")
    return json.dumps({key: checkpoint_tree.stored_value(value) for key, value in (values or {}).items()})


def _flatten(state: Any) -> checkpoint_tree.Flat:
    return checkpoint_tree.flatten(state, tensors_of.is_tensor, tensors_of.describe)


def save_async(
    state: Any,
    folder: Folder,
    *,
    step: int,
    keep: int = 0,
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
) -> Saving:
    """Copies this rank's share of `state` and returns; a thread without Python's lock writes it. Otherwise as save().
    At most two steps are in flight: a third waits for the first. A step that failed and was not waited for is told as a
    RuntimeWarning by the next one."""
    if not isinstance(state, Mapping):
        raise InvalidError(f"checkpoint: state is {type(state).__name__}, expected a dict such as {{'model': ...}}")
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise InvalidError(f"checkpoint: step: {step!r} is not a whole number from 0 on")
    options = _options(keep, keep_every, keep_best, metric, timeout, run)
    saver = _saver(folder, rank, world_size, writer, options)
    flat = _flatten(state)
    values = checkpoint_tree.top_level(state) | {"python": checkpoint_tree.to_text(flat.tree)}
    return saver.save(
        flat, step, json.dumps(values), _values("rank_state", rank_state), _values("hyper_parameters", hyper_parameters)
    )


def save(
    state: Any,
    folder: Folder,
    *,
    step: int,
    keep: int = 0,
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
    """Writes `state` as `folder`/step-<step>, which appears at once when all of it is on disk. Returns that folder.

    `state`: dicts, lists, tuples, numbers, text, bytes, tensors. With several processes (torchrun, `stoker run`: RANK
    and WORLD_SIZE) every rank calls it with its own state; tensors are then shared among the ranks by bytes, and the
    small ones and all other values are rank 0's. What differs between ranks goes into `rank_state`. `keep`: the newest
    so many steps stay, 0: all; beside them the first of every `keep_every` seconds, and the `keep_best` best by the
    number `metric` on top of the state (of a loss or an error the least). `run`: a folder with steps of another run is
    refused. `timeout`: seconds that the ranks may wait for each other."""
    saving = save_async(
        state,
        folder,
        step=step,
        keep=keep,
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
    return saving.wait()


def reserve(
    state: Any,
    folder: Folder,
    *,
    keep: int = 0,
    keep_every: float = 0,
    keep_best: int = 0,
    metric: str = "",
    rank: int | None = None,
    world_size: int | None = None,
    run: str | None = None,
    writer: str | None = None,
    timeout: float = 600,
) -> None:
    """Takes the memory that saves of such a state will take, so that the first one is as quick as the others. The other
    arguments are those of the saves."""
    options = _options(keep, keep_every, keep_best, metric, timeout, run)
    _saver(folder, rank, world_size, writer, options).reserve(_flatten(state))


def close(folder: Folder | None = None) -> None:
    """Waits for what is being written into `folder`, or anywhere, and gives the memory back. Done at the interpreter's
    end, too."""
    chosen = list(_savers) if folder is None else [Path(os.path.abspath(folder))]
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
