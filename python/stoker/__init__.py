"""Feeds a training from sharded datasets: read ahead, checked, decoded and transformed by C++ threads, in an order that
is a function of (seed, epoch, position), so that a run resumes exactly and on any number of processes.

Importing this module imports neither numpy nor torch."""

from typing import TYPE_CHECKING

from stoker._core import version as __version__
from stoker.errors import (
    CancelledError,
    CorruptError,
    ExistsError,
    InternalError,
    InvalidError,
    NoSpaceError,
    NotFoundError,
    StokerError,
    UnavailableError,
    WaitTimeoutError,
)
from stoker.loader import Loader

if TYPE_CHECKING:
    from stoker.data_loader import DataLoader

__all__ = [
    "CancelledError",
    "CorruptError",
    "DataLoader",
    "ExistsError",
    "InternalError",
    "InvalidError",
    "Loader",
    "NoSpaceError",
    "NotFoundError",
    "StokerError",
    "UnavailableError",
    "WaitTimeoutError",
    "__version__",
]


def __getattr__(name: str) -> object:
    # Its imports (multiprocessing, threading) are not paid for by those who do not use it.
    if name == "DataLoader":
        from stoker.data_loader import DataLoader

        return DataLoader
    raise AttributeError(f"module 'stoker' has no attribute {name!r}")
