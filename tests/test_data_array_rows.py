"""HDF5 and Zarr files with one row per sample: conversion, and the arrays in an index."""

import io
import json
from pathlib import Path

import h5py
import numpy
import pytest
import zarr
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
def test_rows_of_arrays_are_converted_to_npy_files(stoker, python, tmp_path, kind):
    ending = {"hdf5": "h5", "zarr": "zarr.zip"}[kind]
    write_rows(tmp_path / "hub", kind, ROWS)
    done = stoker("data", "convert", "hub", "out", "--format", kind, code=0)
    for name in ["mean", "test/images"] + ["names"] * (kind == "hdf5"):
        assert f"  skipped: array '{name}' (30 samples)\n" in done.out
    found = all_samples(stoker.folder / "out")
    assert len(found) == 30
    for i in range(30):
        sample = found[f"train.{ending}/{i:08}"]
        assert sample.pop("label") == i % 4
        read = {name.removesuffix(".npy"): numpy.load(io.BytesIO(content)) for name, content in sample.items()}
        assert sorted(read) == ["depth", "images", "weight"]
        for name, array in read.items():
            assert array.dtype == ROWS[name].dtype and numpy.array_equal(array, ROWS[name][i])


def test_the_loader_returns_a_single_array_as_array(stoker, python, tmp_path):
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
    ("arrays", "message"),
    [
        ({"labels": ROWS["labels"]}, "has only labels\n"),
        ({}, "has no arrays\n"),
    ],
)
def test_arrays_without_rows_of_numbers_are_refused(stoker, tmp_path, arrays, message):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    done = stoker("data", "convert", "x.h5", "out", "--format", "tar", code=2)
    assert done.err == f"x.h5: {message}"


COMPLEX = "save the real and imaginary parts of 'x' as two arrays"


@pytest.mark.parametrize("command", [["index", "hub"], ["convert", "hub", "out", "--format", "tar"]])
@pytest.mark.parametrize("store", ["hub/x.h5", "hub/x.zarr"])
@pytest.mark.parametrize(
    ("arrays", "reasons", "cure"),
    [
        ({"x": numpy.zeros(4, "c16")}, "x: complex128 values", COMPLEX),
        ({"x": numpy.zeros((0, 3), "f4")}, "x: no rows (shape 0 x 3)", ""),
        ({"x": numpy.array(3, "i4")}, "x: a single value (no rows)", ""),
        (
            {"x": numpy.array([["a", "b"]], "S1")},
            "x: several texts per row (shape 1 x 2)",
            "save each column of 'x' as a separate array",
        ),
        (
            {"a": numpy.array(3, "i4"), "x": numpy.zeros(4, "c8")},
            "a: a single value (no rows); x: complex64 values",
            COMPLEX,
        ),
        (
            {name: numpy.array(3, "i4") for name in "abcdef"},
            "; ".join(f"{name}: a single value (no rows)" for name in "abcd") + "; and 2 more arrays",
            "",
        ),
    ],
)
def test_arrays_that_are_not_read_are_named_with_the_reason(stoker, tmp_path, command, store, arrays, reasons, cure):
    (tmp_path / "hub").mkdir()
    if store.endswith(".h5"):
        with h5py.File(tmp_path / store, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    else:
        group = zarr.open_group(tmp_path / store, mode="w", zarr_format=2)
        for name, array in arrays.items():
            chunks = tuple(max(1, size) for size in array.shape)
            group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks)[...] = array
    refused = stoker("data", *command, code=2).err
    assert refused.partition("hub/x.")[2].partition(": ")[2] == (
        f"has no array with rows of numbers: {reasons}\n" + (f"  try: {cure}\n" if cure else "")
    )


@pytest.mark.parametrize("layout", ["compact", "never written"])
def test_an_array_outside_the_chunks_of_hdf5_needs_a_copy(stoker, tmp_path, layout):
    (tmp_path / "hub").mkdir()
    values = numpy.arange(12, dtype="<i4").reshape(4, 3) if layout == "compact" else numpy.full((4, 3), 7, "<i4")
    with h5py.File(tmp_path / "hub/x.h5", "w") as file:
        if layout == "compact":
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_layout(h5py.h5d.COMPACT)
            space = h5py.h5s.create_simple(values.shape)
            made = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, space, dcpl=properties)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
        else:
            file.create_dataset("x", (4, 3), "<i4", fillvalue=7)
    what = "is stored in the file's header" if layout == "compact" else "was never written"
    refused = stoker("data", "index", "hub", code=2)
    assert refused.err == f"hub/x.h5: dataset 'x': {what}\n  try: stoker data convert hub OUT\n"
    stoker("data", "convert", "hub", "out", "--format", "hdf5", code=0)
    found = all_samples(stoker.folder / "out")
    rows = [numpy.load(io.BytesIO(found[f"x.h5/{i:08}"]["npy"])).tolist() for i in range(4)]
    assert rows == values.tolist()


def labels_of(python, dataset: str) -> list[int]:
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=100, shuffle=False, array=True, tensors="dlpack"):
    print(list(memoryview(batch["label"])))
"""
    return json.loads(python(code, dataset))


def write_files(folder: Path, files: dict[str, dict[str, numpy.ndarray]]) -> None:
    folder.mkdir()
    for name, arrays in files.items():
        with h5py.File(folder / name, "w") as file:
            for array, values in arrays.items():
                file[array] = values


X = numpy.arange(15, dtype="f4").reshape(5, 3)


@pytest.mark.parametrize(
    ("files", "labels", "result"),
    [
        (
            {"train.h5": {"x": X, "y": numpy.array([-1, 0, 1, 2, 3])}},
            [-1, 0, 1, 2, 3],
            ["unlabelled: 1 of 5 samples (label -1)"],
        ),
        (
            {"train-0.h5": {"x": X, "y": numpy.arange(5)}, "train-1.h5": {"x": X}},
            [0, 1, 2, 3, 4, -1, -1, -1, -1, -1],
            ["unlabelled: 5 of 10 samples (label -1)"],
        ),
        (
            {"train.h5": {"x": X, "label": numpy.array(["b", "", "a", "b", "a"], "S1")}},
            [1, -1, 0, 1, 0],
            ["unlabelled: 1 of 5 samples (label -1)"],
        ),
    ],
)
def test_existing_labels_are_kept_as_in_a_copy(stoker, python, tmp_path, files, labels, result):
    write_files(tmp_path / "hub", files)
    stoker("data", "convert", "hub", "copy", "--format", "hdf5", code=0)
    done = json.loads(stoker("data", "index", "hub", "--json", code=0).out)
    assert (done["has_labels"], done["notes"]) == (True, result)
    assert labels_of(python, "hub") == labels
    stoker("data", "verify", "hub", "--full", code=0)
    found = json.loads(stoker("data", "diff", "copy", "hub", "--json").out)
    assert (found["same"], found["samples"]) == (len(labels), [])
    before = (tmp_path / "hub/index.bin").read_bytes()
    (tmp_path / "hub/index.bin").unlink()
    stoker("data", "index", "hub", code=0)
    assert (tmp_path / "hub/index.bin").read_bytes() == before


def test_labels_with_a_different_number_of_rows_are_named(stoker, tmp_path):
    write_files(tmp_path / "hub", {"train.h5": {"x": X, "y": numpy.arange(4)}})
    result = "  skipped: array 'y' as the label, because it has 4 rows (5 samples)\n"
    assert result in stoker("data", "convert", "hub", "copy", "--format", "tar", code=0).out
    assert stoker("data", "index", "hub", code=0).out.endswith(f"  wrote index.bin, manifest.json\n{result}")


def test_an_index_lists_the_ignored_arrays(stoker, tmp_path):
    arrays = {"x_train": X, "y_train": numpy.arange(5), "x_test": X[:3], "y_test": numpy.arange(3)}
    write_files(tmp_path / "hub", {"mnist.h5": arrays})
    done = stoker("data", "index", "hub", "--json", code=0)
    assert json.loads(done.out)["notes"] == [f"skipped: array '{name}' (5 samples)" for name in ("x_test", "y_test")]
