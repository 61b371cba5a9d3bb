"""From stoker.Loader's arguments to the options of the C++ part, checked."""

import os
import sys
from collections.abc import Mapping
from typing import Any, Literal

from stoker import contents
from stoker.errors import InvalidError

Path = str | os.PathLike[str]

_CHOICES = {"errors": ("raise", "skip"), "remainder": ("pad", "drop", "exact")}
# What goes on as it is given.
_SAME = (
    *("split", "transform", "dtype", "channels_last", "mixup", "cutmix"),
    *("seed", "drop_last", "remainder", "resident", "check", "cache", "chunk_cache"),
)


def rank_and_world_size(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """What is given; else RANK and WORLD_SIZE, which `stoker run`, torchrun and others set; else those of
    torch.distributed where it has been initialised; else 0 of 1."""
    if (rank is None) != (world_size is None):
        raise InvalidError("loader: rank and world_size: give both or none")
    if rank is not None and world_size is not None:
        return rank, world_size
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        try:
            return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        except ValueError:
            said = f"RANK={os.environ['RANK']}, WORLD_SIZE={os.environ['WORLD_SIZE']}"
            raise InvalidError(f"loader: not numbers ({said})") from None
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise InvalidError(f"loader: {name}: {value} is not at least 1")
    return value


def _window(window: int | None, shuffle: Any) -> int:
    if window is None:
        return 256 if shuffle == "by_chunk" else 16
    return _positive("window", window)


def _threads(num_workers: int | Literal["auto"]) -> int | None:
    if num_workers == "auto":
        return None
    if not isinstance(num_workers, int) or num_workers < 0:
        raise InvalidError(f"loader: num_workers: '{num_workers}' is neither a number nor 'auto'")
    return max(1, num_workers)


def of_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What _core.Feed takes. Raises InvalidError for what the C++ part would not name by the argument's name."""
    a = arguments
    rank, world_size = rank_and_world_size(a["rank"], a["world_size"])
    for name, choices in _CHOICES.items():
        if a[name] not in choices:
            raise InvalidError(f"loader: {name}: unknown value '{a[name]}' (one of: {', '.join(choices)})")
    is_one = isinstance(a["path"], (str, os.PathLike))
    paths = [os.fspath(path) for path in ([a["path"]] if is_one else a["path"])]
    if not paths:
        raise InvalidError("loader: path: no dataset")
    threads, prefetch = _threads(a["num_workers"]), None
    if a["prefetch_factor"] is not None:
        prefetch = _positive("prefetch_factor", a["prefetch_factor"]) * (threads or 1)
    return {name: a[name] for name in _SAME} | {
        "paths": paths,
        "content": contents.content(a["transform"], a["component"], a["array"], a["tokens"], a["columns"]),
        "batch_size": _positive("batch_size", a["batch_size"]),
        "shuffle": contents.shuffle(a["shuffle"]),
        "window": _window(a["window"], a["shuffle"]),
        "weights": [] if a["weights"] is None else [float(weight) for weight in a["weights"]],
        "rank": rank,
        "world_size": world_size,
        "threads": threads,
        "prefetch": prefetch,
        "skip": a["errors"] == "skip",
        "most_skipped": a["max_skipped"],
    }
