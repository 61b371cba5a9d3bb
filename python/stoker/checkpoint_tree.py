"""Converts a nested state to JSON, with names in place of its tensors, and back. Types without JSON equivalent are objects
with one member: {"dict": {...}}, {"tuple": [...]}, {"items": [[key, value], ...]}, {"bytes": "00ff"}, {"number": "nan"},
{"tensor": [part, name, library, type, kind]}. docs/formats/checkpoint.md lists them. Nothing is pickled.

A value is restored with its type or refused: a subclass of a supported type has more than the values that are stored."""

import enum
import json
import math
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from stoker.errors import CorruptError, InvalidError

MODEL, OPTIMIZER = "model", "optimizer"
Place = tuple[str, str]  # part and name, as stored


@dataclass
class Flat:
    """A flattened state: `tree` contains the names of `tensors`, which are keyed by (part, name) in visiting order."""

    tree: Any
    tensors: dict[Place, Any] = field(default_factory=dict)
    paths: dict[Place, str] = field(default_factory=dict)  # paths in the caller's state


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


class _Flattener:
    """`is_tensor` selects the objects stored as tensors; `describe` returns their description for the tree."""

    def __init__(self, has_model: bool, is_tensor: Callable[[Any], bool], describe: Callable[[Any], list[str | None]]):
        self._has_model = has_model
        self._is_tensor, self._describe = is_tensor, describe
        self._open: set[int] = set()
        self.flat = Flat(None)

    def _place(self, path: str) -> Place:
        """Part `model` contains only the model, so that it can be opened as one; names in `optimizer` are PyTorch's."""
        part, name = MODEL, path
        if self._has_model:
            top, _, below = path.partition(".")
            part = MODEL if top == MODEL else OPTIMIZER
            name = below if top in (MODEL, OPTIMIZER) and below else path
        name = name or "_"
        taken = name
        number = 2
        while (part, taken) in self.flat.tensors:
            taken, number = f"{name}#{number}", number + 1
        return part, taken

    def value(self, value: Any, path: str) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return _text(value)
        if kind is int:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"number": str(value)}
        if kind is bytes or kind is bytearray:
            return {kind.__name__: value.hex()}
        if kind is complex:
            return {"complex": [self.value(value.real, path), self.value(value.imag, path)]}
        if _is_numpy_scalar(value):
            return self._numpy_scalar(value, path)
        if not isinstance(value, type) and self._is_tensor(value):
            place = self._place(path)
            self.flat.tensors[place], self.flat.paths[place] = value, path
            return {"tensor": [*place, *self._describe(value)]}
        if (
            kind in (list, tuple)
            or _is_torch_size(kind)
            or (isinstance(value, Mapping) and self._may_be_dict(kind, path))
        ):
            return self._container(value, path)
        raise _unsupported(value, path)

    def _numpy_scalar(self, value: Any, path: str) -> Any:
        """Its type and bytes, and the closest plain value for readers without numpy."""
        if value.dtype.kind not in "biufcmMSU" or value.dtype.type is not type(value):
            raise _unsupported(value, path)
        plain = value.item()
        if type(plain) not in (bool, int, float, complex, str, bytes):
            plain = None
        return {"scalar": [value.dtype.str, value.tobytes().hex(), self.value(plain, path)]}

    @staticmethod
    def _may_be_dict(kind: type, path: str) -> bool:
        # load() returns the root as a Loaded, which may be saved again.
        return path == "" or kind in (dict, OrderedDict, Counter, defaultdict)

    def _container(self, value: Any, path: str) -> Any:
        if id(value) in self._open:
            raise InvalidError(f"checkpoint: '{path}' contains itself")
        self._open.add(id(value))
        if isinstance(value, Mapping):
            made = self._mapping(value, path)
        else:
            made = [self.value(item, _join(path, number)) for number, item in enumerate(value)]
            if isinstance(value, tuple):
                made = {"tuple" if type(value) is tuple else "size": made}
        self._open.discard(id(value))
        return made

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        if type(value) is defaultdict:
            factory = value.default_factory
            if factory is not None and factory not in _FACTORIES.values():
                raise InvalidError(
                    f"checkpoint: '{path}' is a defaultdict whose default_factory is not one of {', '.join(_FACTORIES)}\n"
                    "  try: dict() of it"
                )
            return {"defaultdict": [factory and factory.__name__, self._mapping(dict(value), path)]}
        kind = "counter" if type(value) is Counter else "ordered" if type(value) is OrderedDict else "dict"
        if kind != "counter" and all(type(key) is str and _is_utf8(key) for key in value):
            return {kind: {key: self.value(item, _join(path, key)) for key, item in value.items()}}
        items = [[self._key(key, path), self.value(item, _join(path, key))] for key, item in value.items()]
        return {"items" if kind == "dict" else kind: items}

    def _key(self, key: Any, path: str) -> Any:
        is_plain = key is None or type(key) in (str, bool, int, float, complex, bytes) or _is_numpy_scalar(key)
        if is_plain:
            return self.value(key, path)
        if type(key) is tuple or _is_torch_size(type(key)):
            return {"tuple" if type(key) is tuple else "size": [self._key(item, path) for item in key]}
        raise InvalidError(f"checkpoint: '{path}' has a key of type {type(key).__name__}")


# Callables that a defaultdict may have, by name.
_FACTORIES: dict[str, type] = {
    kind.__name__: kind for kind in (dict, list, int, float, str, bool, tuple, OrderedDict, Counter)
}


def _is_numpy_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def _is_torch_size(kind: type) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and kind is torch.Size


def _unsupported(value: Any, path: str) -> InvalidError:
    kind = type(value)
    what = f"{kind.__name__} (numpy type {value.dtype})" if _is_numpy_scalar(value) else kind.__name__
    cure = "dicts, lists, tuples, numbers, str, bytes and tensors, such as its state_dict() or vars()"
    if isinstance(value, enum.Enum):
        cure = "its .value"
    elif isinstance(value, tuple):
        cure = "its _asdict(), or tuple() of it" if hasattr(value, "_asdict") else "tuple() of it"
    else:
        for plain in (dict, list, str, int, float, bytes, bytearray, complex):
            if isinstance(value, plain):
                cure = f"{plain.__name__}() of it"
        if isinstance(value, Mapping):
            cure = "dict() of it"
    return InvalidError(f"checkpoint: '{path}' is {_article(what)}, which is not supported\n  try: {cure}")


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _text(text: str) -> Any:
    return text if _is_utf8(text) else {"text": text.encode("utf-8", "surrogatepass").hex()}


def flatten(state: Any, is_tensor: Callable[[Any], bool], describe: Callable[[Any], list[str | None]]) -> Flat:
    """Flattens a state. Raises InvalidError with the path of an unsupported value."""
    has_model = isinstance(state, Mapping) and MODEL in state and isinstance(state[MODEL], Mapping)
    flattener = _Flattener(has_model, is_tensor, describe)
    try:
        flattener.flat.tree = flattener.value(state, "")
    except RecursionError:
        raise InvalidError("checkpoint: the state is nested too deeply") from None
    return flattener.flat


def top_level(state: Any) -> dict[str, Any]:
    """The plain values of the top level, for display and `stoker checkpoint diff`."""
    if not isinstance(state, Mapping):
        return {}
    shown = {}
    for key, value in state.items():
        if _is_numpy_scalar(value) and value.dtype.kind in "biuf":
            value = value.item()
        is_small = type(value) in (bool, float, str) or (type(value) is int and -(2**63) <= value < 2**64)
        if isinstance(key, str) and _is_utf8(key) and key != "python" and is_small:
            shown[key] = stored_value(value)
    return shown


def stored_value(value: Any) -> Any:
    """A value in the form of checkpoint::StateValues."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, str) and not _is_utf8(value):
        return {"text_hex": value.encode("utf-8", "surrogatepass").hex()}
    return value


def read_value(value: Any) -> Any:
    """The inverse of stored_value()."""
    if not isinstance(value, dict):
        return value
    if "number" in value:
        return float(value["number"])
    if "bytes" in value:
        return bytes.fromhex(value["bytes"])
    return bytes.fromhex(value["text_hex"]).decode("utf-8", "surrogatepass")


def to_text(tree: Any) -> str:
    return json.dumps(tree, separators=(",", ":"), allow_nan=False)


def _restored(made: Callable[..., Any], value: Any) -> Any:
    try:
        return made(value)
    except (TypeError, ValueError, IndexError):
        raise CorruptError(f"checkpoint: its tree contains {str(value)[:80]!r}, which is not valid") from None


def unflatten(tree: Any, tensor: Callable[[list[str]], Any]) -> Any:
    """The state of a tree; `tensor` returns each of its tensors."""
    if isinstance(tree, list):
        return [unflatten(item, tensor) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1:
        raise CorruptError(f"checkpoint: its tree contains {str(tree)[:80]!r}, which is not valid")
    ((kind, value),) = tree.items()
    match kind, value:
        case "tensor", [str(), str(), *_]:
            return tensor(value)
        case (("dict" | "ordered"), dict()):
            pairs = ((key, unflatten(item, tensor)) for key, item in value.items())
            return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
        case (("items" | "counter" | "ordered"), list()):
            found = ((unflatten(key, tensor), unflatten(item, tensor)) for key, item in value)
            return {"items": dict, "counter": Counter, "ordered": OrderedDict}[kind](dict(found))
        case (("tuple" | "size"), list()):
            items = tuple(unflatten(item, tensor) for item in value)
            return items if kind == "tuple" else _torch_size(items)
        case "defaultdict", [name, dict() as inside] if name is None or name in _FACTORIES:
            return defaultdict(_FACTORIES.get(name), unflatten(inside, tensor))
        case "scalar", [str() as dtype, str() as held, plain]:
            return _numpy_scalar(dtype, held, unflatten(plain, tensor))
        case "complex", [real, imaginary]:
            return complex(unflatten(real, tensor), unflatten(imaginary, tensor))
        case "number", str():
            return _restored(float, value)
        case "bytes", str():
            return _restored(bytes.fromhex, value)
        case "bytearray", str():
            return _restored(bytearray.fromhex, value)
        case "text", str():
            return _restored(bytes.fromhex, value).decode("utf-8", "surrogatepass")
    raise CorruptError(f"checkpoint: its tree contains {str(tree)[:80]!r}, which is not valid")


def _torch_size(sizes: tuple[Any, ...]) -> Any:
    torch = sys.modules.get("torch")
    return sizes if torch is None else _restored(torch.Size, sizes)


def _numpy_scalar(dtype: str, held: str, plain: Any) -> Any:
    try:
        import numpy
    except ImportError:
        if plain is None:
            raise InvalidError(f"checkpoint: a value has numpy type {dtype}: loading it requires numpy") from None
        return plain
    if _restored(numpy.dtype, dtype).itemsize == 0:  # an empty text
        return numpy.zeros((), dtype)[()]
    return _restored(lambda text: numpy.frombuffer(bytes.fromhex(text), numpy.dtype(dtype))[0], held)


def parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"checkpoint: its tree is not JSON ({error})") from None


def select(tree: Any, patterns: list[str], path: str = "") -> Any:
    """The parts of a tree that match a pattern: `model`, `model.backbone`, `*.bias`. The rest is removed."""
    if path and any(is_below(path, pattern) for pattern in patterns):
        return tree
    if isinstance(tree, dict):
        ((kind, value),) = tree.items()
        if kind in ("dict", "ordered") and isinstance(value, dict):
            kept = {key: select(item, patterns, _join(path, key)) for key, item in value.items()}
            kept = {key: item for key, item in kept.items() if item is not _NOTHING}
            return {kind: kept} if kept or not path else _NOTHING
        if kind in ("items", "ordered") and isinstance(value, list):
            pairs = [[key, select(item, patterns, _join(path, key))] for key, item in value]
            pairs = [pair for pair in pairs if pair[1] is not _NOTHING]
            return {kind: pairs} if pairs or not path else _NOTHING
        if kind == "defaultdict":
            kept = select(value[1], patterns, path)
            return {kind: [value[0], kept]} if kept is not _NOTHING else _NOTHING
    return _NOTHING if path else tree


_NOTHING = object()


def is_below(path: str, pattern: str) -> bool:
    return path == pattern or path.startswith(pattern + ".") or fnmatchcase(path, pattern)


def tensors_of(tree: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """(path, description) of each tensor."""
    if isinstance(tree, list):
        for number, item in enumerate(tree):
            yield from tensors_of(item, _join(path, number))
    elif isinstance(tree, dict) and len(tree) == 1:
        ((kind, value),) = tree.items()
        if kind == "tensor":
            yield path, value
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from tensors_of(item, _join(path, key))
        elif kind == "tuple":
            yield from tensors_of(value, path)
        elif kind == "defaultdict":
            yield from tensors_of(value[1], path)
        elif kind in ("items", "counter", "ordered"):
            for key, item in value:
                yield from tensors_of(item, _join(path, key if not isinstance(key, dict) else "?"))
