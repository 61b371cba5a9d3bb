"""stoker.log, summary, log_histogram and log_image: metrics of any script in its run, for `stoker status`, `top` and `report`.
C++ formats the values, and a thread without the GIL writes them."""

import array
import atexit
import io
import operator
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from stoker import _core
from stoker.errors import InvalidError

_is_open = False


def log(metrics: Mapping[str, Any], step: int | None = None) -> None:
    """Records values of metrics at a step: stoker.log({"loss": 0.5, "accuracy": 0.9}, step=120).

    Values are numbers of Python, numpy or torch (0-d tensors); NaN and infinity are recorded too. Without `step`, it is
    the last one plus one. Steps may repeat and go back: the later value of a step counts. Never waits for the disk: values
    are written within 100 ms. Outside a run, values are checked but not recorded. Thread-safe."""
    if not _is_open:
        _open()
    if not _core.log_metrics(metrics, step):
        _core.log_metrics(_numbers("stoker.log", metrics), _integer(step))


def summary(metrics: Mapping[str, Any]) -> None:
    """Records values of the whole run: stoker.summary({"best_accuracy": 0.91}). The last value of a name counts."""
    if not _is_open:
        _open()
    if not _core.log_summary(metrics):
        _core.log_summary(_numbers("stoker.summary", metrics))


def log_histogram(name: str, values: Any, step: int | None = None, bins: int = 64) -> None:
    """Records how values are distributed: stoker.log_histogram("fc.weight", model.fc.weight, step=120).

    `values` is an array of numpy or torch, or a list, also of lists. Their number in each of `bins` bins of equal width is
    recorded; NaN and infinity are counted apart. Without `step`, it is the last one of stoker.log."""
    caller = "stoker.log_histogram"
    if not _is_open:
        _open()
    name, number, bins = _name(caller, name), _integer(step, caller), _bins(bins)
    if isinstance(values, list | tuple | range):
        values = _flat(caller, name, values)
    values = _on_host(values)
    if "complex" in str(getattr(values, "dtype", "")):
        raise InvalidError(f"{caller}: '{name}' is complex\n  try: abs({name})")
    try:
        is_done = _core.log_histogram(name, values, number, bins)
        if not is_done:
            values = values.double() if hasattr(values, "double") else values.astype("float64")
            is_done = _core.log_histogram(name, values, number, bins)
    except InvalidError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidError(f"{caller}: '{name}' is not an array of numbers, but {_type(values)}") from error
    if not is_done:
        raise InvalidError(f"{caller}: '{name}' is not an array of numbers, but of {values.dtype}")


def log_image(name: str, image: Any, step: int | None = None) -> None:
    """Records a picture: stoker.log_image("samples", pixels, step=120).

    `image` is an array of numpy or torch or nested lists with the shape (height, width) or (height, width, channels), or
    (channels, height, width) where only that fits: whole numbers up to 255 of type uint8, fractions from 0 to 1, or bools. Or
    the bytes of a PNG or JPEG file, an image of Pillow, or a figure of matplotlib. At most 4 MiB as a file, and 8192 pixels on a
    side. Without `step`, it is the last one of stoker.log."""
    caller = "stoker.log_image"
    if not _is_open:
        _open()
    name, number = _name(caller, name), _integer(step, caller)
    if (file := _file_of(caller, name, image)) is not None:
        return _core.log_image_file(name, file, number)
    pixels = _pixels(caller, name, image) if isinstance(image, list | tuple) else _on_host(image)
    try:
        is_done = _core.log_pixels(name, pixels, number)
        if not is_done and "float" in str(pixels.dtype):  # of 16 bits
            pixels = pixels.float() if hasattr(pixels, "float") else pixels.astype("float32")
            is_done = _core.log_pixels(name, pixels, number)
    except (AttributeError, TypeError) as error:
        raise InvalidError(f"{caller}: '{name}' is not an image, but {_type(image)}") from error
    if not is_done:
        kind = getattr(pixels, "dtype", "another type")
        cure = f"\n  try: {name}.clip(0, 255).astype('uint8')" if hasattr(pixels, "astype") else ""
        raise InvalidError(f"{caller}: '{name}' has pixels of {kind}, expected uint8, bool or floats from 0 to 1{cure}")
    return None


def _file_of(caller: str, name: str, image: Any) -> bytes | None:
    """The bytes of a file, or None if `image` is pixels."""
    if isinstance(image, bytes | bytearray):
        return bytes(image)
    if isinstance(image, str | os.PathLike):
        cure = f"\n  try: {caller}({name!r}, pathlib.Path({os.fspath(image)!r}).read_bytes())"
        raise InvalidError(f"{caller}: '{name}' is a path, expected pixels or the bytes of a file{cure}")
    buffer = io.BytesIO()
    try:
        if hasattr(image, "savefig"):
            image.savefig(buffer, format="png")
        elif hasattr(image, "save") and hasattr(image, "mode"):
            image.save(buffer, "PNG")
        else:
            return None
    except (OSError, ValueError) as error:
        raise InvalidError(f"{caller}: '{name}' cannot be written as PNG: {error}") from error
    return buffer.getvalue()


def _on_host(values: Any) -> Any:
    """A tensor of torch without its graph, in the memory of the host; an array of numpy in the byte order of the host."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu()
    dtype: Any = getattr(values, "dtype", None)
    return values.astype(dtype.newbyteorder("=")) if getattr(dtype, "isnative", True) is False else values


def _flat(caller: str, name: str, values: Any) -> "array.array[float]":
    def numbers(part: Any) -> Iterator[float]:
        for each in part:
            if isinstance(each, list | tuple | range):
                yield from numbers(each)
            else:
                yield _number(caller, name, each)

    return array.array("d", numbers(values))


def _pixels(caller: str, name: str, rows: Any) -> Any:
    shape = _shape(caller, name, rows)
    if len(shape) not in (2, 3) or 0 in shape:
        raise InvalidError(f"{caller}: '{name}' has the shape {shape}, expected rows of pixels")
    numbers = _flat(caller, name, rows)
    first = rows[0][0] if len(shape) == 2 else rows[0][0][0]
    if isinstance(first, float) or any(number % 1 != 0 for number in numbers):
        return memoryview(numbers).cast("B").cast("d", shape)
    if any(not 0 <= number <= 255 for number in numbers):
        raise InvalidError(f"{caller}: '{name}' has whole numbers outside of 0 to 255")
    return memoryview(bytes(map(int, numbers))).cast("B", shape)


def _shape(caller: str, name: str, part: Any) -> tuple[int, ...]:
    if not isinstance(part, list | tuple):
        return ()
    shapes = {_shape(caller, name, each) for each in part} or {()}
    if len(shapes) > 1:
        raise InvalidError(f"{caller}: '{name}' has rows of different lengths")
    return (len(part), *shapes.pop())


def _bins(bins: Any) -> int:
    if isinstance(bins, bool) or not hasattr(bins, "__index__"):
        raise InvalidError(f"stoker.log_histogram: bins={bins!r} is not an int, but {_type(bins)}")
    return min(max(operator.index(bins), 0), 1 << 20)


def _type(value: Any) -> str:
    return type(value).__name__


def _open() -> None:
    global _is_open
    _is_open = True
    if _core.records_metrics():
        atexit.register(_flush)
    elif os.environ.get("RANK", "0") == "0":
        print(
            "stoker.log: metrics are not recorded outside a run (STOKER_ATTEMPT_DIR is not set)\n"
            "  try: start the script with `stoker run`",
            file=sys.stderr,
        )


def sync() -> None:
    """Waits until the values so far would survive a power failure. Problems are reported by the thread that writes."""
    if _is_open:
        _core.flush_metrics()


def sync_later() -> None:
    """Has the values so far survive a power failure soon, and returns at once."""
    if _is_open:
        _core.sync_metrics_later()


def _flush() -> None:
    if problem := _core.flush_metrics():
        print(f"stoker.log: {problem}; the last metrics are lost", file=sys.stderr)


def _numbers(caller: str, metrics: Any) -> dict[str, float]:
    if not isinstance(metrics, Mapping):
        raise InvalidError(f"{caller}: expected a dict of names and numbers, got {type(metrics).__name__}")
    return {_name(caller, name): _number(caller, name, value) for name, value in metrics.items()}


def _name(caller: str, name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidError(f"{caller}: the name {name!r} is not a str, but {type(name).__name__}")
    return name.encode(errors="replace").decode()  # lone surrogates


def _number(caller: str, name: str, value: Any) -> float:
    shape = getattr(value, "shape", ())
    if tuple(shape) != ():
        cure = f"\n  try: log {name}.mean(), or one name for each value"
        raise InvalidError(f"{caller}: '{name}' has the shape {tuple(shape)}, expected a single number{cure}")
    if isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool"):
        raise InvalidError(f"{caller}: '{name}' is a bool, expected a number\n  try: float({name})")
    if isinstance(value, str | bytes) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise InvalidError(f"{caller}: '{name}' is not a number, but {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(f"{caller}: '{name}' is not a number: {error}") from error


def _integer(step: Any, caller: str = "stoker.log") -> int | None:
    if step is None:
        return None
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise InvalidError(f"{caller}: step={step!r} is not an int, but {type(step).__name__}")
    number = operator.index(step)
    if not 0 <= number < 2**63:
        raise InvalidError(f"{caller}: step={number}: must be from 0 to 2**63 - 1")
    return number
