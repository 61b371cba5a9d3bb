"""Tensors of torch, of numpy and of whatever speaks DLPack, as addresses for the C++ part. Neither is imported here: who
saves one of theirs has done so."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from stoker import _core
from stoker.errors import InvalidError

Kind = Literal["auto", "torch", "numpy", "dlpack"]
Shape = tuple[int, ...]

# What safetensors names, and both libraries.
_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16", "bfloat16": "BF16",
    "int32": "I32", "uint32": "U32", "float32": "F32", "float64": "F64", "int64": "I64", "uint64": "U64",
}  # fmt: skip
_LIBRARY_NAMES = {stored: name for name, stored in _NAMES.items()}
# Stored as another type: two numbers each, or one byte.
_PAIRS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_BELOW = 64 << 10  # as kWholeBelow: not split between ranks, so that rank 0's counts


@dataclass
class Memory:
    """What is saved of one tensor, or where a loaded one goes. `holder` keeps the memory."""

    dtype: str
    shape: Shape
    address: int
    bytes: int
    holder: Any
    whole: Shape | None = None  # of a shard
    first_row: int = 0
    is_writer: bool = True  # else another replica of the shard writes these rows

    @property
    def is_small(self) -> bool:
        return self.bytes < _BELOW


def _torch() -> Any:
    return sys.modules.get("torch")


def _numpy() -> Any:
    return sys.modules.get("numpy")


def is_tensor(value: Any) -> bool:
    torch, numpy = _torch(), _numpy()
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    if numpy is not None and isinstance(value, numpy.ndarray):
        return True
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def describe(value: Any) -> list[str]:
    """The library a tensor is of and its type where it is stored as another one, as the tree holds them."""
    torch, numpy = _torch(), _numpy()
    if torch is not None and isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        return ["torch"] if name in _NAMES else ["torch", name]
    if numpy is not None and isinstance(value, numpy.ndarray):
        name = value.dtype.name
        return ["numpy"] if name in _NAMES else ["numpy", name]
    return ["dlpack"]


def memory(value: Any, path: str) -> Memory:
    """The memory of a tensor, made contiguous and brought to the CPU where it is not. InvalidError names `path`."""
    torch, numpy = _torch(), _numpy()
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(torch, value, path)
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _of_numpy(numpy, value, path)
    try:
        found = _core.Memory(value)
    except TypeError:
        raise _unknown(path, "is not in the CPU's memory") from None
    if found.dtype is None or not found.is_contiguous:
        raise _unknown(path, "is of a type, or strided in a way, that DLPack has and checkpoints do not")
    return Memory(found.dtype, tuple(found.shape), found.address, found.bytes, found)


def _unknown(path: str, why: str) -> InvalidError:
    return InvalidError(f"checkpoint: tensor '{path}': {why}")


def _of_numpy(numpy: Any, value: Any, path: str) -> Memory:
    shape, name = tuple(value.shape), value.dtype.name
    array = numpy.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
    if name in _PAIRS:
        shape, name = (*shape, 2), _PAIRS[name]
    if name not in _NAMES:
        raise _unknown(path, f"is of numpy's type {name}, which a checkpoint does not hold")
    return Memory(_NAMES[name], shape, array.__array_interface__["data"][0], array.nbytes, array)


def _of_torch(torch: Any, value: Any, path: str) -> Memory:
    tensor = value.detach()
    if type(value).__name__ == "DTensor":
        return _of_distributed(torch, tensor, path)
    if type(value).__name__ == "ShardedTensor":
        raise _unknown(
            path, "is a ShardedTensor of FSDP1 (save DTensors, as fully_shard() gives, or a full state dict)"
        )
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise _unknown(path, "is sparse or quantized, which a checkpoint does not hold")
    if tensor.device.type == "meta":
        raise _unknown(path, "is on the device 'meta', which has no values")
    if tensor.device.type != "cpu":
        tensor = tensor.to("cpu")
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    tensor = tensor.contiguous()
    name = str(tensor.dtype)[6:]
    if name not in _NAMES:
        tensor = _as_stored(torch, tensor, name, path)
        name = str(tensor.dtype)[6:]
    return Memory(_NAMES[name], tuple(tensor.shape), tensor.data_ptr(), tensor.nbytes, tensor)


def _as_stored(torch: Any, tensor: Any, name: str, path: str) -> Any:
    """The same memory as a type that checkpoints have."""
    if name in _PAIRS:
        return torch.view_as_real(tensor)
    if tensor.element_size() == 1 and name.startswith("float8"):
        return tensor.view(torch.uint8)
    raise _unknown(path, f"is of torch's type {name}, which a checkpoint does not hold")


def _of_distributed(torch: Any, tensor: Any, path: str) -> Memory:
    """A DTensor: this rank's rows where it is sharded on dimension 0, as FSDP2 does; what is replicated as a whole."""
    sharded = [axis for axis, placement in enumerate(tensor.placements) if not placement.is_replicate()]
    local = _of_torch(torch, tensor.to_local(), path)
    if not sharded:
        return local
    placements = ", ".join(str(placement) for placement in tensor.placements)
    coordinate = tensor.device_mesh.get_coordinate()
    is_rows = len(sharded) == 1 and tensor.placements[sharded[0]].is_shard(0) and coordinate is not None
    if not is_rows or type(tensor.placements[sharded[0]]).__name__ != "Shard" or tensor.is_complex():
        raise _unknown(
            path,
            f"is distributed as ({placements}); checkpoints hold rows of one mesh axis: Shard(0), others replicated\n"
            "  try: torch.distributed.checkpoint.state_dict.get_model_state_dict with full_state_dict=True",
        )
    axis = sharded[0]
    rows, ranks, at = tensor.shape[0], tensor.device_mesh.size(axis), coordinate[axis]
    each = -(-rows // ranks)
    first = min(at * each, rows)
    if local.shape[0] != min(each, rows - first):
        raise _unknown(path, f"is sharded unevenly ({local.shape[0]} rows of {rows} at {at} of {ranks})")
    local.whole, local.first_row = tuple(tensor.shape), first
    local.is_writer = all(place == 0 for other, place in enumerate(coordinate) if other != axis)
    return local


def saved(memory: Memory, name: str, is_optimizer: bool) -> tuple[Any, ...]:
    """As _core.CheckpointSaver takes it."""
    kind = 1 if is_optimizer else 0
    if memory.whole is not None:
        is_writer = memory.is_writer
        shape, size = (memory.shape, memory.bytes) if is_writer else ((0, *memory.shape[1:]), 0)
        return (kind + 4, name, memory.dtype, shape, memory.address, size, memory.whole, memory.first_row)
    # Which rank's copy of a small tensor counts is then never a question: batch-norm statistics differ between ranks.
    kind += 2 if memory.is_small else 0
    return (kind, name, memory.dtype, memory.shape, memory.address, memory.bytes, (), 0)


def library(kind: Kind, saved_as: str, dtype: str) -> str:
    """What a loaded tensor becomes: what it was where that library is there, else what is."""
    if kind not in ("auto", "torch", "numpy", "dlpack"):
        raise InvalidError(f"checkpoint: tensors: unknown kind '{kind}' (one of: auto, torch, numpy, dlpack)")
    if kind != "auto":
        return kind
    if saved_as in ("torch", "numpy") and saved_as in sys.modules and (saved_as, dtype) != ("numpy", "BF16"):
        return saved_as
    if _torch() is not None:
        return "torch"
    return "numpy" if _numpy() is not None and dtype != "BF16" else "dlpack"


def empty(library: str, dtype: str, shape: Shape, path: str) -> Memory:
    """Memory for a tensor that is to be loaded; its `holder` is the tensor."""
    if library == "torch":
        import torch

        tensor = torch.empty(shape, dtype=getattr(torch, _LIBRARY_NAMES[dtype]))
        return Memory(dtype, shape, tensor.data_ptr(), tensor.nbytes, tensor)
    if library == "numpy":
        import numpy

        if dtype == "BF16":
            raise _unknown(path, "is bfloat16, which numpy does not have (tensors='torch' or 'dlpack')")
        array = numpy.empty(shape, dtype=_LIBRARY_NAMES[dtype])
        return Memory(dtype, shape, array.__array_interface__["data"][0], array.nbytes, array)
    made, address = _core.make_array(dtype, list(shape))
    return Memory(dtype, shape, address, 0, made)


def finished(memory: Memory, library: str, real_type: str | None) -> Any:
    """The loaded tensor, as the type that it was stored in place of."""
    tensor = memory.holder
    if real_type is None or library == "dlpack":
        return tensor
    if library == "numpy":
        return tensor.view(real_type).reshape(memory.shape[:-1]) if real_type in _PAIRS else tensor
    import torch

    return torch.view_as_complex(tensor) if real_type in _PAIRS else tensor.view(getattr(torch, real_type))


def into(value: Any, path: str) -> tuple[Memory, Callable[[], None]]:
    """The memory of a tensor that is to be filled, and what is to be done when it is: nothing, or a copy to where it
    really lies."""
    torch = _torch()
    if torch is not None and isinstance(value, torch.Tensor):
        target = value.detach()
        if type(value).__name__ == "DTensor":
            target = target.to_local()
        filled = _of_torch(torch, value, path)
        if filled.address == target.data_ptr() or filled.bytes == 0:
            return filled, lambda: None
        # Made for this purpose: contiguous and on the CPU.
        source = filled.holder

        def copy() -> None:
            target.copy_(source if source.dtype == target.dtype else finished(filled, "torch", str(target.dtype)[6:]))

        return filled, copy
    numpy = _numpy()
    if numpy is not None and isinstance(value, numpy.ndarray):
        filled = _of_numpy(numpy, value, path)
        if filled.address == value.__array_interface__["data"][0]:
            return filled, lambda: None
        return filled, lambda: numpy.copyto(value, filled.holder)
    raise _unknown(path, f"is {type(value).__name__}; only tensors of torch and arrays of numpy can be filled")
