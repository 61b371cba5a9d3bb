"""Tensors of torch, numpy and DLPack libraries as memory addresses for the C++ part. Imports neither torch nor numpy: a caller
with such a tensor has imported its library."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from stoker import _core
from stoker.errors import InvalidError

Kind = Literal["auto", "torch", "numpy", "dlpack"]
Shape = tuple[int, ...]

# Type names of both libraries, with their safetensors names.
_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16", "bfloat16": "BF16",
    "int32": "I32", "uint32": "U32", "float32": "F32", "float64": "F64", "int64": "I64", "uint64": "U64",
}  # fmt: skip
_LIBRARY_NAMES = {stored: name for name, stored in _NAMES.items()}
# Types stored as pairs of numbers.
_PAIRS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_BELOW = 64 << 10  # as kWholeBelow: not split between ranks, so that rank 0's is saved


@dataclass
class Memory:
    """Memory of a tensor to save or to load into. `holder` keeps it alive."""

    dtype: str
    shape: Shape
    address: int
    bytes: int
    holder: Any
    whole: Shape | None = None  # of a shard
    first_row: int = 0
    is_writer: bool = True  # False: a different replica of the shard writes these rows

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


def describe(value: Any) -> list[str | None]:
    """The library of a tensor, and its type if it is stored as a different one, for the tree."""
    torch, numpy = _torch(), _numpy()
    if torch is not None and isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        real_type, kind = None if name in _NAMES else name, _kind_of(torch, value)
        return ["torch", real_type, kind] if kind else ["torch", real_type] if real_type else ["torch"]
    if numpy is not None and isinstance(value, numpy.ndarray):
        name = value.dtype.name
        if not value.dtype.isnative and name in _NAMES:
            name = value.dtype.str
        return ["numpy"] if name in _NAMES else ["numpy", name]
    return ["dlpack"]


def _kind_of(torch: Any, value: Any) -> str | None:
    """What a tensor is besides its values: a leaf of the same kind is loaded."""
    if type(value) is torch.nn.Parameter:
        return "parameter" if value.requires_grad else "frozen parameter"
    return "requires_grad" if value.requires_grad and type(value) is torch.Tensor else None


def memory(value: Any, path: str) -> Memory:
    """The memory of a tensor, copied if it is not contiguous or not on the CPU. InvalidError names `path`."""
    torch, numpy = _torch(), _numpy()
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(torch, value, path)
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _of_numpy(numpy, value, path)
    try:
        found = _core.Memory(value)
    except TypeError:
        raise _unknown(path, "is not in CPU memory") from None
    except Exception as error:  # of the library's __dlpack__()
        raise _unknown(path, f"cannot be read ({type(error).__name__}: {_first_line(error)})") from None
    if found.dtype is None or not found.is_contiguous:
        raise _unknown(path, "has a type or strides that are not supported")
    return Memory(found.dtype, tuple(found.shape), found.address, found.bytes, found)


def _unknown(path: str, why: str) -> InvalidError:
    return InvalidError(f"checkpoint: tensor '{path}': {why}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _of_numpy(numpy: Any, value: Any, path: str) -> Memory:
    kind = type(value)
    if isinstance(value, numpy.ma.MaskedArray):
        raise _unknown(
            path, "is a masked array, whose mask would be lost\n  try: its .data and its .mask, or .filled()"
        )
    # A memmap has the values of an array.
    if kind is not numpy.ndarray and kind is not numpy.memmap:
        raise _unknown(path, f"is a {kind.__name__}, a subclass of numpy.ndarray\n  try: numpy.asarray() of it")
    shape, name = tuple(value.shape), value.dtype.name
    array = numpy.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
    if name in _PAIRS:
        shape, name = (*shape, 2), _PAIRS[name]
    if name not in _NAMES:
        raise _unknown(path, f"has numpy type {name}, which is not supported")
    return Memory(_NAMES[name], shape, array.__array_interface__["data"][0], array.nbytes, array)


def _of_torch(torch: Any, value: Any, path: str) -> Memory:
    if type(value).__name__ == "DTensor":
        return _of_distributed(torch, value.detach(), path)
    if type(value).__name__ == "AsyncCollectiveTensor":
        value = value.wait()
    _check_plain(torch, value, path)
    tensor = value.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise _unknown(path, "is sparse, nested or quantized, which is not supported")
    if tensor.device.type == "meta":
        raise _unknown(path, "is on the device 'meta', which has no values")
    if tensor.device.type != "cpu":
        tensor = tensor.to("cpu")
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    _check_memory(tensor, path)
    tensor = tensor.contiguous()
    name = str(tensor.dtype)[6:]
    if name not in _NAMES:
        tensor = _as_stored(torch, tensor, name, path)
        name = str(tensor.dtype)[6:]
    return Memory(_NAMES[name], tuple(tensor.shape), tensor.data_ptr(), tensor.nbytes, tensor)


def _check_plain(torch: Any, value: Any, path: str) -> None:
    """A subclass may have no memory, or more than its values."""
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return
    if kind.__name__ == "ShardedTensor":
        raise _unknown(
            path, "is a ShardedTensor of FSDP1 (save DTensors, as returned by fully_shard(), or a full state dict)"
        )
    inner = "the tensors that its __tensor_flatten__() names" if hasattr(value, "__tensor_flatten__") else "its values"
    raise _unknown(
        path,
        f"is {_article(kind.__name__)}, a subclass of torch.Tensor, which is not supported\n"
        f"  try: {inner} as plain tensors",
    )


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _check_memory(tensor: Any, path: str) -> None:
    """A plain tensor without memory: its storage was freed, or a transform of torch.func is running."""
    try:
        address, held = tensor.data_ptr(), tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError) as error:
        raise _unknown(path, f"has no memory ({_first_line(error)})") from None
    if tensor.nbytes and (address == 0 or held == 0):
        raise _unknown(path, "has no memory: its storage was freed (by FSDP, or by resize_(0))")


def _as_stored(torch: Any, tensor: Any, name: str, path: str) -> Any:
    """The same memory as a supported type."""
    if name in _PAIRS:
        return torch.view_as_real(tensor)
    if tensor.element_size() == 1 and name.startswith("float8"):
        return tensor.view(torch.uint8)
    raise _unknown(path, f"has torch type {name}, which is not supported")


def _of_distributed(torch: Any, tensor: Any, path: str) -> Memory:
    """A DTensor: this rank's rows if it is sharded on dimension 0, as in FSDP2; the whole tensor if it is replicated."""
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
            f"is distributed as ({placements}); only Shard(0) on one mesh axis is supported, with the rest replicated\n"
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
    """The argument of _core.CheckpointSaver."""
    kind = 1 if is_optimizer else 0
    if memory.whole is not None:
        is_writer = memory.is_writer
        shape, size = (memory.shape, memory.bytes) if is_writer else ((0, *memory.shape[1:]), 0)
        return (kind + 4, name, memory.dtype, shape, memory.address, size, memory.whole, memory.first_row)
    # A small tensor is always saved from rank 0: batch-norm statistics differ between ranks.
    kind += 2 if memory.is_small else 0
    return (kind, name, memory.dtype, memory.shape, memory.address, memory.bytes, (), 0)


def check_kind(kind: Any) -> None:
    if kind not in ("auto", "torch", "numpy", "dlpack"):
        raise InvalidError(f"checkpoint: tensors: unknown kind '{kind}' (one of: auto, torch, numpy, dlpack)")


def library(kind: Kind, saved_as: str, dtype: str) -> str:
    """Library of a loaded tensor: the original one if it is imported, otherwise an available one."""
    if kind != "auto":
        return kind
    if saved_as in ("torch", "numpy") and saved_as in sys.modules and (saved_as, dtype) != ("numpy", "BF16"):
        return saved_as
    if _torch() is not None:
        return "torch"
    return "numpy" if _numpy() is not None and dtype != "BF16" else "dlpack"


def empty(library: str, dtype: str, shape: Shape, path: str) -> Memory:
    """Memory for a tensor to load; its `holder` is the tensor."""
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


def finished(memory: Memory, library: str, real_type: str | None = None, kind: str | None = None) -> Any:
    """The loaded tensor, converted to its original type, and a parameter if it was one."""
    tensor = memory.holder
    if library == "dlpack":
        return tensor
    if library == "numpy":
        if real_type in _PAIRS:
            return tensor.view(real_type).reshape(memory.shape[:-1])
        return tensor.astype(real_type) if real_type is not None and real_type[0] in "<>" else tensor
    import torch

    if real_type in _PAIRS:
        tensor = torch.view_as_complex(tensor)
    elif real_type is not None and hasattr(torch, real_type):
        tensor = tensor.view(getattr(torch, real_type))
    if kind in ("parameter", "frozen parameter"):
        return torch.nn.Parameter(tensor, requires_grad=kind == "parameter")
    return tensor.requires_grad_() if kind == "requires_grad" else tensor


def into(value: Any, path: str) -> tuple[Memory, Callable[[], None], bool]:
    """The memory of a tensor to fill, a function to call afterwards, and whether the memory is the tensor's own: the function
    then does nothing, and otherwise copies to the tensor."""
    torch = _torch()
    if torch is not None and isinstance(value, torch.Tensor):
        filled = _of_torch(torch, value, path)
        target = value.detach()
        if type(value).__name__ == "DTensor":
            target = target.to_local()
        if torch._debug_has_internal_overlap(target) == 1:
            raise _unknown(path, "cannot be filled: several of its elements share memory, as after expand()")
        if filled.address == target.data_ptr() or filled.bytes == 0:
            return filled, lambda: None, True
        # A temporary: contiguous and on the CPU.
        source = filled.holder

        def copy() -> None:
            target.copy_(source if source.dtype == target.dtype else finished(filled, "torch", str(target.dtype)[6:]))

        return filled, copy, False
    numpy = _numpy()
    if numpy is not None and isinstance(value, numpy.ndarray):
        filled = _of_numpy(numpy, value, path)
        if not value.flags.writeable:
            raise _unknown(path, "cannot be filled: the array is read-only")
        if filled.address == value.__array_interface__["data"][0]:
            return filled, lambda: None, True
        return filled, lambda: numpy.copyto(value, filled.holder.reshape(value.shape)), False
    raise _unknown(path, f"is {type(value).__name__}; only torch tensors and numpy arrays can be filled")
