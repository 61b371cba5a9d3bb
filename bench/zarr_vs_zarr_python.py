"""Rows of a Zarr array (version 3, default zstd, chunks of 64 images), compared with zarr-python: whole batches in order, shuffled
batches (oindex), and sample by sample. One thread per core on both sides, which zarr-python starts by itself. Limit: half of
zarr-python's time per row."""

import os
import tempfile
from pathlib import Path

import numpy
import zarr
from array_rows import CHUNK_ROWS, Way, compare, pictures


def main() -> None:
    array = pictures()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pictures.zarr"
        chunks = (CHUNK_ROWS, *array.shape[1:])
        zarr.create_array(path, shape=array.shape, chunks=chunks, dtype=array.dtype)[:] = array
        x = zarr.open_array(path, mode="r")
        ways = [
            Way("whole batches", x.__getitem__, 0.5),
            Way("shuffled", lambda rows: x.oindex[numpy.sort(rows)], 0.5, is_shuffled=True),
            Way("sample by sample", x.__getitem__, 0.5, rows=1),
        ]
        compare("zarr-python", array, ("zarr", path, ""), len(os.sched_getaffinity(0)), ways)


if __name__ == "__main__":
    main()
