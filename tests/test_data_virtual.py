"""Virtual datasets that others wrote over files beside them, indexed and read where they lie."""

import io

import h5py
import numpy
import pytest
from test_data_chunks import loaded

RANDOM = numpy.random.default_rng(5)
PARTS = [RANDOM.normal(size=(rows, 4, 3)).astype("f4") for rows in (20, 7, 33)]
WHOLE = numpy.concatenate(PARTS)


def write(folder, names=("0.h5", "1.h5", "2.h5"), written=("0.h5", "1.h5", "2.h5")) -> None:
    folder.mkdir()
    layout = h5py.VirtualLayout(WHOLE.shape, "f4")
    at = 0
    for part, name, file in zip(PARTS, names, written, strict=True):
        if file:
            with h5py.File(folder / file, "w") as opened:
                opened.create_dataset("x", data=part, chunks=(5, 4, 2), compression="gzip")
        layout[at : at + len(part)] = h5py.VirtualSource(name, "x", part.shape)
        at += len(part)
    with h5py.File(folder / "all.h5", "w") as opened:
        opened.create_virtual_dataset("x", layout)
        opened["labels"] = (numpy.arange(len(WHOLE)) % 3).astype("i8")


def test_rows_of_files_beside_it_are_read_in_place(stoker, python, tmp_path):
    write(tmp_path / "hub")
    assert "60 samples, 1 shard" in stoker("data", "index", "hub", code=0).out
    stoker("data", "verify", "hub", "--full", code=0)
    for shuffle in ("True", "'by_chunk'"):
        found = loaded(python, "hub", "npy", shuffle)
        assert len(found) == len(WHOLE)
        for row, values in enumerate(WHOLE):
            content, label = found[f"all.h5/{row:08}"]
            assert label == row % 3
            assert numpy.array_equal(numpy.load(io.BytesIO(bytes.fromhex(content))), values)


def test_a_source_that_changed_is_named(stoker, tmp_path):
    write(tmp_path / "hub")
    stoker("data", "index", "hub", code=0)
    with (tmp_path / "hub/1.h5").open("ab") as file:
        file.write(b"x")
    done = stoker("data", "verify", "hub", code=1)
    assert "hub/1.h5: has" in done.out + done.err


def test_a_missing_source_is_named_with_its_cure(stoker, tmp_path):
    write(tmp_path / "hub", written=("0.h5", None, "2.h5"))
    done = stoker("data", "index", "hub")
    assert done.code != 0
    assert "all.h5: dataset 'x': is virtual: its rows are in '1.h5', which is missing" in done.err
    assert "try: put 1.h5 beside" in done.err


@pytest.mark.parametrize("name", ["../0.h5", "/tmp/0.h5", "sub/0.h5"])
def test_a_source_elsewhere_is_refused(stoker, tmp_path, name):
    write(tmp_path / "hub", names=(name, "1.h5", "2.h5"), written=(None, "1.h5", "2.h5"))
    with h5py.File(tmp_path / "0.h5", "w") as opened:
        opened["x"] = PARTS[0]
    with h5py.File(tmp_path / "hub/all.h5", "a") as opened:
        del opened["labels"]
    done = stoker("data", "index", "hub", code=2)
    assert f"is virtual: its rows are in '{name}', in another folder (which is not opened unless allowed)" in done.err
