"""Stoker's exceptions: one per kind of failure, each derived from the matching builtin exception. The message names the cause
(sample and shard if any) and, on a second line, the cure."""

import errno
import itertools
import os
import sys
from typing import Any


class StokerError(Exception):
    """Base class."""


class InvalidError(StokerError, ValueError):
    """An argument or the dataset is not suitable."""


class AccessError(InvalidError, OSError):
    """A file or folder cannot be accessed: no permission, a read-only filesystem, a name that is too long."""


class NotFoundError(StokerError, FileNotFoundError):
    """A named file, dataset or checkpoint does not exist."""


class ExistsError(StokerError, FileExistsError):
    """A file or checkpoint already exists."""


class UnavailableError(StokerError, OSError):
    """A file, device or service is temporarily unavailable; a retry may help."""


class WaitTimeoutError(StokerError, TimeoutError):
    """A wait exceeded its timeout."""


class CancelledError(StokerError, RuntimeError):
    """The object was closed or the run cancelled."""


class CorruptError(StokerError, ValueError):
    """Stored bytes differ from the written ones."""


class NoSpaceError(StokerError, OSError):
    """A disk or quota is full."""


class InternalError(StokerError, RuntimeError):
    """A bug in Stoker."""


class Note(Exception):  # noqa: N818 (tracebacks show the name)
    """A note of add_note() in Python 3.10, whose tracebacks do not print notes: it is the cause of the exception."""


def add_note(error: BaseException, note: str) -> None:
    """BaseException.add_note(), which Python 3.10 does not have."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        chain_note(error, note)


def chain_note(error: BaseException, note: str) -> None:
    """Adds the note as in Python 3.11, and as the first exception of the traceback."""
    vars(error).setdefault("__notes__", []).append(note)
    first, seen = error, {id(error)}
    while (cause := first.__cause__ or (None if first.__suppress_context__ else first.__context__)) is not None:
        if id(cause) in seen:
            return
        seen.add(id(cause))
        first = cause
    first.__cause__ = Note(note)


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
    """The error for objects with threads, pipes or shared memory that are used in a forked child."""
    text = f"created by process {made_by}, used by {used_by}"
    return InvalidError(
        f"loader: created before a fork, which does not copy threads ({text})\n"
        "  try: create the loader in the process that iterates over it"
    )


def sample_names(indices: Any) -> str:
    """The first samples of a batch, for a message; `indices` may be a single sample."""
    is_one = isinstance(indices, (str, bytes)) or getattr(indices, "ndim", 1) == 0 or not hasattr(indices, "__iter__")
    shown = [indices] if is_one else list(itertools.islice(indices, 5))
    numbers = [index.item() if getattr(index, "ndim", 1) == 0 else index for index in shown]
    return ", ".join(map(str, numbers[:4])) + (", ..." if len(numbers) > 4 else "")


def code_of(error: StokerError) -> str:
    """The code of an exception."""
    return next((code for code, kind in _BY_CODE.items() if isinstance(error, kind)), "internal")


_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENAMETOOLONG)
_SYSTEM = (*_ACCESS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE)
# The C++ part ends its messages with the system's text, in lower case.
_ERRNOS = {os.strerror(number).lower(): number for number in _SYSTEM}


def make(code: str, text: str) -> StokerError:
    """The exception for a code; called by the C++ part. An OSError of a system call has its errno."""
    number = _ERRNOS.get(text.partition("\n")[0].rpartition(": ")[2].lower())
    kind = AccessError if code == "invalid" and number in _ACCESS else _BY_CODE.get(code, InternalError)
    error = kind(text)
    if number is not None and isinstance(error, OSError):
        error.errno = number
    return error
