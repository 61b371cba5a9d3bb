"""Maps of chunks as `stoker data index` makes them, each with its shard behind it, for fuzz/data/chunk_map_fuzz.cc: tables of
numbers in every encoding, arrays, values of different lengths, windows."""

import struct
import subprocess
import tempfile
from pathlib import Path

import h5py
import numpy
import pyarrow
import pyarrow.parquet

CHUNKS = 7  # the column of a section: docs/formats/index.md


def number_tables() -> list[bytes]:
    """Whole Parquet files of numbers alone."""
    rows = range(24)
    numbers = pyarrow.table(
        {
            "i": pyarrow.array([i * i for i in rows], pyarrow.int32()),
            "h": pyarrow.array([i / 3 for i in rows], pyarrow.float16()),
            "b": pyarrow.array([i % 5 == 0 for i in rows]),
            "d": pyarrow.array(list(rows), pyarrow.decimal128(20, 2)),
            "t": pyarrow.array([i * 10**9 for i in rows], pyarrow.timestamp("us")),
            "l": pyarrow.array([[[i, i], [0, i]] for i in rows], pyarrow.list_(pyarrow.list_(pyarrow.int16()))),
        }
    )
    split = {"compression": "none", "use_dictionary": False, "column_encoding": {"i": "BYTE_STREAM_SPLIT"}}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.parquet"
        for options in ({}, {"compression": "zstd", "data_page_version": "2.0"}, split):
            pyarrow.parquet.write_table(numbers, file, row_group_size=10, store_schema=False, **options)
            found.append(file.read_bytes())
    return found


def write_arrays(file: Path) -> None:
    with h5py.File(file, "w") as h5:
        h5.create_dataset(
            "x", data=numpy.arange(96, dtype=">i2").reshape(6, 4, 4), chunks=(2, 4, 2), compression="gzip"
        )
        h5["text"] = ["a", "", "bcd", "e", "f", "g"]


def map_of(index: bytes) -> bytes:
    """The map of an index's first section."""
    at, size = struct.unpack_from("<QQ", index, 64)
    section = index[at : at + size]
    (count,) = struct.unpack_from("<H", section, 6)
    for i in range(count):
        tag, begin, length = struct.unpack_from("<H6xQQ", section, 72 + 24 * i)
        if tag == CHUNKS:
            return section[begin : begin + length]
    raise ValueError("no chunks in this index")


def index_seeds(command: Path) -> list[bytes]:
    """Each behind the length of its map."""
    found = []
    with tempfile.TemporaryDirectory() as folder:

        def add(shard: Path, *options: str) -> None:
            subprocess.run([command, "data", "index", shard.parent, *options], check=True, capture_output=True)
            chunks = map_of((shard.parent / "index.bin").read_bytes())
            found.append(struct.pack("<Q", len(chunks)) + chunks + shard.read_bytes())

        for number, content in enumerate(number_tables()):
            shard = Path(folder) / f"table-{number}/x.parquet"
            shard.parent.mkdir()
            shard.write_bytes(content)
            add(shard, *(["--tensor", "x=i,b,h:float64", "--columns", "l"] if number else []))
        for number, options in enumerate(([], ["--window", "0:2:1", "--window", "2:2"])):
            shard = Path(folder) / f"arrays-{number}/x.h5"
            shard.parent.mkdir()
            write_arrays(shard)
            add(shard, *options)
    return found
