"""stoker.checkpoint.latest: the newest whole checkpoint in a folder, Stoker's own or other people's."""

import os
from dataclasses import dataclass
from pathlib import Path

from stoker import _core

Folder = str | os.PathLike[str]


@dataclass(frozen=True)
class Latest:
    """What was found. False, and without a path, when no candidate is whole."""

    path: Path | None
    kind: str  # "stoker", "hugging face", "safetensors", "torch", "hdf5", ...; "" when there is none
    step: int | None  # where the name has one
    skipped: list[tuple[Path, str]]  # newer candidates, and why they are not whole

    def __bool__(self) -> bool:
        return self.path is not None

    def __fspath__(self) -> str:
        if self.path is None:
            raise FileNotFoundError("no whole checkpoint")
        return os.fspath(self.path)


def latest(folder: Folder, match: str | None = None, *, settle: float = 2) -> Latest:
    """The newest checkpoint of `folder` that is complete, opens, and has not changed for `settle` seconds (a younger one
    is watched for that long): Stoker's steps; else Hugging Face's checkpoint-N folders; else the files .ckpt, .pt, .pth,
    .bin, .safetensors, .h5, .hdf5, .keras by time. `match`: only names that fit, as "epoch-*.pt". A missing folder has
    none."""
    found = _core.latest_checkpoint(os.fspath(folder), match or "", settle)
    return Latest(
        Path(found["path"]) if found["path"] is not None else None,
        found["kind"],
        found["step"],
        [(Path(path), why) for path, why in found["skipped"]],
    )
