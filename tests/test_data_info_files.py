"""stoker data info of files that are not a dataset yet: contents as seen by their own readers."""

import io
import json
import tarfile
import zipfile

import h5py
import numpy
import pyarrow
import pyarrow.parquet
import pytest
import zarr
from packing import jpeg


def info(stoker, path):
    return json.loads(stoker("data", "info", path, "--json", code=0).out)


def test_hdf5_arrays_match_h5py(stoker, tmp_path):
    record = numpy.dtype([("wave", "<f4", (4,)), ("name", "S5")])
    with h5py.File(tmp_path / "events.h5", "w") as file:
        file.create_dataset("events", data=numpy.zeros(300, record), chunks=(50,), compression="gzip")
        file.create_dataset("group/number", data=numpy.arange(5, dtype=">i2"))
        file.create_dataset("texts", data=["a", "bc"], dtype=h5py.string_dtype())
        file["one"] = 7.5
    found = info(stoker, tmp_path / "events.h5")
    assert found["kind"] == "HDF5 file" and found["omitted"] == 0
    assert found["bytes"] == (tmp_path / "events.h5").stat().st_size
    assert found["arrays"] == [
        {"name": "events/name", "type": "text of 5 bytes", "shape": [300], "chunks": [50]},
        {"name": "events/wave", "type": "float32", "shape": [300, 4], "chunks": [50, 4]},
        {"name": "group/number", "type": "int16", "shape": [5]},
        {"name": "one", "type": "float64", "shape": []},
        {"name": "texts", "type": "text", "shape": [2]},
    ]
    text = stoker("data", "info", tmp_path / "events.h5").out
    assert "events/wave    300x4   float32           50x4\n" in text
    assert text.endswith(f"no dataset yet; to make one: stoker data index {tmp_path}\n")


def test_unreadable_array_does_not_hide_the_rest(stoker, tmp_path):
    with h5py.File(tmp_path / "mixed.h5", "w") as file:
        file["good"] = numpy.arange(3)
        file.create_dataset("reference", data=[file["good"].ref], dtype=h5py.ref_dtype)
    good, reference = info(stoker, tmp_path / "mixed.h5")["arrays"]
    assert good["shape"] == [3]
    assert reference["name"] == "reference" and "reference" in reference["unreadable"] and "type" not in reference
    assert "\nnot read: " in stoker("data", "info", tmp_path / "mixed.h5").out


@pytest.mark.parametrize("is_zip", [False, True])
def test_zarr_arrays_match_the_written_ones(stoker, tmp_path, is_zip):
    path = tmp_path / ("climate.zarr.zip" if is_zip else "climate.zarr")
    store = zarr.storage.ZipStore(path, mode="w") if is_zip else path
    root = zarr.create_group(store)
    root.create_array("t2m", shape=(400, 6), chunks=(100, 6), dtype="f4")[:] = 1
    root.create_array("deep/time", shape=(400,), chunks=(400,), dtype="i8")[:] = 2
    if is_zip:
        store.close()
    found = info(stoker, path)
    assert found["kind"] == "Zarr store"
    assert found["arrays"] == [
        {"name": "deep/time", "type": "int64", "shape": [400], "chunks": [400]},
        {"name": "t2m", "type": "float32", "shape": [400, 6], "chunks": [100, 6]},
    ]


def test_a_parquet_table_has_columns_and_row_groups(stoker, tmp_path):
    columns = {"x": [0.5, 1.5, None], "tokens": [[1], [2, 3], []], "name": ["a", "b", "c"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet", row_group_size=2)
    found = info(stoker, tmp_path / "t.parquet")
    assert (found["rows"], found["row_groups"]) == (3, 2)
    types = {column["name"]: column["type"] for column in found["columns"]}
    assert types == {"x": "float64", "tokens": "list of int64", "name": "text"}
    assert ", 3 rows in 2 row groups, 3 columns\n" in stoker("data", "info", tmp_path / "t.parquet").out


def test_archives_list_files_by_extension(stoker, tmp_path):
    with tarfile.open(tmp_path / "shard-000000.tar.gz", "w:gz") as archive:
        for i in range(3):
            for name, data in ((f"{i}.jpg", jpeg(i)), (f"{i}.json", b"{}")):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    found = info(stoker, tmp_path / "shard-000000.tar.gz")
    assert found["kind"] == "tar archive"
    assert {kind["name"]: kind["files"] for kind in found["kinds"]} == {"jpg": 3, "json": 3}
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("cat/1.jpg", jpeg(1))
        archive.writestr("dog/2.jpg", jpeg(2))
    done = stoker("data", "info", tmp_path / "photos.zip").out
    assert "zip archive" in done and f"to make one: stoker data pack {tmp_path}/photos.zip OUT" in done


def test_numpy_file_has_a_shape(stoker, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros((30, 8), ">f8"))
    assert info(stoker, tmp_path / "x.npy")["arrays"] == [{"name": "x", "type": "float64", "shape": [30, 8]}]


def test_truncated_numpy_file_is_an_error(stoker, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros((100, 3)))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-1])
    done = stoker("data", "info", tmp_path / "x.npy", code=1)
    assert "x.npy: x: NPY: 2399 bytes of elements, but its header declares more" in done.err


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_numpy_archive_lists_the_shapes_of_its_arrays(stoker, tmp_path, save):
    objects = numpy.array([{}], dtype=object)
    save(tmp_path / "d.npz", x=numpy.zeros((30000, 8), ">f4"), y=numpy.array(["ab", "c"]), objects=objects)
    found = info(stoker, tmp_path / "d.npz")
    assert found["kind"] == "NumPy archive"
    arrays = {array.pop("name"): array for array in found["arrays"]}
    assert arrays["x"] == {"type": "float32", "shape": [30000, 8]}
    assert arrays["y"] == {"type": "text of 2 characters", "shape": [2]}
    assert "|O" in arrays["objects"]["unreadable"]


@pytest.mark.parametrize(
    "name", ["bad.h5", "bad.npy", "bad.npz", "bad.parquet", "bad.tar", "bad.zip", "bad.zarr.zip", "bad.tfrecord"]
)
@pytest.mark.parametrize(
    "content", [b"", b"nothing that is known", b"\x93NUMPY\x01\x00v\x00{garbage", b"\x89HDF\r\n\x1a\n" + 90 * b"\xff"]
)
def test_damaged_file_is_reported_by_name(stoker, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    failed = stoker("data", "info", tmp_path / name)
    assert failed.code in (1, 2)
    assert failed.err.startswith(str(tmp_path / name)) and "bug" not in failed.err


def test_other_commands_suggest_data_info(stoker, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros(3))
    for command in ("verify", "sample"):
        failed = stoker("data", command, tmp_path / "x.npy")
        assert f"try: stoker data info {tmp_path}/x.npy" in failed.err
