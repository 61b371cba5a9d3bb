"""stoker.checkpoint.latest: finds the newest complete checkpoint in a folder, of Stoker or of other frameworks."""

import os
from dataclasses import dataclass
from pathlib import Path

from stoker import _core

Folder = str | os.PathLike[str]


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


def latest(folder: Folder, match: str | None = None, *, settle: float = 2) -> Latest:
    """Finds the newest checkpoint of `folder` that is complete and unchanged for `settle` seconds (newer ones are watched
    for that time): Stoker's steps; otherwise Hugging Face's checkpoint-N folders; otherwise files .ckpt, .pt, .pth, .bin,
    .safetensors, .h5, .hdf5, .keras by time. `match`: only matching names, such as "epoch-*.pt". A missing folder
    is not an error."""
    found = _core.latest_checkpoint(os.fspath(folder), match or "", settle)
    return Latest(
        Path(found["path"]) if found["path"] is not None else None,
        found["kind"],
        found["step"],
        [(Path(path), why) for path, why in found["skipped"]],
    )
