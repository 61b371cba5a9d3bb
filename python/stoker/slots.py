"""Shared memory for batches of worker processes, and the pickling of batches around it."""

import io
import math
import mmap
import pickle
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch.utils.data._utils import collate as torch_collate

_ALIGNMENT = 64
_NORESERVE = 0x4000  # MAP_NORESERVE: pages use memory when they are first written
# Tensors beyond this size per batch are sent through the pipe. Only written pages use memory.
_SLOT_BYTES = 1 << 30
_MIN_SLOT_BYTES = 1 << 24


class Slot:
    """Shared memory for one batch: its indices, later its tensors."""

    def __init__(self) -> None:
        self.memory = _shared_memory(_SLOT_BYTES)
        self.array = numpy.frombuffer(self.memory, dtype=numpy.uint8)
        self.begin = self.array.ctypes.data
        self.used = 0

    def place(self, size: int) -> int | None:
        """Offset of `size` unused bytes, or None if they do not fit."""
        offset = -(-self.used // _ALIGNMENT) * _ALIGNMENT
        if offset + size > self.array.size:
            return None
        self.used = offset + size
        return offset

    def tensor(self, offset: int, like: "_Like", array: Any = None) -> torch.Tensor:
        """The tensor at `offset`, in the slot's memory or in a view of it."""
        raw = (self.array if array is None else array)[offset : offset + like.bytes()]
        return torch.from_numpy(raw).view(like.dtype).as_strided(like.shape, like.strides)

    def write(self, message: bytes) -> bool:
        """Writes at the slot's beginning; False if it does not fit."""
        fits = len(message) <= self.array.size
        if fits:
            self.memory[: len(message)] = message
        return fits


def _shared_memory(size: int) -> mmap.mmap:
    """Smaller if address space is limited or overcommit is forbidden."""
    while True:
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NORESERVE)
        except OSError:
            if size <= _MIN_SLOT_BYTES:
                raise
            size //= 2


class Lease(numpy.ndarray[Any, Any]):
    """A slot's memory while tensors in it are alive: numpy views keep their base object alive."""


class _Like:
    """Shape, strides and type of a tensor."""

    def __init__(self, shape: Any, strides: Any, dtype: torch.dtype) -> None:
        self.shape, self.strides, self.dtype = tuple(shape), tuple(strides), dtype

    def bytes(self) -> int:
        return int(math.prod(self.shape)) * self.dtype.itemsize


class _Tensor:
    """Placeholder for a tensor in a pickled batch."""

    def __init__(self, offset: int, like: _Like, is_numpy: bool, requires_grad: bool) -> None:
        self.offset, self.like = offset, like
        self.is_numpy, self.requires_grad = is_numpy, requires_grad


class Packer(pickle.Pickler):
    """Pickles a batch; its dense tensors are stored in the slot."""

    def __init__(self, file: Any, slot: Slot) -> None:
        super().__init__(file, protocol=5)
        self._slot = slot

    def persistent_id(self, value: Any) -> Any:
        tensor = _packed(value)
        if tensor is None or tensor.numel() == 0:
            return None
        like = _Like(tensor.shape, tensor.stride(), tensor.dtype)
        offset = tensor.data_ptr() - self._slot.begin
        if not 0 <= offset < self._slot.array.size:  # otherwise it was collated in place
            placed = self._slot.place(like.bytes())
            if placed is None:
                return None
            offset = placed
            self._slot.tensor(offset, like).copy_(tensor)
        is_numpy = type(value) is numpy.ndarray
        return _Tensor(offset, like, is_numpy, not is_numpy and value.requires_grad and value.is_leaf)


def _packed(value: Any) -> torch.Tensor | None:
    """A contiguous tensor of the value; None if it cannot be stored in a slot."""
    if type(value) is numpy.ndarray:
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8 or not value.dtype.isnative:
            return None
        is_turned = value.flags.fnc
        whole = torch.from_numpy(numpy.require(value.T if is_turned else value, requirements=["C", "W"]))
        return whole.permute(*reversed(range(whole.dim()))) if is_turned else whole
    if type(value) is not torch.Tensor or not _is_dense(value):
        return None
    whole = value.detach().resolve_conj().resolve_neg()
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(whole.dim())
    return whole if last is not None and whole.is_contiguous(memory_format=last) else whole.contiguous()


def _is_dense(value: torch.Tensor) -> bool:
    return (
        value.device.type == "cpu" and value.layout == torch.strided and not value.is_quantized and not value.is_nested
    )


class Unpacker(pickle.Unpickler):
    """Restores a batch written by Packer: as views into `array` (the slot's memory), or as copies if `array` is None."""

    def __init__(self, file: Any, slot: Slot, array: Any) -> None:
        super().__init__(file)
        self._slot, self._array = slot, array

    def persistent_load(self, value: _Tensor) -> Any:
        tensor = self._slot.tensor(value.offset, value.like, self._array)
        if self._array is None:
            tensor = tensor.clone()
        return tensor.numpy() if value.is_numpy else tensor.requires_grad_(value.requires_grad)


def stack(batch: list[torch.Tensor], *, collate_fn_map: Any = None) -> torch.Tensor:
    """torch's default_collate for tensors, as outside of its workers: without files in /dev/shm."""
    if batch[0].is_nested or batch[0].layout != torch.strided:
        torch_collate.collate_tensor_fn(batch)  # raises an error
    return torch.stack(batch, 0)


def stack_in(slot: Slot) -> Callable[..., Any]:
    """torch's default_collate with tensors stacked directly in the slot."""

    def stack_here(batch: list[torch.Tensor], *, collate_fn_map: Any = None) -> torch.Tensor:
        first = batch[0]
        if _is_dense(first) and not any(t.requires_grad or t.dtype != first.dtype for t in batch):
            shape = (len(batch), *first.shape)
            like = _Like(shape, [math.prod(shape[i + 1 :]) for i in range(len(shape))], first.dtype)
            offset = slot.place(like.bytes()) if like.bytes() else None
            if offset is not None:
                return torch.stack(batch, 0, out=slot.tensor(offset, like))
        return stack(batch)

    mapping = dict(torch_collate.default_collate_fn_map) | {torch.Tensor: stack_here}
    return lambda samples: torch_collate.collate(samples, collate_fn_map=mapping)


class _IndexPickler(pickle.Pickler):
    """For samplers that return tensors: torch's pickling takes half a millisecond for each."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is torch.Tensor and _is_dense(value) and not value.dtype.is_floating_point:
            return torch.from_numpy, (value.numpy(),)
        return NotImplemented


def pickled(indices: Any) -> bytes:
    """The pickled indices of a batch, for a worker."""
    file = io.BytesIO()
    _IndexPickler(file, protocol=5).dump(indices)
    return file.getvalue()
