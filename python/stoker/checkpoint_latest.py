"""stoker.checkpoint.latest: finds the newest complete checkpoint in a folder, of Stoker or of other frameworks."""

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stoker import _core, checkpoint_arguments
from stoker.checkpoint_peers import Vote, error_of, peers
from stoker.checkpoint_world import check_writer, rank_and_size

Folder = str | os.PathLike[str]
# What one rank sees already, another may see a moment later: caches of network filesystems, files being written.
_ATTEMPTS = 5
_PAUSE_S = 3.0


@dataclass(frozen=True)
class Latest:
    """Result of latest(). False, without a path, if no candidate is complete."""

    path: Path | None
    kind: str  # "stoker", "hugging face", "safetensors", "torch", "hdf5", ...; "" without a result
    step: int | None  # if the name contains one
    skipped: list[tuple[Path, str]]  # newer incomplete candidates, with the reason

    def __bool__(self) -> bool:
        return self.path is not None

    def __fspath__(self) -> str:
        if self.path is None:
            raise FileNotFoundError("no complete checkpoint")
        return os.fspath(self.path)


def latest(
    folder: Folder,
    match: str | None = None,
    *,
    settle: float = 2,
    rank: int | None = None,
    world_size: int | None = None,
    writer: str | None = None,
    timeout: float = 600,
) -> Latest:
    """Finds the newest checkpoint of `folder` that is complete and unchanged for `settle` seconds (newer ones are watched
    for that time): Stoker's steps; otherwise Hugging Face's checkpoint-N folders; otherwise files .ckpt, .pt, .pth, .bin,
    .safetensors, .h5, .hdf5, .keras by time. `match`: only matching names, such as "epoch-*.pt". A missing folder
    is not an error. With several processes every rank calls it, and all of them find the same checkpoint or raise the
    same error; the other arguments are as for load()."""
    at = checkpoint_arguments.folder(folder)
    limit = checkpoint_arguments.seconds("timeout", timeout)
    if writer is not None:
        check_writer(writer)
    own_rank, size = rank_and_size(rank, world_size)
    group = peers(own_rank, size, at, is_given=rank is not None, writer=writer, timeout=limit, call="latest()")

    def find() -> tuple[Latest, Vote]:
        pattern = "" if match is None else checkpoint_arguments.text("match", match)
        found = _find(at, pattern, checkpoint_arguments.seconds("settle", settle, is_zero_allowed=True))
        return found, {"name": None if found.path is None else found.path.name}

    try:
        for attempt in range(_ATTEMPTS):
            found, verdict = group.agree(find, partial(_merge, at, attempt + 1 == _ATTEMPTS))
            if not verdict:
                break
            time.sleep(_PAUSE_S)
        assert found is not None
        return found
    finally:
        group.part()


def _find(at: Path, match: str, settle: float) -> Latest:
    found = _core.latest_checkpoint(os.fspath(at), match, settle)
    return Latest(
        Path(found["path"]) if found["path"] is not None else None,
        found["kind"],
        found["step"],
        [(Path(path), why) for path, why in found["skipped"]],
    )


def _merge(at: Path, is_last: bool, votes: list[Vote]) -> Vote:
    """{} if all ranks have found the same."""
    error = error_of(votes)
    if error is not None:
        return error
    for rank, vote in enumerate(votes):
        if vote["name"] != votes[0]["name"]:
            if not is_last:
                return {"differs": True}
            own, first = (_text(name) for name in (vote["name"], votes[0]["name"]))
            text = f"{at}: rank {rank} finds {own}, but rank 0 {first}\n  try: a folder that all ranks share"
            return {"code": "unavailable", "text": text}
    return {}


def _text(name: Any) -> str:
    return "no checkpoint" if name is None else str(name)
