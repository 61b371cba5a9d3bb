"""Zarr arrays, versions 2 and 3, exchanged with zarr-python in both directions."""

import json
import subprocess

import numpy
import pytest
import zarr
from array_files import all_samples
from conftest import BIN
from numcodecs import LZ4, Blosc, GZip, Shuffle, Zlib, Zstd
from numcodecs.checksum32 import CRC32C
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec, numcodecs

SHAPE = (11, 5, 6)


def arrays(*words, data=None, code=0):
    done = subprocess.run([BIN / "arrays", *map(str, words)], input=data, capture_output=True, timeout=60)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout if code == 0 else done.stderr.decode()


def values(dtype, shape=SHAPE):
    kind = numpy.dtype(dtype)
    count = int(numpy.prod(shape))
    if kind.kind in "SUV":
        return numpy.array([f"n{i}" for i in range(count)]).astype(kind).reshape(shape)
    numbers = numpy.random.default_rng(1).integers(0, 100, count)
    return (numbers % 2 if kind.kind == "b" else numbers).astype(kind).reshape(shape)


def same(read, array):
    assert read == array.astype(array.dtype.newbyteorder("<")).tobytes()


DTYPES = ["|b1", "|u1", "|i1", "<u2", ">i2", "<f2", ">f4", "<f8", ">i8", "<u8", "<c8", ">c16"]


@pytest.mark.parametrize("dtype", [*DTYPES, "|S5", "<U4", ">U4", "<M8[ns]"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_version_2_of_every_type_is_read(tmp_path, dtype, order):
    array = values(dtype)
    stored = zarr.create_array(
        tmp_path / "a", shape=SHAPE, chunks=(3, 2, 6), dtype=dtype, order=order, zarr_format=2, overwrite=True
    )
    stored[:] = array
    same(arrays("zarr-read", tmp_path / "a", ""), array)


COMPRESSORS = [None, Zlib(5), GZip(1), Zstd(3), LZ4(), Zstd(1, checksum=True)] + [
    Blosc(cname=name, shuffle=shuffle)
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
    for shuffle in (Blosc.NOSHUFFLE, Blosc.SHUFFLE, Blosc.BITSHUFFLE)
]


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=str)
def test_version_2_of_every_compressor_is_read(tmp_path, compressor):
    array = values("<f4", (40, 50))
    stored = zarr.create_array(
        tmp_path / "a", shape=array.shape, chunks=(16, 16), dtype="<f4", compressors=compressor, zarr_format=2
    )
    stored[:] = array
    same(arrays("zarr-read", tmp_path / "a", ""), array)
    rows = [39, 0, 17, 17, 1]
    same(arrays("zarr-read", tmp_path / "a", "", *rows), array[rows])


def test_version_2_with_a_filter_and_slash_separator_is_read(tmp_path):
    array = values("<i4", (40, 50))
    stored = zarr.create_array(
        tmp_path / "a",
        shape=array.shape,
        chunks=(16, 16),
        dtype="<i4",
        filters=[Shuffle(4)],
        compressors=Zlib(1),
        zarr_format=2,
        chunk_key_encoding={"name": "v2", "separator": "/"},
    )
    stored[:] = array
    assert (tmp_path / "a/0/0").is_file()
    same(arrays("zarr-read", tmp_path / "a", ""), array)


@pytest.mark.parametrize("compressor", [None, Zlib(1)], ids=str)
@pytest.mark.parametrize("location", ["start", "end"])
def test_version_2_with_a_checksum_before_or_after_the_data_is_read(stoker, tmp_path, location, compressor):
    array = values("<i4", (40, 50))
    group = zarr.create_group(tmp_path / "hub/a.zarr", zarr_format=2)
    group.create_array(
        "x",
        shape=array.shape,
        chunks=(16, 16),
        dtype="<i4",
        filters=[CRC32C(location=location)],
        compressors=compressor,
    )[:] = array
    same(arrays("zarr-read", tmp_path / "hub/a.zarr", "x"), array)
    stoker("data", "index", "hub", code=0)  # the index stores the chunk coder
    stoker("data", "verify", "hub", "--full", code=0)
    stoker("data", "convert", "hub", "out", "--format", "hdf5", code=0)
    found = all_samples(tmp_path / "out")
    assert [found[key]["npy"][-200:] for key in sorted(found)] == [row.tobytes() for row in array]


@pytest.mark.parametrize("place", [0, 4, -1])
def test_a_flip_after_a_leading_checksum_is_detected(tmp_path, place):
    stored = zarr.create_array(
        tmp_path / "a",
        shape=(8,),
        chunks=(8,),
        dtype="<i4",
        filters=[CRC32C(location="start")],
        compressors=None,
        zarr_format=2,
    )
    stored[:] = numpy.arange(8)
    chunk = bytearray((tmp_path / "a/0").read_bytes())
    chunk[place] ^= 1
    (tmp_path / "a/0").write_bytes(chunk)
    assert ": CRC-32C expected " in arrays("zarr-read", tmp_path / "a", "", code=1)


CHAINS = {
    "none": {"compressors": None},
    "zstd": {"compressors": ZstdCodec(level=3, checksum=True)},
    "gzip": {"compressors": GzipCodec(level=5)},
    "blosc": {"compressors": BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4)},
    "crc": {"compressors": [ZstdCodec(level=1), Crc32cCodec()]},
    "crc first": {"compressors": [numcodecs.CRC32C(location="start")]},
    "crc of numcodecs": {"compressors": [numcodecs.CRC32C()]},
    "zlib and crc first": {"compressors": [numcodecs.Zlib(level=1), numcodecs.CRC32C(location="start")]},
    "crc first and zlib": {"compressors": [numcodecs.CRC32C(location="start"), numcodecs.Zlib(level=1)]},
    "blosc of numcodecs": {"compressors": [numcodecs.Blosc()]},
    "big": {"serializer": BytesCodec(endian="big")},
    "turned": {"filters": TransposeCodec(order=(2, 0, 1))},
    "sharded": {"shards": (6, 4, 6), "compressors": ZstdCodec(level=1)},
    "sharded and turned": {"shards": (6, 4, 6), "filters": TransposeCodec(order=(1, 2, 0)), "compressors": GzipCodec()},
}


@pytest.mark.parametrize("chain", CHAINS)
def test_version_3_of_every_codec_is_read(tmp_path, chain):
    array = values("<f4")
    stored = zarr.create_array(tmp_path / "a", shape=SHAPE, chunks=(3, 2, 6), dtype="float32", **CHAINS[chain])
    stored[:] = array
    same(arrays("zarr-read", tmp_path / "a", ""), array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_version_3_of_every_type_is_read(tmp_path, dtype):
    array = values(numpy.dtype(dtype).newbyteorder("<"))
    stored = zarr.create_array(tmp_path / "a", shape=SHAPE, chunks=(3, 2, 6), dtype=array.dtype)
    stored[:] = array
    same(arrays("zarr-read", tmp_path / "a", ""), array)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("fill", [0, 1.5, float("nan"), float("-inf")])
def test_missing_chunks_read_as_the_fill_value(tmp_path, zarr_format, fill):
    stored = zarr.create_array(
        tmp_path / "a", shape=(8, 3), chunks=(2, 3), dtype="<f4", fill_value=fill, zarr_format=zarr_format
    )
    stored[2:4] = 7
    same(arrays("zarr-read", tmp_path / "a", ""), stored[:])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_hierarchy_is_listed_with_and_without_consolidated_metadata(tmp_path, zarr_format):
    root = zarr.open_group(tmp_path / "s", mode="w", zarr_format=zarr_format)
    array = root.create_group("train").create_array("x", shape=(3,), chunks=(2,), dtype="i4", attributes={"a": 1})
    array[:] = [1, 2, 3]
    listed = arrays("zarr-list", tmp_path / "s").decode().split()
    assert listed == [f"group{zarr_format}", f"group{zarr_format}", "train", f"array{zarr_format}", "train/x"]
    zarr.consolidate_metadata(tmp_path / "s")
    for name in ("zarr.json", ".zarray", ".zattrs"):
        (tmp_path / "s/train/x" / name).unlink(missing_ok=True)
    assert arrays("zarr-list", tmp_path / "s").decode().split() == listed
    same(arrays("zarr-read", tmp_path / "s", "train/x"), numpy.array([1, 2, 3], "<i4"))


def metadata(version, dtype, codecs, **more):
    """The metadata of an array."""
    if version == 2:
        order, compressor = more.get("order", "C"), codecs
        return {"zarr_format": 2, "shape": SHAPE, "chunks": [3, 2, 6], "dtype": dtype, "fill_value": 0, "order": order,
                "filters": None, "compressor": compressor}  # fmt: skip
    return {
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": dtype, "fill_value": 0, "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": more.get("chunks", [3, 2, 6])}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "attributes": {"unit": "K"},
    }  # fmt: skip


def test_texts_after_a_leading_checksum_are_read(stoker, tmp_path):
    texts = numpy.array(["a", "", "€ä", "x" * 300, "e"])
    group = zarr.create_group(tmp_path / "hub/a.zarr")
    first = [numcodecs.Zlib(level=1), numcodecs.CRC32C(location="start")]
    group.create_array("t", shape=texts.shape, chunks=(2,), dtype=str, compressors=first)[:] = texts
    stoker("data", "convert", "hub/a.zarr", "out", "--format", "hdf5", code=0)
    found = all_samples(tmp_path / "out")
    assert [found[key]["t"].decode() for key in sorted(found)] == texts.tolist()


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
WRITTEN = {
    "2 plain": metadata(2, ">f4", None),
    "2 turned": metadata(2, "<f4", {"id": "zstd", "level": 1}, order="F"),
    "2 gzip": metadata(2, "<f4", {"id": "gzip", "level": 1}),
    "2 zlib": metadata(2, "<f4", {"id": "zlib", "level": 9}),
    "2 lz4": metadata(2, "<f4", {"id": "lz4", "acceleration": 1}),
    "2 crc first": metadata(2, "<f4", {"id": "crc32c", "location": "start"}),
    "3 crc first": metadata(
        3, "float32", [BYTES, ZSTD, {"name": "numcodecs.crc32c", "configuration": {"location": "start"}}]
    ),
    "3 plain": metadata(3, "float32", [BIG]),
    "3 zstd": metadata(3, "float32", [BYTES, ZSTD]),
    "3 gzip and crc": metadata(
        3, "float32", [BYTES, {"name": "gzip", "configuration": {"level": 5}}, {"name": "crc32c"}]
    ),
    "3 turned": metadata(3, "float32", [{"name": "transpose", "configuration": {"order": [2, 0, 1]}}, BYTES]),
}
for compressor in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
    for way in range(3):
        settings = {"cname": compressor, "clevel": 5, "shuffle": way, "blocksize": 0}
        WRITTEN[f"2 blosc {compressor} {way}"] = metadata(2, "<f4", {"id": "blosc", **settings})
for place in ("start", "end"):
    sharding = {"chunk_shape": [3, 2, 6], "codecs": [BYTES, ZSTD], "index_codecs": [BYTES, {"name": "crc32c"}]}
    codecs = [{"name": "sharding_indexed", "configuration": {**sharding, "index_location": place}}]
    WRITTEN[f"3 sharded, index at {place}"] = metadata(3, "float32", codecs, chunks=[6, 4, 6])


@pytest.mark.parametrize("way", WRITTEN)
def test_zarr_python_reads_written_arrays(tmp_path, way):
    array = values("<f4")
    (tmp_path / "metadata.json").write_text(json.dumps(WRITTEN[way]))
    arrays("zarr-write", tmp_path / "a", tmp_path / "metadata.json", data=array.tobytes())
    stored = zarr.open_array(tmp_path / "a", mode="r")
    assert stored.metadata.zarr_format == int(way[0])
    numpy.testing.assert_array_equal(stored[:], array)
    assert sorted(path.name for path in (tmp_path / "a").glob("*") if "pending" in path.name) == []


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_python_uses_written_consolidated_metadata(tmp_path, version):
    array = values("<f4")
    (tmp_path / "metadata.json").write_text(json.dumps(WRITTEN["2 plain" if version == 2 else "3 zstd"]))
    arrays("zarr-group", tmp_path / "s", version)
    arrays("zarr-write", tmp_path / "s/x", tmp_path / "metadata.json", data=array.tobytes())
    arrays("zarr-consolidate", tmp_path / "s")
    group = zarr.open_consolidated(tmp_path / "s")
    assert list(group.array_keys()) == ["x"]
    numpy.testing.assert_array_equal(group["x"][:], array)


def test_unsupported_features_are_refused_by_name(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(3,), dtype="<i4", zarr_format=2)
    document = json.loads((tmp_path / "a/.zarray").read_text())
    document["compressor"] = {"id": "bz2", "level": 1}
    (tmp_path / "a/.zarray").write_text(json.dumps(document))
    result = arrays("zarr-read", tmp_path / "a", "", code=1)
    assert result == (
        f"{tmp_path}/a/.zarray: codec: 'bz2' is not supported (blosc, zstd, gzip, zlib, lz4, shuffle and crc32c are)\n"
    )
