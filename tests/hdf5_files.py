"""What the tests of HDF5 share: arrays, how `arrays` reads them, and what h5py does not make by itself."""

import os
import subprocess
from pathlib import Path

import h5py
import numpy
import pytest
from conftest import BIN

SHAPE = (11, 5, 6)
SITE_PACKAGES = Path(h5py.__file__).parents[1]
(IN_WHEEL,) = (SITE_PACKAGES / "h5py.libs").glob("libhdf5-*")
# Versions of libhdf5 report different errors.
LIBRARIES = {"any": {}, "of h5py": {"STOKER_HDF5_LIBRARY": str(IN_WHEEL)}}
each_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


def arrays(*words, data=None, code=0, env=None):
    done = subprocess.run(
        [BIN / "arrays", *map(str, words)], input=data, capture_output=True, timeout=120, env=os.environ | (env or {})
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stdout if code == 0 else done.stderr.decode()


def read(path, name="x", *rows, others="refuse", **options):
    return arrays("hdf5-read", path, others, name, *rows, **options)


def values(dtype, shape=SHAPE):
    kind = numpy.dtype(dtype)
    count = int(numpy.prod(shape))
    if kind.kind in "SV":
        return numpy.array([f"n{i}" for i in range(count)]).astype("S" + str(kind.itemsize)).view(kind).reshape(shape)
    numbers = numpy.random.default_rng(1).integers(0, 100, count)
    return (numbers % 2 if kind.kind == "b" else numbers).astype(kind).reshape(shape)


def same(found, array):
    assert found == array.astype(array.dtype.newbyteorder("<")).tobytes()


def create(h5, name, kind, shape=(4,), made=None):
    """A dataset of a type that NumPy does not have."""
    return h5py.Dataset(h5py.h5d.create(h5.id, name, kind, h5py.h5s.create_simple(shape), made))


def changed(kind, **properties):
    """A copy of a type of HDF5's own with other properties."""
    kind = kind.copy()
    for name, value in properties.items():
        getattr(kind, f"set_{name}")(value)
    return kind
