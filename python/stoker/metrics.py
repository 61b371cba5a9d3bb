"""stoker.log and stoker.summary: metrics of any script in its run, for `stoker status`, `top` and `report`. C++ formats the
values, and a thread without the GIL writes them."""

import atexit
import operator
import os
import sys
from collections.abc import Mapping
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


def _integer(step: Any) -> int | None:
    if step is None:
        return None
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise InvalidError(f"stoker.log: step={step!r} is not an int, but {type(step).__name__}")
    number = operator.index(step)
    if not 0 <= number < 2**63:
        raise InvalidError(f"stoker.log: step={number}: must be from 0 to 2**63 - 1")
    return number
