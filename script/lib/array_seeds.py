"""Small inputs of the harnesses in fuzz/arrays, as zarr-python and h5py write them: what fuzz_seeds.py asks for."""

import json
import tempfile
import warnings
import zlib
from pathlib import Path

import h5py
import numpy
import zarr
from numcodecs import Blosc, Shuffle, Zlib, Zstd
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

VALUES = numpy.arange(24, dtype="<i2").reshape(6, 4)
CHAINS: list[dict] = [
    {"compressors": GzipCodec()},
    {"compressors": [ZstdCodec(level=1), Crc32cCodec()], "filters": TransposeCodec(order=(1, 0))},
    {
        "compressors": BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=2),
        "serializer": BytesCodec(endian="big"),
    },
    {"shards": (4, 4), "compressors": ZstdCodec()},
    {"zarr_format": 2, "compressors": Zlib(1), "filters": [Shuffle(2)]},
    {"zarr_format": 2, "compressors": Blosc(cname="zstd"), "order": "F"},
]


def zarr_arrays(box: Path) -> list[bytes]:
    """An array's metadata and its first chunk."""
    found = []
    for number, chain in enumerate(CHAINS):
        store = box / f"{number}.zarr"
        zarr.create_array(store, shape=VALUES.shape, chunks=(2, 4), dtype=VALUES.dtype, **chain)[:] = VALUES
        names = (".zarray", "0.0") if "zarr_format" in chain else ("zarr.json", "c/0/0")
        found.append(b"\0".join((store / name).read_bytes() for name in names))
    texts = numpy.array(["a", "", "bcd"], dtype=object)
    for version in (2, 3):
        store = box / f"texts-{version}.zarr"
        with warnings.catch_warnings(action="ignore"):  # not in the specification yet
            zarr.create_array(store, shape=(3,), chunks=(3,), dtype=str, zarr_format=version)[:] = texts
        names = (".zarray", "0") if version == 2 else ("zarr.json", "c/0")
        found.append(b"\0".join((store / name).read_bytes() for name in names))
    return found


def zarr_stores(box: Path) -> list[bytes]:
    """Consolidated metadata: zarr.json before a zero byte, .zmetadata behind it."""
    for version in (2, 3):
        store = box / f"store-{version}"
        root = zarr.open_group(store, mode="w", zarr_format=version)
        root.create_array("x", shape=(2,), dtype="i4", attributes={"units": "m"})
        root.create_group("below").create_array("y", shape=(2, 2), dtype="f4")
        with warnings.catch_warnings(action="ignore"):  # version 3 has it, but not in its specification
            zarr.consolidate_metadata(store, zarr_format=version)
    return [(box / "store-3/zarr.json").read_bytes(), b"\0" + (box / "store-2/.zmetadata").read_bytes()]


def hdf5_files(box: Path) -> list[bytes]:
    with h5py.File(box / "a.h5", "w") as h5:
        h5.create_dataset("x", data=VALUES, chunks=(2, 4), compression="gzip", shuffle=True, fletcher32=True)
        h5.create_dataset("below/y", data=VALUES)
    with h5py.File(box / "b.h5", "w", libver="v110") as h5:
        h5.create_dataset("x", data=VALUES.astype(">f4"), chunks=(2, 4), compression="lzf")
    with h5py.File(box / "c.h5", "w") as h5:
        h5["texts"] = ["a", "", "bcd"]
        h5.create_dataset("lists", (4,), dtype=h5py.vlen_dtype("i2"), chunks=(2,), compression="gzip")[1] = [1, 2, 3]
    return [(box / name).read_bytes() for name in ("a.h5", "b.h5", "c.h5")]


def hdf5_responses() -> list[bytes]:
    """The child process's description of a dataset."""
    about = {"path": "x", "file": "a.h5", "letter": "i", "bytes": 2, "is_big": True, "fill": [0, 1], "shape": [6, 4]}
    filters = [{"id": 1, "name": "", "values": [4]}]
    part = {"file": "b.h5", "dataset": "y", "first_row": 0, "source_row": 1, "rows": 3}
    layouts: list[dict] = [
        {"layout": "chunked", "chunks": [2, 4], "places": [0, 16, 20, 0], "filters": filters},
        {"layout": "parts", "parts": [part]},
        {"layout": "inline", "inline": [1, 2]},
    ]
    return [json.dumps({"datasets": [about | layout]}).encode() for layout in layouts]


def hdf5_chunks() -> list[bytes]:
    """Four bytes for filters and output size, then a packed chunk."""
    plain = VALUES.tobytes()
    none = 7
    return [
        bytes((none << 3 | 0, none, 3, 0)) + zlib.compress(plain),
        bytes((none << 3 | 5, none, 3, 0)) + Zstd().encode(plain),
        bytes((none << 3 | 4, none, 3, 0)) + Blosc().encode(plain),
    ]


def array_seeds() -> dict[str, list[bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        return {
            "zarr_array_fuzz": zarr_arrays(Path(folder)),
            "zarr_store_fuzz": zarr_stores(Path(folder)),
            "hdf5_file_fuzz": hdf5_files(Path(folder)),
            "hdf5_response_fuzz": hdf5_responses(),
            "hdf5_filters_fuzz": hdf5_chunks(),
        }
