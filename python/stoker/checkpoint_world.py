"""Rank and world size of a save, and a writer name shared by all ranks and unique to the attempt."""

import hashlib
import os
import re
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from stoker.errors import InvalidError
from stoker.options import rank_and_world_size

# Set by launchers: identical on all ranks, different for every attempt if the launcher can restart.
_ATTEMPTS = (
    ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"),
    ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
)
_KEY = "stoker/checkpoint/writer"
# By process: a forked child is a different writer.
_own: dict[int, str] = {}
_shared_names: dict[int, str] = {}


@dataclass(frozen=True)
class World:
    rank: int
    size: int
    writer: str


def rank_and_size(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The given values; otherwise determined as in stoker.Loader."""
    try:
        at, size = rank_and_world_size(rank, world_size)
    except InvalidError as error:
        raise InvalidError(str(error).replace("loader:", "checkpoint:", 1)) from None
    if not 0 <= at < size:
        raise InvalidError(f"checkpoint: rank {at} is outside a world of {size}")
    return at, size


def world(rank: int | None, world_size: int | None, writer: str | None) -> World:
    """The saving rank. Raises InvalidError if the ranks have no shared writer name."""
    at, size = rank_and_size(rank, world_size)
    if writer is not None:
        check_writer(writer)
        return World(at, size, writer)
    if size == 1:
        return World(at, size, _name_of_this_process())
    return World(at, size, _common_name(at))


def check_writer(writer: str) -> None:
    if not isinstance(writer, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", writer):
        raise InvalidError(f"checkpoint: writer: {writer!r} is not 1 to 40 letters, digits, '-' or '_'")


def _name_of_this_process() -> str:
    return _own.setdefault(os.getpid(), f"p{os.urandom(5).hex()}")


def _common_name(rank: int) -> str:
    attempt = os.environ.get("STOKER_ATTEMPT_DIR")
    name = (None if attempt else _by_torch(rank)) or attempt_name()
    if name is not None:
        return name
    raise InvalidError(
        "checkpoint: the ranks have no common name for this attempt of the run (writer)\n"
        "  try: set writer=... to a value shared by all ranks and unique per attempt, or call "
        "torch.distributed.init_process_group"
    )


def attempt_name() -> str | None:
    """A name from the launcher: identical on all ranks, different for every attempt."""
    attempt = attempt_folder()
    if attempt is not None:
        return f"a{re.sub('[^A-Za-z0-9]', '', attempt.name)}"
    for names in _ATTEMPTS:
        if names[0] in os.environ:
            values = "\0".join(os.environ.get(name, "") for name in names)
            return f"e{hashlib.sha256(values.encode()).hexdigest()[:16]}"
    return None


def attempt_folder() -> Path | None:
    """The folder of the attempt under `stoker run`, shared by all ranks."""
    attempt = os.environ.get("STOKER_ATTEMPT_DIR")
    return Path(os.path.normpath(attempt)) if attempt else None


def store_of_torch(rank: int, size: int) -> Any:
    """The key-value store of torch.distributed, if its world is this one; otherwise None."""
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    if (distributed.get_rank(), distributed.get_world_size()) != (rank, size):
        return None
    return distributed.distributed_c10d._get_default_store()


def _by_torch(rank: int) -> str | None:
    """Rank 0 publishes a name in the key-value store of torch.distributed. Not a collective, so that ranks that do not save
    cannot cause a hang."""
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    if os.getpid() in _shared_names:
        return _shared_names[os.getpid()]
    store = distributed.distributed_c10d._get_default_store()
    if rank == 0:
        store.set(_KEY, f"t{os.urandom(8).hex()}")
    store.wait([_KEY], timedelta(seconds=60))
    return _shared_names.setdefault(os.getpid(), store.get(_KEY).decode())
