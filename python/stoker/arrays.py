"""From the loader's memory to the caller's kind of array, without copying: DLPack for torch, the buffer protocol for
numpy. Neither is imported unless the caller has done so, or asks for it by name."""

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

    # An unversioned capsule: the versioned protocol asks more questions and costs twice the time.
    return lambda array: from_dlpack(array.__dlpack__())


def no_bfloat16() -> InvalidError:
    """For arrays that numpy has no type for."""
    return InvalidError(
        "loader: tensors: numpy has no bfloat16 (dtype)\n  try: tensors='torch', or dtype='float16' or 'float32'"
    )


def _to_numpy() -> Convert:
    from numpy import asarray

    def convert(array: Any) -> Any:
        made = asarray(array)
        if made.dtype.hasobject:  # what numpy makes of something that has no buffer
            raise no_bfloat16()
        return made

    return convert


def converter(kind: Kind) -> Convert:
    """What makes that kind of array of one of the loader's. `auto`: torch if it has been imported, else numpy if that
    has, else the loader's own arrays, which speak DLPack and the buffer protocol."""
    if kind == "auto":
        kind = "torch" if "torch" in sys.modules else "numpy" if "numpy" in sys.modules else "dlpack"
    if kind == "torch":
        return _to_torch()
    if kind == "numpy":
        return _to_numpy()
    if kind == "dlpack":
        return _as_is
    raise InvalidError(f"loader: tensors: unknown value '{kind}' (one of: auto, torch, numpy, dlpack)")
