"""From stoker.Loader's arguments to the options of the C++ part, checked."""

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
_MOST_AHEAD = 4096  # as in loader.cc


def rank_and_world_size(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """What is given; else RANK and WORLD_SIZE, which `stoker run`, torchrun and others set; else those of
    torch.distributed where it has been initialised; else 0 of 1."""
    if (rank is None) != (world_size is None):
        raise InvalidError("loader: rank and world_size: give both or none")
    if rank is not None and world_size is not None:
        most = 2**31 - 1
        return arguments.whole("rank", rank, most=most), arguments.whole("world_size", world_size, 1, most)
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        try:
            found = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        except ValueError:
            found = None
        if found is None or max(map(abs, found)) >= 2**31:
            said = f"RANK={os.environ['RANK']}, WORLD_SIZE={os.environ['WORLD_SIZE']}"
            what = "not numbers" if found is None else "numbers of 32 bits at most are expected"
            raise InvalidError(f"loader: {what} ({said})")
        return found
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _paths(given: Any) -> list[str]:
    is_one = isinstance(given, (str, bytes, os.PathLike))
    if not is_one and not isinstance(given, Iterable):
        raise arguments.refusal("path", given, "neither a path nor a list of them")
    several = [given] if is_one else given
    paths = [arguments.text("path", os.fspath(path) if isinstance(path, os.PathLike) else path) for path in several]
    if not paths:
        raise InvalidError("loader: path: no dataset")
    return paths


def _window(window: Any, shuffle: str) -> int:
    if window is None:
        return 256 if shuffle == "by_chunk" else 16
    return arguments.whole("window", window, 1, arguments.MOST_32)


def _weights(given: Any) -> list[float]:
    if given is None:
        return []
    try:
        return [float(weight) for weight in given]
    except (TypeError, ValueError):
        raise arguments.refusal("weights", given, "no list of numbers") from None


def _order(shuffle: str, window: int, weights: list[float], datasets: int) -> str:
    """What decides the order beside seed and dataset, in the words of the arguments."""
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
        each, count = arguments.whole("prefetch_factor", a["prefetch_factor"], 1), threads or _core.advised_threads()
        ahead = each * count
        if ahead > _MOST_AHEAD:
            raise arguments.refusal("prefetch_factor", each, f"more than {_MOST_AHEAD} batches for {count} threads")
    return {"threads": threads, "prefetch": ahead}


def _ordering(a: Mapping[str, Any], datasets: int) -> dict[str, Any]:
    shuffle, weights = contents.shuffle(a["shuffle"]), _weights(a["weights"])
    window = _window(a["window"], shuffle)
    if weights and shuffle not in ("every_epoch", "none"):
        raise InvalidError(
            f"loader: shuffle: '{shuffle}' is an order, and weights are another\n  try: leave one of them out"
        )
    return {
        "seed": arguments.whole("seed", a["seed"], most=2**64 - 1),
        "shuffle": shuffle,
        "window": window,
        "weights": weights,
        "order": _order(shuffle, window, weights, datasets),
    }


def _batches(a: Mapping[str, Any]) -> dict[str, Any]:
    """What they hold, and how much."""
    content = contents.content(a["transform"], a["component"], a["array"], a["tokens"], a["columns"])
    dtype = arguments.element(a["dtype"])
    held = dtype if content["kind"] == "images" else content["array"][0] if content["array"] else ""
    if held == "bfloat16" and a["tensors"] == "numpy":
        raise arrays.no_bfloat16()
    mixing = {name: 0.0 if a[name] is None else arguments.number(name, a[name]) for name in ("mixup", "cutmix")}
    return mixing | {
        "transform": a["transform"],
        "content": content,
        "dtype": dtype,
        "batch_size": arguments.whole("batch_size", a["batch_size"], 1, arguments.MOST_32),
    }


def of_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """What _core.Feed takes. Raises InvalidError for what the C++ part would not name by the argument's name."""
    a = given
    rank, world_size = rank_and_world_size(a["rank"], a["world_size"])
    for name, choices in _CHOICES.items():
        if a[name] not in choices:
            raise InvalidError(f"loader: {name}: unknown value '{a[name]}' (one of: {', '.join(choices)})")
    paths = _paths(a["path"])
    parts = _ordering(a, len(paths)) | _batches(a) | _workers(a)
    switches = {name: arguments.switch(name, a[name]) for name in _SWITCHES}
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
            "skip": a["errors"] == "skip",
            "most_skipped": arguments.whole("max_skipped", a["max_skipped"]),
        }
    )
