"""stoker.checkpoint.load: loads a step as a nested state, or into existing tensors."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker import _core, checkpoint_tree
from stoker import checkpoint_tensors as tensors_of
from stoker.checkpoint_tree import MODEL, OPTIMIZER
from stoker.checkpoint_world import rank_and_size
from stoker.errors import CorruptError, InvalidError, NotFoundError

Folder = str | os.PathLike[str]
_MAX_SHOWN = 10


class Loaded(dict[str, Any]):
    """The saved state, with metadata."""

    folder: Path
    step: int
    world_size: int  # number of ranks that saved it
    run: str
    rank_state: dict[str, Any] | None  # of this rank; None after a save with a different number of ranks
    hyper_parameters: dict[str, Any]
    skipped: list[tuple[Path, str]]  # newer invalid steps, with the reason
    differences: list[str]  # with strict=False: differences between `into` and the step


@dataclass
class _Request:
    only: list[str]
    into: Mapping[str, Any] | None
    strict: bool
    tensors: tensors_of.Kind
    rank: int
    world_size: int


@dataclass
class _Plan:
    """Rows to read for the C++ part, and functions that return the filled tensors by (part, name)."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    finish: dict[checkpoint_tree.Place, Callable[[], Any]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def add(self, place: checkpoint_tree.Place, memory: tensors_of.Memory, finish: Callable[[], Any]) -> None:
        part, name = place
        first_row = memory.first_row if memory.whole is not None else 0
        self.rows.append((part == OPTIMIZER, name, memory.dtype, list(memory.shape), first_row, memory.address))
        self.finish[place] = finish


def load(
    folder: Folder,
    *,
    step: int | None = None,
    only: str | Sequence[str] | None = None,
    into: Mapping[str, Any] | None = None,
    strict: bool = True,
    tensors: tensors_of.Kind = "auto",
    rank: int | None = None,
    world_size: int | None = None,
) -> Loaded:
    """Loads the newest valid step of `folder`, or the given `step`. `folder` can also be a step folder. Every byte is
    verified.

    `only`: parts of the state to read, such as "model", "model.backbone" or "*.bias". `into`: a state with tensors to fill
    in place, {"model": model.state_dict()}; the rest of the step is returned as new tensors. With `strict` names, types
    and shapes must match the step. Otherwise matching tensors are filled and `.differences` lists the rest. Raises
    NotFoundError, CorruptError (with `step`), InvalidError."""
    at = Path(folder)
    own_rank, size = rank_and_size(rank, world_size)
    patterns = [only] if isinstance(only, str) else list(only or [])
    request = _Request(patterns, into, strict, tensors, own_rank, size)
    if step is not None:
        return _load_step(at / f"step-{step}", request)
    if (at / "manifest.json").exists():
        return _load_step(at, request)
    skipped: list[tuple[Path, str]] = []
    for number in reversed(_core.checkpoint_steps(os.fspath(at))):
        try:
            loaded = _load_step(at / f"step-{number}", request)
        except (CorruptError, NotFoundError) as error:
            skipped.append((at / f"step-{number}", str(error).partition("\n")[0]))
            continue
        loaded.skipped = skipped
        return loaded
    why = "; ".join(text for _, text in skipped)
    raise NotFoundError(f"{at}: no valid checkpoint ({why})" if why else f"{at}: no checkpoint")


def _load_step(folder: Path, request: _Request) -> Loaded:
    reader = _core.CheckpointStep(os.fspath(folder))
    tree = _tree(reader)
    if request.only:
        tree = checkpoint_tree.select(tree, request.only)
        if not next(iter(tree.values())):
            raise InvalidError(f"{folder}: has no values named '{', '.join(request.only)}' (only)")
    plan = _plan(folder, reader, tree, request)
    reader.read(plan.rows)
    # From here on every byte is verified.
    filled = {place: finish() for place, finish in plan.finish.items()}
    loaded = Loaded(checkpoint_tree.unflatten(tree, lambda words: filled[words[0], words[1]]))
    loaded.folder, loaded.step, loaded.run = folder, reader.step, reader.run
    loaded.world_size, loaded.skipped, loaded.differences = reader.world_size, [], plan.differences
    loaded.hyper_parameters = _values(reader.hyper_parameters)
    is_same = reader.world_size == request.world_size
    loaded.rank_state = _values(reader.rank_states[request.rank]) if is_same else None
    return loaded


def _values(text: str) -> dict[str, Any]:
    return {key: checkpoint_tree.read_value(value) for key, value in json.loads(text).items()}


def _tree(reader: Any) -> Any:
    """The tree saved from Python; for checkpoints of stoker-train a flat tree of names and values."""
    values = _values(reader.state)
    if "python" in values:
        tree = checkpoint_tree.parse(str(values["python"]))
        if isinstance(tree, dict) and ("dict" in tree or "ordered" in tree or "items" in tree):
            return tree
        raise CorruptError("checkpoint: the root of its tree is not a dict")
    parts: dict[str, Any] = {MODEL: {}, OPTIMIZER: {}}
    for is_optimizer, name, _, _ in reader.tensors:
        part = OPTIMIZER if is_optimizer else MODEL
        parts[part][name] = {"tensor": [part, name, "torch"]}
    others = checkpoint_tree.flatten(values, lambda _: False, lambda _: []).tree["dict"]
    return {"dict": others | {part: {"dict": names} for part, names in parts.items() if names}}


def _plan(folder: Path, reader: Any, tree: Any, request: _Request) -> _Plan:
    plan = _Plan()
    stored = {
        (OPTIMIZER if is_optimizer else MODEL, name): (dtype, tuple(shape))
        for is_optimizer, name, dtype, shape in reader.tensors
    }
    given = _given(request)
    for path, words in checkpoint_tree.tensors_of(tree):
        place = (words[0], words[1])
        if place not in stored:
            raise CorruptError(f"{folder}: its tree names tensor '{place[1]}', which does not exist")
        if place in plan.finish:
            raise CorruptError(f"{folder}: its tree names tensor '{place[1]}' twice")
        dtype, shape = stored[place]
        if path in given:
            if _fill(plan, place, path, given.pop(path), (dtype, shape)):
                continue
        elif request.into is not None and path.partition(".")[0] in request.into:
            plan.differences.append(f"'{path}' is only in the checkpoint")
        library = tensors_of.library(request.tensors, words[2] if len(words) > 2 else "torch", dtype)
        real_type = words[3] if len(words) > 3 else None
        _add_new(plan, place, tensors_of.empty(library, dtype, shape, path), library, real_type)
    plan.differences += [f"'{path}' is not in the checkpoint" for path in given]
    if plan.differences and request.strict:
        more = len(plan.differences) - _MAX_SHOWN
        text = "; ".join(plan.differences[:_MAX_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        raise InvalidError(f"{folder}: does not fit: {text}\n  try: strict=False, which fills matching tensors")
    return plan


def _add_new(
    plan: _Plan, place: checkpoint_tree.Place, memory: tensors_of.Memory, library: str, real_type: str | None
) -> None:
    plan.add(place, memory, lambda: tensors_of.finished(memory, library, real_type))


def _given(request: _Request) -> dict[str, Any]:
    """The requested tensors of `into`, by path."""
    if request.into is None:
        return {}
    flat = checkpoint_tree.flatten(request.into, tensors_of.is_tensor, tensors_of.describe)
    return {
        flat.paths[place]: tensor
        for place, tensor in flat.tensors.items()
        if not request.only or any(checkpoint_tree.is_below(flat.paths[place], pattern) for pattern in request.only)
    }


def _fill(
    plan: _Plan, place: checkpoint_tree.Place, path: str, tensor: Any, stored: tuple[str, tuple[int, ...]]
) -> bool:
    """Plans to fill an existing tensor; False, with a difference, if its type or shape differs."""
    memory, copy = tensors_of.into(tensor, path)
    whole = memory.whole if memory.whole is not None else memory.shape
    if (memory.dtype, tuple(whole)) != stored:
        form = f"{memory.dtype} {list(whole)}, but {stored[0]} {list(stored[1])} in the checkpoint"
        plan.differences.append(f"'{path}' is {form}")
        return False

    def finish() -> Any:
        copy()
        return tensor

    plan.add(place, memory, finish)
    return True
