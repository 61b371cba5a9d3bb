"""Checks single arguments of a loader. Each function returns the value for the C++ part, or raises an error with argument,
value and expectation."""

import math
import numbers
import operator
import reprlib
from typing import Any

from stoker.errors import InvalidError

MAX_INT64 = 2**63 - 1
MAX_UINT32 = 2**32 - 1
_MAX_WORKERS = 1024  # threads, as in loader.cc, or processes
_MAX_SECONDS = 1e6  # 11 days; poll() counts milliseconds in 32 bits


def invalid_argument(name: str, value: Any, expected: str) -> InvalidError:
    """An error to raise: "loader: cache: '1GB' is not a whole number of bytes"."""
    return InvalidError(f"loader: {name}: {reprlib.repr(value)} is {expected}")


def integer(name: str, value: Any, least: int = 0, most: int = MAX_INT64, of: str = "") -> int:
    """Also accepts integers of numpy and torch, and floats without a fraction: 1e9, 160 / 10."""
    try:
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise invalid_argument(name, value, f"not a whole number{of}") from None
    if number < least:
        raise invalid_argument(name, number, f"not at least {least}")
    if number > most:
        raise invalid_argument(name, number, f"not at most {most}")
    return number


def size(name: str, value: Any) -> int:
    """A size in bytes."""
    return integer(name, value, of=" of bytes (256 << 20)")


def number(name: str, value: Any) -> float:
    """A finite number."""
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise invalid_argument(name, value, "not a number")
    return float(value)


def seconds(name: str, value: Any) -> float:
    """A timeout; 0: no timeout. Limited to the maximum of all waiting system calls."""
    if not isinstance(value, numbers.Real) or not math.isfinite(value) or value < 0:
        raise invalid_argument(name, value, "not a number of seconds (0: no timeout)")
    return min(float(value), _MAX_SECONDS)


def is_boolean(value: Any) -> bool:
    """Whether it is a bool of Python or numpy, or 1 or 0."""
    return type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1))


def boolean(name: str, value: Any) -> bool:
    """A value accepted by is_boolean()."""
    if not is_boolean(value):
        raise invalid_argument(name, value, "neither True nor False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A str that can be encoded as UTF-8; file names may not be."""
    if not isinstance(value, str):
        raise invalid_argument(name, value, "not a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid_argument(name, value, "not UTF-8") from None
    return value


def workers(value: Any) -> int | None:
    """The number of workers, or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    try:
        return integer("num_workers", value, most=_MAX_WORKERS)
    except InvalidError:
        if isinstance(value, int):
            raise  # too few or too many
        raise InvalidError(f"loader: num_workers: '{value}' is neither a number nor 'auto'") from None


def dtype_name(value: Any) -> str:
    """The name of a dtype, given as a string or as a dtype of torch or numpy."""
    if isinstance(value, str):
        return text("dtype", value)
    name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
    return str(name).removeprefix("torch.")
