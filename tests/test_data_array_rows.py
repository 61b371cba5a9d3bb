"""HDF5 and Zarr files whose arrays have a row for each sample, as sources of convert."""

import io
from pathlib import Path

import h5py
import numpy
import pytest
from array_files import all_samples, write_zarr

ROWS = {
    "images": numpy.random.default_rng(1).integers(0, 256, (30, 8, 6, 3)).astype("u1"),
    "depth": numpy.random.default_rng(2).normal(size=(30, 5)).astype("<f4"),
    "weight": numpy.arange(30, dtype="<f8"),
    "labels": (numpy.arange(30) % 4).astype("i4"),
    "mean": numpy.ones(3, "f4"),
    "test/images": numpy.zeros((5, 8, 6, 3), "u1"),
}


def write_rows(folder: Path, kind: str, arrays: dict[str, numpy.ndarray]) -> Path:
    folder.mkdir()
    if kind == "zarr":
        write_zarr(folder / "train.zarr.zip", "zarr", True, arrays)
        return folder
    with h5py.File(folder / "train.h5", "w") as file:
        for name, array in arrays.items():
            big = array.astype(array.dtype.newbyteorder(">"))
            file.create_dataset(name, data=big, compression="gzip", chunks=(min(7, len(array)), *array.shape[1:]))
        file["names"] = ["a", "b"]
    return folder


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_rows_of_arrays_are_converted_to_numpys_files(stoker, python, tmp_path, kind):
    ending = {"hdf5": "h5", "zarr": "zarr.zip"}[kind]
    write_rows(tmp_path / "hub", kind, ROWS)
    done = stoker("data", "convert", "hub", "out", "--format", kind, code=0)
    for name in ["mean", "test/images"] + ["names"] * (kind == "hdf5"):
        assert f"  not carried: array '{name}' (30 samples)\n" in done.out
    found = all_samples(stoker.folder / "out")
    assert len(found) == 30
    for i in range(30):
        sample = found[f"train.{ending}/{i:08}"]
        assert sample.pop("label") == i % 4
        read = {name.removesuffix(".npy"): numpy.load(io.BytesIO(content)) for name, content in sample.items()}
        assert sorted(read) == ["depth", "images", "weight"]
        for name, array in read.items():
            assert array.dtype == ROWS[name].dtype and numpy.array_equal(array, ROWS[name][i])


def test_one_array_is_what_the_loader_gives_as_array(stoker, python, tmp_path):
    write_rows(tmp_path / "hub", "hdf5", {name: ROWS[name] for name in ("depth", "labels")})
    stoker("data", "convert", "hub", "out", "--format", "tfrecord", code=0)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=30, shuffle=False, array=True, tensors="dlpack"):
    print(bytes(memoryview(batch["array"])).hex(), list(memoryview(batch["label"])))
"""
    data, labels = python(code, "out").split(" ", 1)
    assert bytes.fromhex(data) == ROWS["depth"].tobytes()
    assert labels == f"{[i % 4 for i in range(30)]}\n"


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"labels": ROWS["labels"]}, "has labels and nothing else\n"),
        ({"x": numpy.zeros((0, 3), "f4")}, "has no array with rows of numbers\n"),
    ],
)
def test_arrays_without_rows_of_numbers_are_refused(stoker, tmp_path, arrays, told):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    done = stoker("data", "convert", "x.h5", "out", "--format", "tar", code=2)
    assert done.err == f"x.h5: {told}"
