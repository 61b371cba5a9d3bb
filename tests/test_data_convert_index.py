"""stoker data convert and data pack of an indexed folder: the samples of its index, as the loader reads them."""

import io
import json
import shutil
from pathlib import Path

import h5py
import numpy
import packing
import pyarrow
import pyarrow.parquet
import pytest
from array_files import write_zarr

TAR = ("--format", "tar")
COPY = {"convert": ("data", "convert"), "pack": ("data", "pack", "--order", "source")}

CODE = """
import sys, json, stoker
found = []
for batch in stoker.Loader(sys.argv[1], split=sys.argv[2], component=sys.argv[3], batch_size=5, shuffle=False,
                           transform=None, resident=0, tensors="dlpack", fields=["data", "offset", "key", "label"]):
    offsets, labels = list(memoryview(batch["offset"])), list(memoryview(batch["label"]))
    for i, key in enumerate(batch["key"]):
        found.append([key, labels[i], bytes(memoryview(batch["data"])[offsets[i]:offsets[i + 1]]).hex()])
print(json.dumps(found))
"""


def write_tables(folder: Path) -> None:
    """Rows 0 to 7 in the split train, 8 to 11 in val; the value of row 2 is missing."""
    folder.mkdir()
    for split, rows in (("train", range(8)), ("val", range(8, 12))):
        table = pyarrow.table(
            {
                "id": rows,
                "value": pyarrow.array([None if i == 2 else i / 4 for i in rows], pyarrow.float64()),
                "kind": [f"kind {i % 2}" for i in rows],
                "jpg": [packing.jpeg(i % 3) for i in rows],
            }
        )
        pyarrow.parquet.write_table(table, folder / f"{split}-00000-of-00001.parquet", row_group_size=4)


def schema(dataset: Path) -> tuple:
    manifest = json.loads((dataset / "manifest.json").read_text())
    described = manifest["schema"]
    names = [component["name"] for component in described["components"]]
    splits = [(split["name"], split["samples"], split["class_samples"]) for split in manifest["splits"]]
    return names, described["labels"], described["classes"], splits


def loaded(python, dataset: str, split: str, component: str) -> list[tuple[str, int, bytes]]:
    found = json.loads(python(CODE, dataset, split, component))
    return [(key, label, bytes.fromhex(content)) for key, label, content in found]


def check_same(stoker, python, tmp_path: Path, copy: str) -> None:
    """Checks that `hub` and its copy have the same splits, components, classes, keys, labels, bytes and order."""
    names, *_, splits = schema(tmp_path / "hub")
    assert schema(tmp_path / copy) == schema(tmp_path / "hub")
    for split, *_ in splits:
        for name in names:
            assert loaded(python, copy, split, name) == loaded(python, "hub", split, name)
    found = json.loads(stoker("data", "diff", "hub", copy, "--json").out)
    assert (found["same"], found["samples"], found["schema"]) == (sum(split[1] for split in splits), [], [])


@pytest.mark.parametrize("verb", COPY)
@pytest.mark.parametrize(
    ("options", "names", "train", "val"),
    [
        (("--columns", "id", "--where", "id != 3"), ["id.npy"], [0, 1, 2, 4, 5, 6, 7], [8, 9, 10, 11]),
        (
            ("--columns", "id,value", "--label", "id", "--missing", "drop"),
            ["id.npy", "value.npy"],
            [0, 1, 3, 4, 5, 6, 7],
            [8, 9, 10, 11],
        ),
        (
            ("--tensor", "x=id,value:float32", "--label", "kind", "--missing", "-1", "--where", "id >= 6"),
            ["x.npy"],
            [6, 7],
            [8, 9, 10, 11],
        ),
        (("--where", "id < 10"), ["jpg", "kind"], [0, 1, 2, 3, 4, 5, 6, 7], [8, 9]),
    ],
)
def test_a_table_is_copied_as_its_index_selects_it(stoker, python, tmp_path, verb, options, names, train, val):
    write_tables(tmp_path / "hub")
    stoker("data", "index", "hub", *options, code=0)
    done = stoker(*COPY[verb], "hub", "out", *TAR, code=0)
    assert "skipped" not in done.out
    assert schema(tmp_path / "out")[0] == names
    for split, rows in (("train", train), ("val", val)):
        keys = [key for key, *_ in loaded(python, "out", split, names[0])]
        assert keys == [f"{split}-00000-of-00001.parquet/{row - 8 * (split == 'val'):08}" for row in rows]
    check_same(stoker, python, tmp_path, "out")


def test_labels_of_the_index_are_copied(stoker, python, tmp_path):
    write_tables(tmp_path / "hub")
    stoker("data", "index", "hub", "--columns", "value", "--label", "id", "--missing", "drop", code=0)
    stoker("data", "convert", "hub", "out", "--format", "parquet", code=0)
    found = loaded(python, "out", "train", "value.npy")
    assert [label for _, label, _ in found] == [0, 1, 3, 4, 5, 6, 7]
    assert [numpy.load(io.BytesIO(array)).item() for *_, array in found] == [0, 0.25, 0.75, 1, 1.25, 1.5, 1.75]
    check_same(stoker, python, tmp_path, "out")


def write_hdf5(path: Path, arrays: dict[str, numpy.ndarray]) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip", chunks=(7, *array.shape[1:]))


def write_npz(path: Path, arrays: dict[str, numpy.ndarray]) -> None:
    numpy.savez(path, **arrays)


ARRAYS = {
    "images": numpy.random.default_rng(3).integers(0, 256, (20, 4, 6)).astype("u1"),
    "depth": numpy.random.default_rng(4).normal(size=(20, 3)).astype("f4"),
    "labels": (numpy.arange(20) % 4).astype("i4"),
}


@pytest.mark.parametrize(
    ("ending", "write"),
    [
        ("h5", write_hdf5),
        ("zarr.zip", lambda path, arrays: write_zarr(path, "zarr", True, arrays)),
        ("npz", write_npz),
    ],
)
def test_arrays_are_copied_as_their_index_lists_them(stoker, python, tmp_path, ending, write):
    (tmp_path / "hub").mkdir()
    write(tmp_path / f"hub/train-0.{ending}", ARRAYS)
    stoker("data", "index", "hub", code=0)
    shutil.copy(tmp_path / f"hub/train-0.{ending}", tmp_path / f"hub/train-1.{ending}")  # is not in the index
    stoker("data", "convert", "hub", "out", *TAR, code=0)
    found = loaded(python, "out", "train", "depth.npy")
    assert [label for _, label, _ in found] == ARRAYS["labels"].tolist()
    assert numpy.array_equal([numpy.load(io.BytesIO(array)) for *_, array in found], ARRAYS["depth"])
    check_same(stoker, python, tmp_path, "out")


def test_a_file_that_the_index_does_not_match_is_refused(stoker, tmp_path):
    write_tables(tmp_path / "hub")
    stoker("data", "index", "hub", "--columns", "id", code=0)
    file = tmp_path / "hub/val-00000-of-00001.parquet"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes() + b"x")
    message = f"hub/{file.name}: has {size + 1} bytes, the manifest lists {size}\n"
    for verb in COPY.values():
        assert stoker(*verb, "hub", "out", *TAR, code=1).err == message
    assert not (tmp_path / "out").exists()


def test_a_lost_index_is_refused_with_a_cure_that_works(stoker, python, tmp_path):
    write_tables(tmp_path / "hub")
    stoker("data", "index", "hub", code=0)
    (tmp_path / "hub/index.bin").unlink()
    refused = stoker("data", "convert", "hub", "out", *TAR)
    assert refused.code != 0
    assert refused.err == "hub/index.bin: no such file or directory\n  try: stoker data index hub\n"
    stoker("data", "index", "hub", code=0)
    stoker("data", "convert", "hub", "out", *TAR, code=0)
    check_same(stoker, python, tmp_path, "out")


def test_options_replace_the_index_and_the_output_reports_it(stoker, tmp_path):
    write_tables(tmp_path / "hub")
    stoker("data", "index", "hub", "--columns", "id", "--where", "id != 3", code=0)
    done = stoker("data", "convert", "hub", "out", *TAR, "--columns", "kind", code=0)
    assert "  the index of hub is not used: the options select rows and columns instead\n" in done.out
    assert schema(tmp_path / "out")[0] == ["kind"]
    assert [split[:2] for split in schema(tmp_path / "out")[3]] == [("train", 8), ("val", 4)]
