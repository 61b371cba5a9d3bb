"""Converts and checks the arguments of stoker.Loader for the C++ part."""

import os
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

from stoker import _core, arguments, arrays, contents
from stoker.errors import InvalidError

Path = str | os.PathLike[str]

_CHOICES = {
    "errors": ("raise", "skip"),
    "remainder": ("pad", "drop", "exact"),
    "tensors": ("auto", "torch", "numpy", "dlpack"),
}
_SWITCHES = ("channels_last", "drop_last", "check")
_SIZES = ("cache", "chunk_cache")
_ORDERS = {"every_epoch": "shuffle=True", "none": "shuffle=False", "full": "shuffle='full'"}
_FEW_WEIGHTS = 8
_MAX_PREFETCH = 4096  # as in loader.cc


def rank_and_world_size(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The given values; otherwise RANK and WORLD_SIZE, set by `stoker run`, torchrun and other launchers; otherwise those
    of an initialized torch.distributed; otherwise 0 of 1."""
    if (rank is None) != (world_size is None):
        raise InvalidError("loader: rank and world_size: set both or neither")
    if rank is not None and world_size is not None:
        most = 2**31 - 1
        return arguments.integer("rank", rank, most=most), arguments.integer("world_size", world_size, 1, most)
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        try:
            found = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        except ValueError:
            found = None
        if found is None or max(map(abs, found)) >= 2**31:
            text = f"RANK={os.environ['RANK']}, WORLD_SIZE={os.environ['WORLD_SIZE']}"
            what = "not numbers" if found is None else "expected 32-bit numbers"
            raise InvalidError(f"loader: {what} ({text})")
        return found
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _paths(given: Any) -> list[str]:
    is_one = isinstance(given, (str, bytes, os.PathLike))
    if not is_one and not isinstance(given, Iterable):
        raise arguments.invalid_argument("path", given, "neither a path nor a list of them")
    several = [given] if is_one else given
    paths = [arguments.text("path", os.fspath(path) if isinstance(path, os.PathLike) else path) for path in several]
    if not paths:
        raise InvalidError("loader: path: no dataset")
    return paths


def _window(window: Any, shuffle: str) -> int:
    if window is None:
        return 256 if shuffle == "by_chunk" else 16
    return arguments.integer("window", window, 1, arguments.MAX_UINT32)


def _weights(given: Any) -> list[float]:
    if given is None:
        return []
    try:
        return [float(weight) for weight in given]
    except (TypeError, ValueError):
        raise arguments.invalid_argument("weights", given, "not a list of numbers") from None


def _order(shuffle: str, window: int, weights: list[float], datasets: int) -> str:
    """The settings that determine the order besides seed and dataset, in terms of the arguments."""
    if not weights:
        return _ORDERS.get(shuffle, f"shuffle='{shuffle}', window={window}")
    if datasets > 1 and len(weights) <= _FEW_WEIGHTS:
        return f"weights={weights}"
    return f"{len(weights)} weights ({zlib.crc32(array('d', weights).tobytes()):08x})"


def _workers(a: Mapping[str, Any]) -> dict[str, int | None]:
    threads = arguments.workers(a["num_workers"])
    if threads is not None:
        threads = max(1, threads)
    ahead = None
    if a["prefetch_factor"] is not None:
        each, count = arguments.integer("prefetch_factor", a["prefetch_factor"], 1), threads or _core.advised_threads()
        ahead = each * count
        if ahead > _MAX_PREFETCH:
            raise arguments.invalid_argument(
                "prefetch_factor", each, f"more than {_MAX_PREFETCH} batches for {count} threads"
            )
    return {"threads": threads, "prefetch": ahead}


def _ordering(a: Mapping[str, Any], datasets: int) -> dict[str, Any]:
    shuffle, weights = contents.shuffle(a["shuffle"]), _weights(a["weights"])
    window = _window(a["window"], shuffle)
    if weights and shuffle not in ("every_epoch", "none"):
        raise InvalidError(f"loader: shuffle: '{shuffle}' cannot be combined with weights\n  try: omit one of them")
    return {
        "seed": arguments.integer("seed", a["seed"], most=2**64 - 1),
        "shuffle": shuffle,
        "window": window,
        "weights": weights,
        "order": _order(shuffle, window, weights, datasets),
    }


def _batches(a: Mapping[str, Any]) -> dict[str, Any]:
    """Content and size of the batches."""
    content = contents.content(a["transform"], a["component"], a["array"], a["tokens"], a["columns"])
    dtype = arguments.dtype_name(a["dtype"])
    held = dtype if content["kind"] == "images" else content["array"][0] if content["array"] else ""
    if held == "bfloat16" and a["tensors"] == "numpy":
        raise arrays.bfloat16_error()
    mixing = {name: 0.0 if a[name] is None else arguments.number(name, a[name]) for name in ("mixup", "cutmix")}
    return mixing | {
        "transform": a["transform"],
        "content": content,
        "dtype": dtype,
        "batch_size": arguments.integer("batch_size", a["batch_size"], 1, arguments.MAX_UINT32),
    }


def from_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of _core.Feed. Raises InvalidError, where the C++ part would not know the argument's name."""
    a = given
    rank, world_size = rank_and_world_size(a["rank"], a["world_size"])
    for name, choices in _CHOICES.items():
        if a[name] not in choices:
            raise InvalidError(f"loader: {name}: unknown value '{a[name]}' (one of: {', '.join(choices)})")
    paths = _paths(a["path"])
    parts = _ordering(a, len(paths)) | _batches(a) | _workers(a)
    switches = {name: arguments.boolean(name, a[name]) for name in _SWITCHES}
    sizes = {name: arguments.size(name, a[name]) for name in _SIZES}
    return (
        parts
        | switches
        | sizes
        | {
            "paths": paths,
            "split": None if a["split"] is None else arguments.text("split", a["split"]),
            "rank": rank,
            "world_size": world_size,
            "remainder": a["remainder"],
            "timeout": arguments.seconds("timeout", a["timeout"]),
            "resident": None if a["resident"] is None else arguments.size("resident", a["resident"]),
            "page_locked": None,  # set by the loader for its device
            "skip": a["errors"] == "skip",
            "max_skipped": arguments.integer("max_skipped", a["max_skipped"]),
        }
    )
