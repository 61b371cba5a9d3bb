"""Data loading from sharded datasets, checkpoints and metrics for any training loop, and functions as Slurm jobs.

C++ threads read, verify, decode and transform the samples. Their order is a function of (seed, epoch, position), so a
run resumes exactly, on any number of processes. Importing this module imports neither numpy nor torch."""

import os
from typing import TYPE_CHECKING

from stoker._core import version as __version__
from stoker.errors import (
    AccessError,
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
from stoker.metrics import log, log_histogram, log_image, summary

if TYPE_CHECKING:
    from stoker import checkpoint, notebook
    from stoker.call import RemoteError
    from stoker.data_loader import DataLoader
    from stoker.futures import FailedRunError, Future, TaskFuture, map_array, submit
    from stoker.profiling import profile
    from stoker.studies import study

__all__ = [
    "AccessError",
    "CancelledError",
    "CorruptError",
    "DataLoader",
    "ExistsError",
    "FailedRunError",
    "Future",
    "InternalError",
    "InvalidError",
    "Loader",
    "NoSpaceError",
    "NotFoundError",
    "RemoteError",
    "StokerError",
    "TaskFuture",
    "UnavailableError",
    "WaitTimeoutError",
    "__version__",
    "checkpoint",
    "log",
    "log_histogram",
    "log_image",
    "map_array",
    "notebook",
    "profile",
    "study",
    "submit",
    "summary",
]

# Loaded on first use: they import multiprocessing, subprocess and threading.
_LAZY = {
    "DataLoader": "data_loader",
    "FailedRunError": "futures",
    "Future": "futures",
    "RemoteError": "call",
    "TaskFuture": "futures",
    "map_array": "futures",
    "profile": "profiling",
    "study": "studies",
    "submit": "futures",
}


def _answer_stack_signal() -> None:
    """Where `stoker run` ends a hanging rank, it first asks for the stacks (src/base/stack_signal.h)."""
    import faulthandler
    import signal

    try:
        if signal.getsignal(41) == signal.SIG_DFL:
            faulthandler.register(41, all_threads=True)
    except (AttributeError, OSError, RuntimeError, ValueError):
        return  # standard error is no file, or this is no main interpreter


if os.environ.get("STOKER_ATTEMPT_DIR"):
    _answer_stack_signal()


def __getattr__(name: str) -> object:
    import importlib

    if name in _LAZY:
        return getattr(importlib.import_module(f"stoker.{_LAZY[name]}"), name)
    if name in ("checkpoint", "notebook"):
        return importlib.import_module(f"stoker.{name}")
    raise AttributeError(f"module 'stoker' has no attribute {name!r}")
