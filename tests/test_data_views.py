"""One HDF5 file over all shards of a split, as h5py reads it."""

from pathlib import Path

import h5py
import packing
import pytest
from array_files import all_samples, samples


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return packing.make_animals(tmp_path / "animals")


def test_parts_of_several_nodes_open_as_one_array(stoker, animals):
    common = ("--format", "hdf5", "--shards", "3")
    for part in ("2/3", "1/3", "3/3"):
        stoker("data", "pack", animals, "parts", *common, "--part", part, code=0)
    assert not (stoker.folder / "parts/all.view.h5").exists()
    stoker("data", "merge", "parts", code=0)
    stoker("data", "pack", animals, "whole", *common, code=0)
    assert packing.tree(stoker.folder / "parts") == packing.tree(stoker.folder / "whole")
    with h5py.File(stoker.folder / "parts/all.view.h5") as view:
        assert view["bytes"].is_virtual and len(view["bytes"].virtual_sources()) == 3
        found = samples(view)
    assert len(found) == 20 and found == all_samples(stoker.folder / "parts")


def test_view_is_rewritten_and_is_not_a_shard(stoker, animals):
    stoker("data", "pack", animals, "out", "--format", "hdf5", "--shards", "2", code=0)
    view = stoker.folder / "out/all.view.h5"
    content = view.read_bytes()
    view.unlink()
    done = stoker("data", "index", "out", "--export", "hdf5", code=0)
    assert "  wrote all.view.h5\n" in done.out and view.read_bytes() == content
    for name in ("manifest.json", "index.bin"):
        (stoker.folder / "out" / name).unlink()
    assert "20 samples, 2 shards" in stoker("data", "index", "out", code=0).out
    stoker("data", "convert", "out", "tar", "--format", "tar", code=0)
    stoker("data", "verify", "out", "--full", code=0)


def test_single_shards_and_tar_have_no_view(stoker, animals):
    stoker("data", "pack", animals, "out", "--format", "hdf5", "--shards", "1", code=0)
    assert not list((stoker.folder / "out").glob("*.view.h5"))
    stoker("data", "pack", animals, "tar", "--format", "tar", code=0)
    refused = stoker("data", "index", "tar", "--export", "hdf5", code=2)
    assert refused.err == (
        "tar: its shards are tar, which h5py cannot read (--export)\n  try: stoker data pack SOURCE OUT --format hdf5\n"
    )


def test_foreign_shards_are_refused(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    with h5py.File(tmp_path / "hub/train.h5", "w") as file:
        file["x"] = [[1, 2, 3]] * 10
    stoker("data", "index", "hub", code=0)
    refused = stoker("data", "index", "hub", "--export", "hdf5", code=2)
    assert refused.err == (
        "hub/train.h5: was written by another tool: the view supports only Stoker's shards\n"
        "  try: stoker data convert hub OUT --format hdf5\n"
    )
