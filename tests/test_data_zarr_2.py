"""Shards of Zarr version 2, read by libraries of that version."""

import json
import zipfile
from pathlib import Path

import numpy
import packing
import pytest
import zarr
from array_files import all_samples

VERSION_2 = ("--format", "zarr", "--zarr-version", "2")


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return packing.make_animals(tmp_path / "animals")


def test_its_samples_equal_version_3(stoker, animals):
    stoker("data", "pack", animals, "three", "--format", "zarr", "--shards", "3", code=0)
    stoker("data", "pack", animals, "two", *VERSION_2, "--shards", "3", code=0)
    assert all_samples(stoker.folder / "two") == all_samples(stoker.folder / "three")
    stoker("data", "verify", "two", "--full", code=0)
    assert "  20 the same" in stoker("data", "diff", "two", "three").out
    assert json.loads(stoker("data", "info", "two", "--json", code=0).out)["format"] == "zarr"


def test_it_uses_only_features_of_version_2(stoker, animals):
    stoker("data", "pack", animals, "out", *VERSION_2, "--shards", "1", code=0)
    with zipfile.ZipFile(stoker.folder / "out/all-000000.zarr.zip") as archive:
        assert archive.testzip() is None
        content = {name: archive.read(name) for name in archive.namelist()}
    assert not [name for name in content if name.endswith("zarr.json")]
    assert json.loads(content[".zgroup"]) == json.loads(content["files/.zgroup"]) == {"zarr_format": 2}
    for name, array in {name: json.loads(text) for name, text in content.items() if name.endswith(".zarray")}.items():
        assert set(array) >= {"zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"}
        assert (array["zarr_format"], array["compressor"], array["filters"], array["order"]) == (2, None, None, "C")
        # One stored chunk, read according to the specification.
        chunk = name.replace(".zarray", ".".join("0" * len(array["shape"])))
        stored = numpy.frombuffer(content[chunk], array["dtype"]).reshape(array["shape"])
        assert array["chunks"] == array["shape"] and stored.nbytes == len(content[chunk])


def test_readers_of_version_2_open_it(stoker, animals):
    stoker("data", "pack", animals, "out", *VERSION_2, "--shards", "1", code=0)
    store = zarr.storage.ZipStore(stoker.folder / "out/all-000000.zarr.zip", mode="r")
    group = zarr.open_group(store, mode="r", zarr_format=2)
    assert group["key"].shape == (20, 2) and group["label"].metadata.zarr_format == 2


def test_convert_writes_and_reads_it(stoker, animals):
    stoker("data", "pack", animals, "tar", "--format", "tar", code=0)
    stoker("data", "convert", "tar", "two", *VERSION_2, code=0)
    stoker("data", "convert", "two", "again", "--format", "tar", code=0)
    assert "are identical: version" in stoker("data", "diff", "tar", "again").out
    for name in ("manifest.json", "index.bin"):
        (stoker.folder / "two" / name).unlink()
    assert "20 samples" in stoker("data", "index", "two", code=0).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "tar", "--zarr-version", "2"), "data pack: --zarr-version requires --format zarr\n"),
        (("--format", "zarr", "--zarr-version", "4"), "data pack: --zarr-version: 4 is neither 2 nor 3\n"),
    ],
)
def test_invalid_versions_are_refused(stoker, animals, options, message):
    assert stoker("data", "pack", animals, "out", *options, code=2).err == message
