"""stoker.checkpoint.load: loads a step as a nested state, or into existing tensors.

All ranks load the same step or raise the same error:
  1. the ranks merge the steps that each of them sees
  2. each rank reads its part of the newest step and verifies it, without a change to `into`
  3. a step that any rank could not read is skipped by all of them: back to 2 with the next older step
  4. each rank fills `into`; an error on one rank is raised on all ranks
If no step is left, 1 is repeated: while the ranks were reading, retention may have removed steps and newer ones appeared."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker import _core, checkpoint_arguments, checkpoint_tree
from stoker import checkpoint_tensors as tensors_of
from stoker.checkpoint_peers import Peers, Vote, error_of, peers
from stoker.checkpoint_tree import MODEL, OPTIMIZER
from stoker.checkpoint_world import check_writer, rank_and_size
from stoker.errors import CorruptError, InvalidError, NotFoundError

Folder = str | os.PathLike[str]
_MAX_SHOWN = 10
# A step that peers see may appear later on this node: caches of network filesystems live for seconds.
_APPEARS_WITHIN_S = 20.0
_MAX_LISTINGS = 10
_SKIPPABLE = ("corrupt", "not_found")


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
    step: int | None


@dataclass
class _Plan:
    """Rows to read for the C++ part, and functions that return the filled tensors by (part, name)."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    finish: dict[checkpoint_tree.Place, Callable[[], Any]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def add(
        self,
        place: checkpoint_tree.Place,
        memory: tensors_of.Memory,
        finish: Callable[[], Any],
        is_in_use: bool = False,
    ) -> None:
        """`is_in_use`: the memory is the caller's and is written only after everything is verified."""
        part, name = place
        first_row = memory.first_row if memory.whole is not None else 0
        row = (part == OPTIMIZER, name, memory.dtype, list(memory.shape), first_row, memory.address, is_in_use)
        self.rows.append(row)
        self.finish[place] = finish


@dataclass
class _Staged:
    """A step that this rank has read and verified; `into` is unchanged."""

    folder: Path
    reader: Any
    tree: Any
    plan: _Plan


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
    writer: str | None = None,
    timeout: float = 600,
) -> Loaded:
    """Loads the newest valid step of `folder`, or the given `step`. `folder` can also be a step folder. Every byte is
    verified.

    With several processes every rank calls it: all of them load the same step, or raise the same error. `rank=0,
    world_size=1` loads in one process alone. `timeout`: seconds that the ranks wait for each other. `writer` as for save().

    `only`: parts of the state to read, such as "model", "model.backbone" or "*.bias". `into`: a state with tensors to fill
    in place, {"model": model.state_dict()}, once everything is verified; the rest of the step is returned as new tensors.
    With `strict` names, types and shapes must match the step. Otherwise matching tensors are filled and `.differences`
    lists the rest. Raises NotFoundError, CorruptError (with `step`), InvalidError."""
    if writer is not None:
        check_writer(writer)
    own_rank, size = rank_and_size(rank, world_size)
    limit = checkpoint_arguments.seconds("timeout", timeout)
    at = checkpoint_arguments.folder(folder)
    group = peers(own_rank, size, _directory_of(at), is_given=rank is not None, writer=writer, timeout=limit)

    def request() -> _Request:
        patterns = checkpoint_arguments.patterns("only", only)
        wanted = None if step is None else checkpoint_arguments.whole("step", step)
        checkpoint_arguments.mapping("into", into)
        tensors_of.check_kind(tensors)
        return _Request(patterns, into, bool(strict), tensors, own_rank, size, wanted)

    loading = _Loading(at, group, request)
    try:
        return loading.run()
    finally:
        group.part()


def _directory_of(at: Path) -> Path:
    """The directory of a step folder, or the folder itself."""
    return at.parent if re.fullmatch(r"step-(0|[1-9]\d*)", at.name) else at


class _Loading:
    """One load on this rank."""

    def __init__(self, at: Path, group: Peers, request: Callable[[], _Request]) -> None:
        self._at, self._peers, self._make_request = at, group, request
        self._request: _Request
        self._own: set[Path] = set()  # steps that this rank has seen
        self._skipped: list[tuple[Path, str]] = []

    def run(self) -> Loaded:
        _, opening = self._peers.agree(self._open, _merge_openings)
        if opening["is_step"]:
            return self._load_only(self._at, is_seen=True)
        if opening["step"] is not None:
            return self._load_only(self._folder_of(opening["step"]), is_seen=bool(opening["steps"]))
        tried: set[int] = set()
        for _ in range(_MAX_LISTINGS):
            numbers = [number for number in opening["steps"] if number not in tried]
            if not numbers:
                break
            for number in numbers:
                tried.add(number)
                loaded = self._try(self._folder_of(number))
                if loaded is not None:
                    return loaded
            _, opening = self._peers.agree(self._list, _merge_openings)
        why = "; ".join(text for _, text in self._skipped)
        raise NotFoundError(f"{self._at}: no valid checkpoint ({why})" if why else f"{self._at}: no checkpoint")

    def _folder_of(self, number: int) -> Path:
        return self._at / f"step-{number}"

    def _open(self) -> tuple[None, Vote]:
        self._request = self._make_request()
        number = self._request.step
        if number is None:
            return self._list()
        self._own = {folder for folder in [self._folder_of(number)] if folder.is_dir()}
        return None, {"step": number, "is_step": False, "steps": [number] if self._own else []}

    def _list(self) -> tuple[None, Vote]:
        if (self._at / "manifest.json").exists():
            self._own = {self._at}
            return None, {"step": None, "is_step": True, "steps": []}
        numbers = _core.checkpoint_steps(os.fspath(self._at))
        self._own = {self._folder_of(number) for number in numbers}
        return None, {"step": None, "is_step": False, "steps": numbers}

    def _load_only(self, folder: Path, is_seen: bool) -> Loaded:
        """`is_seen`: by any rank."""
        loaded = self._try(folder, is_only=True, is_seen=is_seen)
        assert loaded is not None  # the only choice: a skip is an error
        return loaded

    def _try(self, folder: Path, is_only: bool = False, is_seen: bool = True) -> Loaded | None:
        """The state of this step; None, with an entry in `skipped`, if any rank cannot read it."""

        def stage() -> tuple[_Staged, Vote]:
            staged = self._stage(folder, is_seen)
            return staged, {"save": staged.reader.save}

        staged, verdict = self._peers.agree(stage, lambda votes: _merge_saves(folder, votes, is_only))
        if "skip" in verdict:
            self._skipped.append((folder, verdict["skip"]))
            return None
        assert staged is not None
        loaded, _ = self._peers.agree(lambda: (self._fill(staged), {}), lambda votes: error_of(votes) or {})
        assert loaded is not None
        loaded.skipped = self._skipped
        return loaded

    def _stage(self, folder: Path, is_seen: bool) -> _Staged:
        deadline = time.monotonic() + _APPEARS_WITHIN_S
        while True:
            try:
                return _stage(folder, self._request)
            except NotFoundError:
                # A step that this node has listed was removed; one that only peers have listed may appear.
                is_awaited = self._peers.size > 1 and is_seen and folder not in self._own
                if not is_awaited or folder.exists() or time.monotonic() > deadline:
                    raise
            with contextlib.suppress(OSError):  # makes a client of a network filesystem ask the server again
                os.listdir(folder.parent)
            time.sleep(0.2)

    def _fill(self, staged: _Staged) -> Loaded:
        plan, reader, request = staged.plan, staged.reader, self._request
        reader.fill()
        filled = {place: finish() for place, finish in plan.finish.items()}
        loaded = Loaded(checkpoint_tree.unflatten(staged.tree, lambda words: filled[words[0], words[1]]))
        loaded.folder, loaded.step, loaded.run = staged.folder, reader.step, reader.run
        loaded.world_size, loaded.skipped, loaded.differences = reader.world_size, [], plan.differences
        loaded.hyper_parameters = _values(reader.hyper_parameters)
        is_same = reader.world_size == request.world_size
        loaded.rank_state = _values(reader.rank_states[request.rank]) if is_same else None
        return loaded


def _merge_openings(votes: list[Vote]) -> Vote:
    """What all ranks load: a step folder, a step, or the newest of the steps that any rank sees, from the newest on."""
    error = error_of(votes)
    if error is not None:
        return error
    first = votes[0]["step"]
    for rank, vote in enumerate(votes):
        if vote["step"] != first:
            own, other = ("the newest step" if wanted is None else f"step {wanted}" for wanted in (vote["step"], first))
            return {"code": "invalid", "text": f"checkpoint: rank {rank} loads {own}, but rank 0 {other}"}
    steps = sorted({number for vote in votes for number in vote["steps"]}, reverse=True)
    return {"step": first, "is_step": any(vote["is_step"] for vote in votes), "steps": steps}


def _merge_saves(folder: Path, votes: list[Vote], is_only: bool) -> Vote:
    """{} if all ranks have verified the same save."""
    error = error_of(votes)
    if error is None:
        for rank, vote in enumerate(votes):
            if vote["save"] != votes[0]["save"]:
                saves = f"{vote['save']}, {votes[0]['save']}"
                text = f"{folder}: on rank {rank} this is a different save than on rank 0 ({saves})"
                error = {"code": "corrupt", "text": text}
                break
    if error is None:
        return {}
    if is_only or error["code"] not in _SKIPPABLE:
        return error
    return {"skip": error["text"].partition("\n")[0]}


def _stage(folder: Path, request: _Request) -> _Staged:
    reader = _core.CheckpointStep(os.fspath(folder))
    tree = _tree(reader)
    if request.only:
        tree = checkpoint_tree.select(tree, request.only)
        if not next(iter(tree.values())):
            raise InvalidError(f"{folder}: has no values named '{', '.join(request.only)}' (only)")
    plan = _plan(folder, reader, tree, request)
    reader.verify(plan.rows)
    return _Staged(folder, reader, tree, plan)


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
        description = words[3:]
        _add_new(plan, place, tensors_of.empty(library, dtype, shape, path), library, description)
    plan.differences += [f"'{path}' is not in the checkpoint" for path in given]
    if plan.differences and request.strict:
        more = len(plan.differences) - _MAX_SHOWN
        text = "; ".join(plan.differences[:_MAX_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        raise InvalidError(f"{folder}: does not fit: {text}\n  try: strict=False, which fills matching tensors")
    return plan


def _add_new(
    plan: _Plan, place: checkpoint_tree.Place, memory: tensors_of.Memory, library: str, description: list[str]
) -> None:
    plan.add(place, memory, lambda: tensors_of.finished(memory, library, *description[:2]))


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
    memory, copy, is_in_use = tensors_of.into(tensor, path)
    whole = memory.whole if memory.whole is not None else memory.shape
    if (memory.dtype, tuple(whole)) != stored:
        form = f"{memory.dtype} {list(whole)}, but {stored[0]} {list(stored[1])} in the checkpoint"
        plan.differences.append(f"'{path}' is {form}")
        return False

    def finish() -> Any:
        copy()
        return tensor

    plan.add(place, memory, finish, is_in_use)
    return True
