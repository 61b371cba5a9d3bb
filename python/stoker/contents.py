"""What a batch holds: from stoker.Loader's arguments to what the C++ part wants to know, and to the batch's fields."""

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.errors import InvalidError

# A recipe's name, or operations by torchvision's names: "RandomHorizontalFlip", ("Resize", {"size": 256}).
Transform = str | Sequence[str | tuple[str, Mapping[str, Any]]]
# float, int or str; with the file it is in, if that is not the sample's json, and its name there, if that is another.
Column = type | tuple[str, str, type]

_OF_KIND = {"images": ("image",), "bytes": ("data", "offset"), "arrays": ("array",), "tokens": ("tokens",)}
_NEEDS = {
    "image": "a transform",
    "data": "transform=None",
    "offset": "transform=None",
    "array": "array=",
    "tokens": "tokens=",
}
_TOKENS = {"length": 1024, "ahead": 1, "stored": "uint16", "dtype": "int64"}
_TYPES = {float: "float", int: "int", str: "str"}


def _column(name: str, given: Any) -> tuple[str, str, str]:
    component, key, kind = given if isinstance(given, tuple) and len(given) == 3 else ("json", name, given)
    if kind not in _TYPES or not isinstance(component, str) or not isinstance(key, str):
        wanted = "float, int, str, or (file, name, one of these)"
        raise InvalidError(f"loader: columns: '{name}' is {given!r}, expected {wanted}")
    return component, key, _TYPES[kind]


def _tokens(given: int | Mapping[str, Any]) -> dict[str, Any]:
    chosen = {"length": given} if isinstance(given, int) else dict(given)
    for name in chosen:
        if name not in _TOKENS:
            raise InvalidError(f"loader: tokens: unknown key '{name}' (one of: {', '.join(_TOKENS)})")
    return _TOKENS | chosen


def content(
    transform: Transform | None,
    component: str,
    array: bool | tuple[str, Sequence[int]],
    tokens: int | Mapping[str, Any] | None,
    columns: Mapping[str, Column] | None,
) -> dict[str, Any]:
    """As recipes.h reads it. `array` and `tokens` come before `transform`, which has a default."""
    if array and tokens is not None:
        raise InvalidError("loader: array and tokens: a batch holds one of them")
    kind = "tokens" if tokens is not None else "arrays" if array else "images" if transform is not None else "bytes"
    return {
        "kind": kind,
        "component": component,
        "array": None if isinstance(array, bool) else (array[0], list(array[1])),
        "tokens": None if tokens is None else _tokens(tokens),
        "columns": [_column(name, given) for name, given in (columns or {}).items()],
    }


def fields(chosen: Sequence[str] | None, kind: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The batch's fields, in the order in which they were asked for; by default all that are of use."""
    own = _OF_KIND[kind]
    beside = ("index",) if kind == "tokens" else ("label", "key", "index")  # a sequence is of many samples
    if chosen is None:
        return (*own, *(name for name in beside if name != "index"), *columns)
    known = (*own, *beside, *columns)
    for name in chosen:
        if name in known:
            continue
        if name in _NEEDS:
            raise InvalidError(f"loader: fields: '{name}' needs {_NEEDS[name]}")
        raise InvalidError(f"loader: fields: unknown field '{name}' (one of: {', '.join(known)})")
    return tuple(chosen)


def shuffle(given: bool | str) -> str:
    """The name of the order."""
    if isinstance(given, bool):
        return "every_epoch" if given else "none"
    if given not in ("full", "by_shard", "by_chunk"):
        raise InvalidError(f"loader: shuffle: unknown value '{given}' (one of: True, False, full, by_shard, by_chunk)")
    return given
