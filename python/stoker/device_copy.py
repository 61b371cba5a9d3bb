"""Copies batches to a GPU while the training computes with the batch before.

The loader's threads fill page-locked memory. CopiedBatches copies each batch from there on a separate stream, one
batch ahead of the caller. It holds the host memory until the copy has completed: otherwise the threads would
overwrite it. A CopyStream has all operations of streams, events and pinned memory."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import torch

from stoker import _core, arguments
from stoker.errors import InvalidError, StokerError
from stoker.iteration import Place

# Batches whose work may be queued on the device when the next one is copied. Otherwise a caller that never waits for
# the device would fill its memory with batches.
_MAX_QUEUED = 4
_NO_WAIT = 1e-9  # seconds; 0 would be no timeout
_POLL_S = 1e-4
_STREAM_NAMES = ("Stream", "Event", "stream", "current_stream")


def resolve(given: Any) -> torch.device:
    """The argument `device` with the number of the device: torch's current one by default. Raises InvalidError if it
    is not available."""
    try:
        device = torch.device(given)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise _unavailable(given, _why_no_gpu())
        return torch.empty(0, device=device).device
    except (AssertionError, ImportError, RuntimeError, TypeError) as error:
        raise _unavailable(given, str(error).partition("\n")[0]) from None


def _why_no_gpu() -> str:
    is_built = torch.version.cuda is not None or torch.version.hip is not None
    return "PyTorch finds no GPU" if is_built else "this PyTorch is built without CUDA"


def _unavailable(given: Any, why: str) -> InvalidError:
    refused = arguments.invalid_argument("device", given, f"not available: {why}")
    return InvalidError(f"{refused}\n  try: device=None")


def page_locked(device: torch.device) -> tuple[str, int] | None:
    """Where batches for the device get page-locked memory: the file name of torch's CUDA runtime and the GPU's number.
    None for other devices, also for ROCm, which torch calls "cuda"."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    major = torch.version.cuda.partition(".")[0]
    return "libcudart.so.11.0" if major == "11" else f"libcudart.so.{major}", device.index or 0


class CopyStream(Protocol):
    """A stream of a device that copies tensors, and the events of its work. No method waits for the device."""

    def start(self, tensors: list[torch.Tensor]) -> tuple[list[torch.Tensor], Any]:
        """Starts to copy the tensors, which must exist unchanged until the returned event is complete."""

    def use(self, copies: list[torch.Tensor], event: Any) -> None:
        """Orders the work that the caller queues from now on after the event. `copies` may then be freed at any time."""

    def mark(self) -> Any:
        """An event after all work that the caller has queued."""

    def is_complete(self, event: Any) -> bool:
        """Whether the event is complete."""


class TorchCopyStream:
    """A CopyStream of torch.cuda, or of a module with the same functions (torch.xpu)."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._module: Any = getattr(torch, device.type)
        self._stream = self._module.Stream(device=device)

    def _pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        # Images are page-locked already. Labels are small, and a copy from torch's pinned memory may outlive the tensor.
        return tensor if self._device.type != "cuda" or tensor.is_pinned() else tensor.pin_memory()

    def start(self, tensors: list[torch.Tensor]) -> tuple[list[torch.Tensor], Any]:
        pinned = [self._pinned(tensor) for tensor in tensors]
        event = self._module.Event()
        with self._module.stream(self._stream):
            copies = [tensor.to(self._device, non_blocking=True) for tensor in pinned]
            event.record(self._stream)
        return copies, event

    def use(self, copies: list[torch.Tensor], event: Any) -> None:
        stream = self._module.current_stream(self._device)
        stream.wait_event(event)
        for copy in copies:
            copy.record_stream(stream)

    def mark(self) -> Any:
        event = self._module.Event()
        event.record(self._module.current_stream(self._device))
        return event

    def is_complete(self, event: Any) -> bool:
        return bool(event.query())


def copy_stream(device: torch.device) -> CopyStream | None:
    """A new stream for copies to the device; None if the device has no streams: the CPU, "meta", "mps"."""
    module = getattr(torch, device.type, None)
    if device.type == "cpu" or not all(hasattr(module, name) for name in _STREAM_NAMES):
        return None
    return TorchCopyStream(device)


class _Copy(NamedTuple):
    """A batch that is being copied."""

    fields: dict[str, Any]
    samples: int
    place: Place
    copies: list[torch.Tensor]
    event: Any


class CopiedBatches:
    """The batches of `feed` with their tensors on a device; `fields_of` converts a batch to tensors and lists. Like
    HostBatches, but the feed is up to one batch ahead of `place`."""

    def __init__(self, feed: _core.Feed, stream: CopyStream, fields_of: Callable[[Any], dict[str, Any]]) -> None:
        self._feed, self._stream, self._fields_of = feed, stream, fields_of
        self.place = Place(feed.state, feed.batches_left)
        self.count = 0
        self._ahead: _Copy | None = None
        self._end: Place | None = None  # the feed has ended its epoch, the caller has not
        self._sources: deque[tuple[Any, list[torch.Tensor]]] = deque()  # copies in flight: event and host memory
        self._queued: deque[Any] = deque()  # events after the caller's work of the last batches

    def advance(self, timeout: float) -> bool:
        """Waits for the next batch and sets `count`. False at the end of the epoch."""
        self._release_sources()
        if self._ahead is None and self._end is None:
            self._fetch(timeout)
        if self._end is not None:
            self.place, self._end = self._end, None
            return False
        assert self._ahead is not None
        self.count = self._ahead.samples
        return True

    def take(self) -> dict[str, Any]:
        """The batch of advance(). The caller's next work on the device waits for its copy. Starts to copy the next
        batch if it is ready."""
        assert self._ahead is not None
        taken, self._ahead = self._ahead, None
        self._limit_queue()
        # An error of the next batch is raised by its own advance().
        with suppress(StokerError):
            self._fetch(_NO_WAIT)
        self._stream.use(taken.copies, taken.event)
        self.place = taken.place
        return taken.fields

    def close(self) -> None:
        """Discards the batch ahead. Waits for copies in flight: the loader is about to reuse their host memory."""
        self._ahead = self._end = None
        with suppress(RuntimeError):  # after a failure of the device, or in a forked child, no copy is in flight
            while self._sources:
                self._wait(self._sources[0][0])
                self._sources.popleft()
        self._sources.clear()

    def _fetch(self, timeout: float) -> None:
        batch = self._feed.next(timeout)
        place = Place(self._feed.state, self._feed.batches_left)
        if batch is None:
            self._end = place
            return
        fields = self._fields_of(batch)
        names = [name for name, value in fields.items() if isinstance(value, torch.Tensor)]
        host = [fields[name] for name in names]
        copies, event = self._stream.start(host)
        self._sources.append((event, host))
        fields.update(zip(names, copies, strict=True))
        self._ahead = _Copy(fields, len(batch), place, copies, event)

    def _release_sources(self) -> None:
        while self._sources and self._stream.is_complete(self._sources[0][0]):
            self._sources.popleft()

    def _limit_queue(self) -> None:
        self._queued.append(self._stream.mark())
        if len(self._queued) > _MAX_QUEUED:
            self._wait(self._queued.popleft())

    def _wait(self, event: Any) -> None:
        # Not event.synchronize(), which would block Ctrl-C while the device hangs.
        while not self._stream.is_complete(event):
            time.sleep(_POLL_S)
