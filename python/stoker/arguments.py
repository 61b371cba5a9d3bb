"""What a single argument of a loader may be. Each function gives it as the C++ part takes it, or says which argument, what it is
and what it should be."""

import math
import numbers
import operator
import reprlib
from typing import Any

from stoker.errors import InvalidError

MOST = 2**63 - 1
MOST_32 = 2**32 - 1
_MOST_WORKERS = 1024  # threads, as in loader.cc, or processes
_MOST_SECONDS = 1e6  # 11 days; poll() counts milliseconds in 32 bits


def refusal(name: str, value: Any, expected: str) -> InvalidError:
    """To be raised: "loader: cache: '1GB' is no whole number of bytes"."""
    return InvalidError(f"loader: {name}: {reprlib.repr(value)} is {expected}")


def whole(name: str, value: Any, least: int = 0, most: int = MOST, of: str = "") -> int:
    """Also numpy's and torch's, and floats without a fraction: 1e9, 160 / 10."""
    try:
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise refusal(name, value, f"no whole number{of}") from None
    if number < least:
        raise refusal(name, number, f"not at least {least}")
    if number > most:
        raise refusal(name, number, f"not at most {most}")
    return number


def size(name: str, value: Any) -> int:
    """A number of bytes."""
    return whole(name, value, of=" of bytes (256 << 20)")


def number(name: str, value: Any) -> float:
    """Any finite one."""
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise refusal(name, value, "no number")
    return float(value)


def seconds(name: str, value: Any) -> float:
    """How long to wait; 0: for ever. At most what every system call that waits can be told."""
    if not isinstance(value, numbers.Real) or not math.isfinite(value) or value < 0:
        raise refusal(name, value, "no number of seconds (0: waits for ever)")
    return min(float(value), _MOST_SECONDS)


def is_switch(value: Any) -> bool:
    """Whether it is True or False, also numpy's, or 1 or 0."""
    return type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1))


def switch(name: str, value: Any) -> bool:
    """Of what is_switch() takes."""
    if not is_switch(value):
        raise refusal(name, value, "neither True nor False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """One that UTF-8 can write: names of files may be others."""
    if not isinstance(value, str):
        raise refusal(name, value, "no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refusal(name, value, "not UTF-8") from None
    return value


def workers(value: Any) -> int | None:
    """A number of them, or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    try:
        return whole("num_workers", value, most=_MOST_WORKERS)
    except InvalidError:
        if isinstance(value, int):
            raise  # too few or too many
        raise InvalidError(f"loader: num_workers: '{value}' is neither a number nor 'auto'") from None


def element(value: Any) -> str:
    """The name of a type of numbers: as given, or of torch's or numpy's own."""
    if isinstance(value, str):
        return text("dtype", value)
    name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
    return str(name).removeprefix("torch.")
