"""Contents of a batch: converts the arguments of stoker.Loader to options of the C++ part and to the batch's fields."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stoker import arguments
from stoker.errors import InvalidError

# The name of a recipe, or operations with torchvision's names: "RandomHorizontalFlip", ("Resize", {"size": 256}).
Transform = str | Sequence[str | tuple[str, Mapping[str, Any]]]
# float, int or str; optionally with the sample's file (default: json) and the name in that file.
Column = type | tuple[str, str, type]

_KIND_FIELDS = {"images": ("image",), "bytes": ("data", "offset"), "arrays": ("array",), "tokens": ("tokens",)}
_NEEDS = {
    "image": "a transform",
    "data": "transform=None",
    "offset": "transform=None",
    "array": "array=",
    "tokens": "tokens=",
}
_TOKENS = {"length": 1024, "ahead": 1, "stored": None, "dtype": "int64"}
_RENAMED = "\n  try: another name: columns={'my_name': ('json', 'name in the file', float)}"
_TYPES = {float: "float", int: "int", str: "str"}


def _column(name: str, given: Any) -> tuple[str, str, str]:
    component, key, kind = given if isinstance(given, tuple) and len(given) == 3 else ("json", name, given)
    if kind not in _TYPES or not isinstance(component, str) or not isinstance(key, str):
        wanted = "float, int, str, or (file, name, one of these)"
        raise InvalidError(f"loader: columns: '{name}' is {given!r}, expected {wanted}")
    return component, key, _TYPES[kind]


def _tokens(given: Any) -> dict[str, Any]:
    chosen = dict(given) if isinstance(given, Mapping) else {"length": given}
    for name in chosen:
        if name not in _TOKENS:
            raise InvalidError(f"loader: tokens: unknown key '{name}' (one of: {', '.join(_TOKENS)})")
    chosen = _TOKENS | chosen
    lengths = (("length", 1), ("ahead", 0))
    counts = {
        name: arguments.integer(f"tokens: {name}", chosen[name], least, arguments.MAX_UINT32) for name, least in lengths
    }
    stored = chosen["stored"]
    return counts | {
        "stored": None if stored is None else arguments.dtype_name(stored),
        "dtype": arguments.dtype_name(chosen["dtype"]),
    }


def _array(given: Any) -> tuple[str, list[int]] | None:
    """Type and shape, or None to use the samples' headers."""
    if not isinstance(given, tuple):
        return None
    if len(given) != 2 or not isinstance(given[1], Sequence) or isinstance(given[1], str):
        raise arguments.invalid_argument("array", given, "neither True nor (type, shape): ('float32', (3, 2))")
    return arguments.dtype_name(given[0]), [arguments.integer("array: shape", side) for side in given[1]]


def _columns(given: Any) -> list[tuple[str, str, str]]:
    if not isinstance(given, Mapping):
        raise arguments.invalid_argument("columns", given, "not a dict: {'age': float}")
    return [_column(name, kind) for name, kind in given.items()]


def content(
    transform: Transform | None,
    component: str | None,
    array: bool | tuple[Any, Sequence[int]] | None,
    tokens: int | Mapping[str, Any] | None,
    columns: Mapping[str, Column] | None,
) -> dict[str, Any]:
    """The input of recipes.h. `array` and `tokens` take precedence over `transform`, which has a default."""
    has_array = isinstance(array, tuple) or (array is not None and arguments.boolean("array", array))
    if has_array and tokens is not None:
        raise InvalidError("loader: array and tokens: set only one of them")
    kind = "tokens" if tokens is not None else "arrays" if has_array else "images" if transform is not None else "bytes"
    return {
        "kind": kind,
        "component": "" if component is None else arguments.text("component", component),
        "array": _array(array),
        "tokens": None if tokens is None else _tokens(tokens),
        "columns": [] if columns is None else _columns(columns),
    }


def fields(chosen: Sequence[str] | None, kind: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The batch's fields in the requested order; by default all useful ones."""
    own = _KIND_FIELDS[kind]
    beside = ("index",) if kind == "tokens" else ("label", "key", "index")  # a sequence spans many samples
    for name in columns:
        if name in (*own, "key"):
            raise InvalidError(f"loader: columns: '{name}' is already a field of the batch{_RENAMED}")
    known = (*own, *beside, *columns)
    if chosen is None:
        return (*own, *(name for name in beside if name != "index"), *columns)
    if isinstance(chosen, str) or not isinstance(chosen, Iterable):
        raise arguments.invalid_argument("fields", chosen, "not a list of fields")
    chosen = tuple(chosen)
    for name in chosen:
        if name in known:
            continue
        if name in _NEEDS:
            raise InvalidError(f"loader: fields: '{name}' requires {_NEEDS[name]}")
        raise InvalidError(f"loader: fields: unknown field '{name}' (one of: {', '.join(known)})")
    return chosen


def shuffle(given: Any) -> str:
    """Name of the order."""
    if arguments.is_boolean(given):
        return "every_epoch" if given else "none"
    if not isinstance(given, str) or given not in ("full", "by_shard", "by_chunk"):
        raise InvalidError(f"loader: shuffle: unknown value '{given}' (one of: True, False, full, by_shard, by_chunk)")
    return given
