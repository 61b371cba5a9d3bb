"""Checks arguments of stoker.checkpoint. Each function returns the value for the C++ part, or raises InvalidError with argument,
value and expectation."""

import math
import numbers
import operator
import os
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stoker.errors import InvalidError

_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_MAX_SECONDS = 1e9  # 31 years; a 64-bit count of nanoseconds ends after 292


def invalid(name: str, value: Any, expected: str) -> InvalidError:
    return InvalidError(f"checkpoint: {name}: {reprlib.repr(value)} is not {expected}")


def whole(name: str, value: Any, most: int = _MAX_INT64) -> int:
    """Also accepts integers of numpy and torch."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # torch: several values, or on the device meta
        number = None
    if number is None or number < 0:
        raise invalid(name, value, "a whole number of at least 0")
    if number > most:
        raise invalid(name, value, f"at most {most}")
    return number


def count(name: str, value: Any) -> int:
    return whole(name, value, _MAX_INT32)


def seconds(name: str, value: Any, is_zero_allowed: bool = False) -> float:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value)
    if not is_number or value < 0 or (value == 0 and not is_zero_allowed):
        raise invalid(name, value, "a number of seconds")
    return min(float(value), _MAX_SECONDS)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(name, value, "a str")
    return value


def folder(value: Any) -> Path:
    try:
        at = os.fspath(value)
    except TypeError:
        raise invalid("folder", value, "a path") from None
    at = os.fsdecode(at)
    if "\0" in at:
        raise invalid("folder", value, "a path")
    return Path(at)


def patterns(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    several = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(pattern, str) for pattern in several):
        raise invalid(name, value, "a str or a list of them")
    return several


def mapping(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidError(f"checkpoint: {name} is {type(value).__name__}, expected a dict")
