"""HDF5, Zarr and Parquet files from other tools in compressed chunks, read in place."""

import io
import json
import shutil
from pathlib import Path

import h5py
import numpy
import pyarrow
import pyarrow.parquet
import pytest
import zarr
from packing import jpeg

RANDOM = numpy.random.default_rng(3)
ROWS = 300
IMAGES = RANDOM.integers(0, 40, (ROWS, 8, 6, 3)).astype("u1")
DEPTH = RANDOM.normal(size=(ROWS, 5)).astype("f4")
LABELS = (numpy.arange(ROWS) % 4).astype("i4")

HDF5 = {
    "gzip": {"compression": "gzip", "shuffle": True, "chunks": (16, 8, 3, 3)},
    "lzf": {"compression": "lzf", "fletcher32": True, "chunks": (64, 8, 6, 3)},
    "plain chunks": {"chunks": (7, 8, 6, 3)},
    "one piece": {},
}
ZARR = {
    "2, blosc": {"zarr_format": 2, "chunks": (16, 8, 6, 3)},
    "3, zstd": {"zarr_format": 3, "chunks": (16, 8, 3, 3)},
    "3, shards": {"zarr_format": 3, "chunks": (16, 8, 6, 3), "shards": (64, 8, 6, 3)},
    "3, gzip": {"zarr_format": 3, "chunks": (16, 8, 6, 3), "compressors": zarr.codecs.GzipCodec()},
    "2, order F": {"zarr_format": 2, "chunks": (16, 8, 6, 3), "order": "F"},
}


def write_hdf5(file: Path, options: dict) -> None:
    with h5py.File(file, "w") as opened:
        opened.create_dataset("images", data=IMAGES, **options)
        depth = {"compression": "gzip", "chunks": (50, 5)} if options else {}
        opened.create_dataset("depth", data=DEPTH.astype(">f4"), **depth)
        opened["labels"] = LABELS


def write_zarr(file: Path, options: dict) -> None:
    store = zarr.storage.ZipStore(file, mode="w")
    version = options["zarr_format"]
    group = zarr.create_group(store, zarr_format=version)
    rest = {name: value for name, value in options.items() if name != "zarr_format"}
    group.create_array("images", shape=IMAGES.shape, dtype="u1", **rest)[:] = IMAGES
    group.create_array("depth", shape=DEPTH.shape, dtype=">f4" if version == 2 else "f4", chunks=(50, 5))[:] = DEPTH
    group.create_array("labels", shape=LABELS.shape, dtype="i4", chunks=LABELS.shape)[:] = LABELS
    store.close()


CODE = """
import sys, json, stoker
found = {}
for batch in stoker.Loader(sys.argv[1], batch_size=32, shuffle=%s, transform=None, component=%r, resident=0,
                           chunk_cache=%d, window=4, tensors="dlpack", fields=["data", "offset", "label", "key"]):
    offsets = list(memoryview(batch["offset"]))
    for i, key in enumerate(batch["key"]):
        content = bytes(memoryview(batch["data"])[offsets[i]:offsets[i + 1]]).hex()
        found[key] = (content, list(memoryview(batch["label"]))[i])
print(json.dumps(found))
"""


def loaded(python, dataset, component, shuffle="True", cache=1 << 20):
    return json.loads(python(CODE % (shuffle, component, cache), str(dataset)))


def check_rows(stoker, python, name: str) -> None:
    done = stoker("data", "index", "hub", code=0)
    assert "300 samples" in done.out
    stoker("data", "verify", "hub", "--full", code=0)
    for component, array in (("images.npy", IMAGES), ("depth.npy", DEPTH)):
        for shuffle in ("True", "'by_chunk'"):
            found = loaded(python, "hub", component, shuffle)
            assert len(found) == ROWS
            for row in range(ROWS):
                content, label = found[f"{name}/{row:08}"]
                assert label == LABELS[row]
                assert numpy.array_equal(numpy.load(io.BytesIO(bytes.fromhex(content))), array[row])


@pytest.mark.parametrize("how", HDF5)
def test_rows_of_hdf5_are_read_in_place(stoker, python, tmp_path, how):
    (tmp_path / "hub").mkdir()
    write_hdf5(tmp_path / "hub/train.h5", HDF5[how])
    check_rows(stoker, python, "train.h5")


@pytest.mark.parametrize("how", ZARR)
def test_rows_of_zarr_are_read_in_place(stoker, python, tmp_path, how):
    (tmp_path / "hub").mkdir()
    write_zarr(tmp_path / "hub/train.zarr.zip", ZARR[how])
    check_rows(stoker, python, "train.zarr.zip")


def write_parquet(file: Path, **options) -> dict[str, tuple[bytes, int]]:
    rows = [(f"photo-{i}", jpeg(i % 7), i % 3) for i in range(200)]
    table = pyarrow.table(
        {
            "image": [{"bytes": image, "path": f"{name}.jpg"} for name, image, _ in rows],
            "caption": [None if i % 5 == 0 else "a long text, again and again" for i in range(200)],
            "label": [label for _, _, label in rows],
        }
    )
    pyarrow.parquet.write_table(table, file, row_group_size=64, **options)
    return {name: (image, label) for name, image, label in rows}


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "lz4", "none"])
@pytest.mark.parametrize("has_dictionaries", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_packed_columns_are_read_in_place(stoker, python, tmp_path, codec, has_dictionaries, version):
    (tmp_path / "hub").mkdir()
    options = {"compression": codec, "use_dictionary": has_dictionaries, "data_page_version": version}
    rows = write_parquet(tmp_path / "hub/train.parquet", **options)
    stoker("data", "index", "hub", code=0)
    stoker("data", "verify", "hub", "--full", code=0)
    found = loaded(python, "hub", "jpg", "'by_chunk'")
    assert {key: (bytes.fromhex(content), label) for key, (content, label) in found.items()} == rows


@pytest.mark.parametrize("verb", [["index", "hub"], ["convert", "hub", "out", "--format", "tar"]])
@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_a_page_with_a_wrong_checksum_is_an_error(stoker, tmp_path, verb, codec):
    shard = tmp_path / "hub/train.parquet"
    shard.parent.mkdir()
    write_parquet(shard, compression=codec, write_page_checksum=True, use_dictionary=True)
    shutil.copytree(shard.parent, tmp_path / "whole")
    stoker("data", "index", "whole", code=0)
    group = pyarrow.parquet.ParquetFile(shard).metadata.row_group(1)
    (caption,) = (group.column(i) for i in range(3 + 1) if group.column(i).path_in_schema == "caption")
    damaged = bytearray(shard.read_bytes())
    damaged[caption.dictionary_page_offset + caption.total_compressed_size - 1] ^= 1  # a position in the dictionary
    shard.write_bytes(damaged)
    done = stoker("data", *verb, code=1)
    message = "hub/train.parquet: column 'caption': a page's CRC-32 does not match its bytes\n  try: download the file again\n"
    assert done.err.endswith(message)


def test_a_wrong_checksum_of_a_plain_page_is_an_error(stoker, tmp_path):
    shard = tmp_path / "hub/train.parquet"
    shard.parent.mkdir()
    write_parquet(shard, compression="none", use_dictionary=False, write_page_checksum=True, data_page_size=4 << 20)
    shutil.copytree(shard.parent, tmp_path / "whole")
    stoker("data", "index", "whole", code=0)
    damaged = bytearray(shard.read_bytes())
    damaged[damaged.index(jpeg(3)) + 30] ^= 1
    shard.write_bytes(damaged)
    message = "hub/train.parquet: column 'image.bytes': a page's CRC-32 does not match its bytes\n  try: download the file again\n"
    assert stoker("data", "index", "hub", code=1).err.endswith(message)


def test_a_packed_dataset_is_a_source_whether_indexed_or_not(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    write_hdf5(tmp_path / "hub/train.h5", HDF5["gzip"])
    stoker("data", "convert", "hub", "before", "--format", "tar", code=0)
    stoker("data", "index", "hub", code=0)
    stoker("data", "convert", "hub", "after", "--format", "tar", code=0)
    assert "are identical: version" in stoker("data", "diff", "before", "after", code=0).out
    assert "  300 the same" in stoker("data", "diff", "before", "hub").out


def test_each_chunk_is_decompressed_once_in_an_epoch_by_chunk(stoker, python, tmp_path):
    """A window of 4 chunks of 1 kB fits the 16 kB that are kept; a full shuffle unpacks chunks again and again."""
    (tmp_path / "hub").mkdir()
    write_hdf5(tmp_path / "hub/train.h5", HDF5["plain chunks"])
    stoker("data", "index", "hub", code=0)
    code = """
import sys, stoker
loader = stoker.Loader("hub", batch_size=8, shuffle=sys.argv[1] == "full" or sys.argv[1], transform=None,
                       component="images.npy", resident=0, chunk_cache=16 << 10, window=4, num_workers=1, prefetch_factor=1)
for batch in loader: pass
print(loader.stats()["chunks"])
"""
    chunks = -(-ROWS // 7)
    assert int(python(code, "by_chunk")) <= chunks + 4  # the next epoch's first window may have begun
    assert int(python(code, "full")) > 2 * chunks


@pytest.mark.parametrize(("cache", "is_warned"), [(64 * 144 - 1, True), (64 * 144, False)])
def test_a_cache_smaller_than_a_chunk_is_a_warning_with_the_required_size(stoker, python, tmp_path, cache, is_warned):
    (tmp_path / "hub").mkdir()
    write_hdf5(tmp_path / "hub/train.h5", {"compression": "lzf", "chunks": (64, 8, 3, 3)})
    stoker("data", "index", "hub", code=0)
    code = """
import sys, warnings, stoker
with warnings.catch_warnings(record=True) as message:
    warnings.simplefilter("always")
    for batch in stoker.Loader("hub", component="images.npy", transform=None, resident=int(sys.argv[2]),
                               chunk_cache=int(sys.argv[1])): break
print(*(f"{one.category.__name__} {one.message}" for one in message), sep="\\n", end="")
"""
    # A row spans two adjacent chunks, of 64 x 8 x 3 x 3 bytes each.
    warning = (
        f"RuntimeWarning hub: the chunks of one sample unpack to 9.22 kB, but the cache holds {cache / 1000:.2f} kB: "
        "nearly every sample unpacks its chunks again (chunk_cache)\n  try: chunk_cache=1048576"
    )
    assert python(code, cache, 0) == (warning if is_warned else "")
    assert python(code, cache, 1 << 30) == ""  # unpacked once


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_damage_names_the_chunk_and_the_sample(stoker, python, tmp_path, at):
    (tmp_path / "hub").mkdir()
    file = tmp_path / "hub/train.h5"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("images", data=IMAGES, compression="gzip", chunks=(16, 8, 6, 3))
    stoker("data", "index", "hub", code=0)
    with h5py.File(file) as opened:
        chunk = opened["images"].id.get_chunk_info(int(at * 19))
    content = bytearray(file.read_bytes())
    content[chunk.byte_offset + chunk.size // 2] ^= 8
    file.write_bytes(content)
    damaged = stoker("data", "verify", "hub", "--full", code=1)
    assert f"dataset 'images': chunk {int(at * 19)}: zlib data is damaged" in damaged.out + damaged.err
    code = """
import stoker
loader = stoker.Loader("hub", batch_size=32, shuffle=False, transform=None, resident=0, errors="skip")
print(sum(len(batch["key"]) for batch in loader), loader.skipped[0]["error"])
"""
    message = python(code)
    assert message.startswith("284 ")
    assert f"chunk {int(at * 19)}: zlib data is damaged" in message and "train.h5/" in message


def test_a_bomb_is_rejected_before_memory_is_allocated(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    side = 3 << 29
    with h5py.File(tmp_path / "hub/x.h5", "w") as opened:
        opened.create_dataset("x", (4, side), "u1", chunks=(1, side), compression="gzip").id.write_direct_chunk(
            (0, 0), b"x" * 100
        )
        opened["labels"] = numpy.arange(4)
    refused = stoker("data", "index", "hub", code=2)
    assert (
        "dataset 'x': its chunks unpack to 1610612736 bytes each (at most 1 GiB is supported in place)" in refused.err
    )
