"""Stoker's exceptions: one per kind of failure, each also the builtin exception that fits. Their text names what failed
(the sample and the shard where there is one) and, on a second line, what cures it."""

import itertools
from typing import Any


class StokerError(Exception):
    """What all of them are."""


class InvalidError(StokerError, ValueError):
    """An argument, or what the dataset is, does not fit."""


class NotFoundError(StokerError, FileNotFoundError):
    """What was named does not exist."""


class ExistsError(StokerError, FileExistsError):
    """What was to be made is there already."""


class UnavailableError(StokerError, OSError):
    """A file, device or service cannot be used now; trying again may help."""


class WaitTimeoutError(StokerError, TimeoutError):
    """A wait took longer than it was allowed to."""


class CancelledError(StokerError, RuntimeError):
    """What was asked was closed before."""


class CorruptError(StokerError, ValueError):
    """Stored bytes are not what was written."""


class NoSpaceError(StokerError, OSError):
    """A disk or quota is full."""


class InternalError(StokerError, RuntimeError):
    """A bug of Stoker's."""


_BY_CODE = {
    "invalid": InvalidError,
    "not_found": NotFoundError,
    "exists": ExistsError,
    "unavailable": UnavailableError,
    "timeout": WaitTimeoutError,
    "cancelled": CancelledError,
    "corrupt": CorruptError,
    "no_space": NoSpaceError,
}


def after_fork(made_by: int, used_by: int) -> InvalidError:
    """For what threads, pipes or shared memory keep a child from using."""
    said = f"made by process {made_by}, used by {used_by}"
    return InvalidError(
        f"loader: it was made before a fork, which copies no threads ({said})\n"
        "  try: make the loader in the process that iterates over it"
    )


def few(indices: Any) -> str:
    """Samples of a batch, to name it by; of one without batches its only one."""
    is_one = isinstance(indices, (str, bytes)) or getattr(indices, "ndim", 1) == 0 or not hasattr(indices, "__iter__")
    shown = [indices] if is_one else list(itertools.islice(indices, 5))
    numbers = [index.item() if getattr(index, "ndim", 1) == 0 else index for index in shown]
    return ", ".join(map(str, numbers[:4])) + (", ..." if len(numbers) > 4 else "")


def code_of(error: StokerError) -> str:
    """The code of which it is the exception."""
    return next((code for code, kind in _BY_CODE.items() if isinstance(error, kind)), "internal")


def make(code: str, text: str) -> StokerError:
    """The exception of that code; called by the C++ part."""
    return _BY_CODE.get(code, InternalError)(text)
