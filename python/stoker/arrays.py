"""Converts the loader's memory to the caller's kind of array without a copy: DLPack for torch, the buffer protocol for numpy.
Neither is imported unless the caller has done so or requests it by name."""

import sys
from collections.abc import Callable
from typing import Any, Literal

from stoker.errors import InvalidError

Kind = Literal["auto", "torch", "numpy", "dlpack"]
Convert = Callable[[Any], Any]


def _as_is(array: Any) -> Any:
    return array


def _to_torch() -> Convert:
    from torch.utils.dlpack import from_dlpack

    # An unversioned capsule: the versioned protocol takes twice the time.
    return lambda array: from_dlpack(array.__dlpack__())


def bfloat16_error() -> InvalidError:
    """The error for arrays without a numpy type."""
    return InvalidError(
        "loader: tensors: numpy has no bfloat16 (dtype)\n  try: tensors='torch', or dtype='float16' or 'float32'"
    )


def _to_numpy() -> Convert:
    from numpy import asarray

    def convert(array: Any) -> Any:
        made = asarray(array)
        if made.dtype.hasobject:  # numpy's result for an object without a buffer
            raise bfloat16_error()
        return made

    return convert


def resolve(kind: Kind) -> Kind:
    """For `auto`: torch if it has been imported, otherwise numpy if imported, otherwise the loader's own arrays, which support
    DLPack and the buffer protocol."""
    if kind != "auto":
        return kind
    return "torch" if "torch" in sys.modules else "numpy" if "numpy" in sys.modules else "dlpack"


def converter(kind: Kind) -> Convert:
    """A function that converts the loader's arrays."""
    kind = resolve(kind)
    if kind == "torch":
        return _to_torch()
    if kind == "numpy":
        return _to_numpy()
    if kind == "dlpack":
        return _as_is
    raise InvalidError(f"loader: tensors: unknown value '{kind}' (one of: auto, torch, numpy, dlpack)")
