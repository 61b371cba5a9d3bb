"""Rows of an HDF5 dataset (gzip, chunks of 64 images), compared with h5py: sample by sample, as in a torch Dataset; shuffled batches,
compared with h5py's faster way, one sorted list or one by one; whole batches in order. One thread each: libhdf5 has only one.

Limits: half of h5py's time per sample, in order and shuffled; three quarters for whole batches in order, where decompression
dominates on both sides."""

import tempfile
from pathlib import Path

import h5py
import numpy
from array_rows import BATCH, CACHE_MIB, CHUNK_ROWS, Way, compare, pictures, theirs


def main() -> None:
    array = pictures()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pictures.h5"
        with h5py.File(path, "w") as h5:
            h5.create_dataset("x", data=array, chunks=(CHUNK_ROWS, *array.shape[1:]), compression="gzip")
        with h5py.File(path, rdcc_nbytes=CACHE_MIB << 20) as h5:
            x = h5["x"]

            def as_list(rows: object) -> object:
                return x[numpy.sort(rows)]

            def one_by_one(rows: object) -> object:
                return [x[int(row)] for row in rows]  # type: ignore[attr-defined]

            some = [numpy.random.default_rng(2).permutation(len(array))[:BATCH]]
            shuffled = min((as_list, one_by_one), key=lambda read: theirs(read, some, BATCH))
            ways = [
                Way("sample by sample", x.__getitem__, 0.5, rows=1),
                Way("shuffled", shuffled, 0.5, is_shuffled=True),
                Way("whole batches", x.__getitem__, 0.75),
            ]
            compare("h5py", array, ("hdf5", path, "x"), 1, ways)


if __name__ == "__main__":
    main()
