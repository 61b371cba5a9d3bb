"""Zarr stores in folders, indexed and read in place."""

import io
import shutil
from pathlib import Path

import numpy
import pytest
import zarr
from test_data_chunks import IMAGES, LABELS, ROWS, loaded

STORES = {
    "2, blosc": {"zarr_format": 2, "chunks": (16, 8, 6, 3)},
    "2, order F": {"zarr_format": 2, "chunks": (16, 8, 6, 3), "order": "F"},
    "3, zstd": {"zarr_format": 3, "chunks": (16, 8, 3, 3)},
    "3, shards": {"zarr_format": 3, "chunks": (16, 8, 6, 3), "shards": (64, 8, 6, 3)},
}


def write(store: Path, options: dict) -> None:
    rest = {name: value for name, value in options.items() if name != "zarr_format"}
    group = zarr.create_group(store, zarr_format=options["zarr_format"])
    group.create_array("images", shape=IMAGES.shape, dtype="u1", **rest)[:] = IMAGES
    group.create_array("labels", shape=LABELS.shape, dtype="i4", chunks=LABELS.shape)[:] = LABELS


@pytest.mark.parametrize("how", STORES)
def test_rows_of_a_store_in_a_folder_are_read_in_place(stoker, python, tmp_path, how):
    write(tmp_path / "hub/train.zarr", STORES[how])
    assert "300 samples" in stoker("data", "index", "hub", code=0).out
    stoker("data", "verify", "hub", "--full", code=0)
    assert "300" in stoker("data", "info", "hub", code=0).out
    for shuffle in ("True", "'by_chunk'"):
        found = loaded(python, "hub", "npy", shuffle)
        assert len(found) == ROWS
        for row in range(ROWS):
            content, label = found[f"train.zarr/{row:08}"]
            assert label == LABELS[row]
            assert numpy.array_equal(numpy.load(io.BytesIO(bytes.fromhex(content))), IMAGES[row])


def test_own_shard_unpacked_to_a_folder_is_read(stoker, python, tmp_path, example_dataset):
    """One of our archives, unpacked."""
    stoker("data", "convert", example_dataset, "packed", "--format", "zarr", code=0)
    (tmp_path / "hub").mkdir()
    for archive in (tmp_path / "packed").glob("*.zarr.zip"):
        shutil.unpack_archive(archive, tmp_path / "hub" / archive.name.removesuffix(".zip"), "zip")
    stoker("data", "index", "hub", code=0)
    stoker("data", "verify", "hub", "--full", code=0)
    stoker("data", "convert", "hub", "after", "--format", "tar", code=0)
    stoker("data", "convert", "packed", "before", "--format", "tar", code=0)
    assert "the same" in stoker("data", "diff", "before", "after").out


def test_changed_part_is_reported(stoker, python, tmp_path):
    write(tmp_path / "hub/train.zarr", STORES["3, zstd"])
    stoker("data", "index", "hub", code=0)
    part = tmp_path / "hub/train.zarr/images/c/3/0/0/0"
    whole = part.read_bytes()
    part.write_bytes(whole + b"x")
    done = stoker("data", "verify", "hub", code=1)
    assert f"c/3/0/0/0: has {len(whole) + 1} bytes, the index lists {len(whole)}" in done.out + done.err
    part.write_bytes(bytes([whole[0], whole[1] ^ 1]) + whole[2:])
    done = stoker("data", "verify", "hub", "--full", code=1)
    assert "train.zarr" in done.out + done.err
    part.unlink()
    assert "c/3/0/0/0" in (done := stoker("data", "verify", "hub", code=1)).out + done.err


def test_missing_chunk_reads_as_the_fill_value(stoker, python, tmp_path):
    write(tmp_path / "hub/train.zarr", STORES["3, zstd"])
    for part in (tmp_path / "hub/train.zarr/images/c/3/0").glob("*/*"):
        part.unlink()
    stoker("data", "index", "hub", code=0)
    found = loaded(python, "hub", "npy")
    content, _ = found["train.zarr/00000050"]
    assert not numpy.load(io.BytesIO(bytes.fromhex(content))).any()
