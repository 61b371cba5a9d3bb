"""Datasets of the Hugging Face Hub, Spark and similar tools: splits by file names, class names, empty and missing values, keys."""

import json
import tarfile
from pathlib import Path

import packing
import pyarrow
import pyarrow.parquet
import pytest

TAR = ("--format", "tar")
PICTURE = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
UUID = "2f1c9d0e-9b1a-4c3e-8a9e-0123456789ab"


def write(path: Path, columns: dict, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path, **options)
    return path


def pictures(labels: list, names: list[str] | None = None, paths: list | None = None, seed: int = 0) -> pyarrow.Table:
    """Images with labels, as the library `datasets` writes them."""
    rows = [
        {"bytes": packing.jpeg(seed + i), "path": paths[i] if paths else f"{seed + i}.jpg"} for i in range(len(labels))
    ]
    table = pyarrow.table({"image": pyarrow.array(rows, PICTURE), "label": pyarrow.array(labels, pyarrow.int64())})
    if names is None:
        return table
    label = {"names": names, "_type": "ClassLabel"}
    info = {"info": {"features": {"image": {"_type": "Image"}, "label": label}}}
    return table.replace_schema_metadata({"huggingface": json.dumps(info)})


def info(stoker, dataset: str) -> dict:
    return json.loads(stoker("data", "info", dataset, "--json", code=0).out)


def splits(stoker, dataset: str) -> dict[str, int]:
    return {split["name"]: split["samples"] for split in info(stoker, dataset)["splits"]}


def files(dataset: Path) -> dict[str, bytes]:
    found = {}
    for shard in dataset.glob("*.tar"):
        with tarfile.open(shard) as archive:
            found |= {member.name: archive.extractfile(member).read() for member in archive}
    return found


@pytest.mark.parametrize("folder", ["hub", "hub/data"])
@pytest.mark.parametrize("suffix", ["", "-a09b74b3ef9c3b56", "-0123456789012345"])
def test_names_of_the_hub_name_splits(stoker, tmp_path, folder, suffix):
    for i, (split, parts) in enumerate((("train", 2), ("validation", 1), ("auxiliary_train", 1))):
        for part in range(parts):
            name = f"{split}-{part:05}-of-{parts:05}{suffix}.parquet"
            write(tmp_path / folder / name, pictures([0, 1], seed=100 * i + 10 * part))
    stoker("data", "index", "hub", code=0)
    assert splits(stoker, "hub") == {"auxiliary_train": 2, "train": 4, "validation": 2}
    stoker("data", "verify", "hub", "--full", code=0)


@pytest.mark.parametrize("folder", ["hub", "hub/year=2024"])
@pytest.mark.parametrize(
    "pattern",
    [
        "part-{:05}-" + UUID + "-c000.snappy.parquet",
        "part-{:05}-tid-61935264-" + UUID + "-{:03}-1-c000.snappy.parquet",
        "{:03}_00000.parquet",
        "part.{}.parquet",
    ],
)
def test_parts_are_one_split(stoker, tmp_path, folder, pattern):
    for i in range(3):
        write(tmp_path / folder / pattern.format(i, i), pictures([0, 1], seed=10 * i))
    stoker("data", "index", "hub", code=0)
    assert splits(stoker, "hub") == {"all": 6}
    stoker("data", "convert", "hub", "out", *TAR, code=0)
    assert splits(stoker, "out") == {"all": 6}


def test_class_names_come_from_the_metadata(stoker, tmp_path):
    names = ["zebra", "ant", "mole"]  # in the order of the labels, which is not that of the alphabet
    write(tmp_path / "hub/train.parquet", pictures([0, 1, 1, -1], names))
    write(tmp_path / "hub/test.parquet", pictures([1, 0], names, seed=50))
    stoker("data", "index", "hub", code=0)
    stoker("data", "convert", "hub", "out", *TAR, "--labels", "cls", code=0)
    stoker("data", "convert", "out", "again", "--format", "parquet", code=0)
    for dataset in ("hub", "out", "again"):
        assert info(stoker, dataset)["classes"] == names, dataset
        stoker("data", "verify", dataset, "--full", code=0)
    labels = {name: data for name, data in files(tmp_path / "out").items() if name.endswith(".cls")}
    assert sorted(labels.values()) == [b"0", b"0", b"1", b"1", b"1"]


def test_class_names_of_a_label_option(stoker, tmp_path):
    table = pyarrow.table({"x": [0.5, 1.5], "fine_label": [1, 0], "coarse_label": [0, 0]})
    features = {
        name: {"names": [f"{name}{i}" for i in range(2)], "_type": "ClassLabel"}
        for name in ("fine_label", "coarse_label")
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    write(tmp_path / "hub/train.parquet", table.replace_schema_metadata(metadata))
    stoker("data", "convert", "hub", "out", *TAR, "--columns", "x", "--label", "fine_label", code=0)
    assert info(stoker, "out")["classes"] == ["fine_label0", "fine_label1"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pictures([0], ["dog", "cat"], seed=9), "label 0 is 'cat' in one and 'dog' in another"),
        (pictures([0], ["cat", "dog", "cow"], seed=9), "label 2 is '' in one and 'cow' in another"),
        (pictures([2], ["cat", "dog"], seed=9), "has label 2 of 2 classes (ClassLabel)"),
        (pictures([5], seed=9), "has label 5 of 2 classes (ClassLabel)"),
    ],
)
def test_contradicting_class_names_are_refused(stoker, tmp_path, other, message):
    write(tmp_path / "hub/a.parquet", pictures([0, 1], ["cat", "dog"]))
    write(tmp_path / "hub/b.parquet", other)
    assert message in stoker("data", "index", "hub", code=2).err
    assert message in stoker("data", "convert", "hub", "out", *TAR, code=2).err


def test_a_row_without_label_stays_unlabelled(stoker, python, tmp_path):
    table = pictures([0, 1, None]).append_column("quality_label", pyarrow.array([7, 7, 7]))
    write(tmp_path / "hub/train.parquet", table)
    assert "unlabelled: 1 of 3 samples (label -1)" in stoker("data", "index", "hub", code=0).out
    code = """
import stoker
for batch in stoker.Loader("hub", batch_size=3, shuffle=False, transform=None, tensors="dlpack"):
    print(list(memoryview(batch["label"])))
"""
    assert python(code) == "[0, 1, -1]\n"


def test_repeated_file_names_are_refused_with_a_cure_that_works(stoker, tmp_path):
    write(tmp_path / "hub/train.parquet", pictures([0, 1, 1], paths=["a.jpg", "a.jpg", "b.jpg"]))
    err = stoker("data", "convert", "hub", "out", *TAR, code=2).err
    assert err == (
        "hub: train.parquet: sample 'a' appears twice\n"
        "  try: --columns image.bytes, which names rows by file and number; or --key COLUMN\n"
    )
    stoker("data", "convert", "hub", "out", *TAR, "--columns", "image.bytes", code=0)
    assert sorted(files(tmp_path / "out")) == [f"train_parquet/0000000{i}.jpg" for i in range(3)] or sorted(
        files(tmp_path / "out")
    ) == [f"train.parquet/0000000{i}.jpg" for i in range(3)]
    assert info(stoker, "out")["has_labels"] is True


def test_absolute_file_names_lose_their_slash(stoker, tmp_path):
    write(tmp_path / "hub/train.parquet", pictures([0, 1], paths=["/data/a.jpg", "/data/b.jpg"]))
    out = stoker("data", "convert", "hub", "out", *TAR, code=0).out
    assert "  skipped: original keys (dots become _, ./ and / at the beginning are removed) (2 samples)\n" in out
    assert {"data/a.jpg", "data/b.jpg"} <= set(files(tmp_path / "out"))


ENCODINGS = [
    {},
    {"use_dictionary": False},
    {"compression": "none", "use_dictionary": False},
    {"compression": "zstd", "use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
    {"compression": "none", "use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
]


@pytest.mark.parametrize("options", ENCODINGS)
def test_an_empty_value_is_an_empty_file_and_null_is_none(stoker, tmp_path, options):
    write(tmp_path / "hub/train.parquet", {"text": ["", "a", None, ""], "t2": ["x", "", "z", None]}, **options)
    stoker("data", "convert", "hub", "out", *TAR, code=0)
    found = {name.rpartition("/")[2]: data for name, data in files(tmp_path / "out").items()}
    assert found == {
        "00000000.text": b"",
        "00000000.t2": b"x",
        "00000001.text": b"a",
        "00000001.t2": b"",
        "00000002.t2": b"z",
        "00000003.text": b"",
    }
    for kind in ("parquet", "tfrecord", "hdf5", "zarr"):
        stoker("data", "convert", "out", kind, "--format", kind, code=0)
        stoker("data", "convert", kind, f"{kind}-tar", *TAR, code=0)
        assert files(tmp_path / f"{kind}-tar") == files(tmp_path / "out"), kind


@pytest.mark.parametrize("options", ENCODINGS[:4])
def test_an_empty_value_in_place_is_an_empty_file(stoker, python, tmp_path, options):
    write(tmp_path / "hub/train.parquet", {"text": ["", "a", ""]}, **options)
    stoker("data", "index", "hub", code=0)
    stoker("data", "verify", "hub", "--full", code=0)
    code = """
import stoker
options = {"batch_size": 3, "shuffle": False, "transform": None, "component": "text", "tensors": "numpy"}
for batch in stoker.Loader("hub", **options):
    print(batch["data"].tobytes(), batch["offset"].tolist())
"""
    assert python(code) == "b'a' [0, 0, 1, 1]\n"
    stoker("data", "convert", "hub", "out", *TAR, code=0)
    assert sorted(files(tmp_path / "out").values()) == [b"", b"", b"a"]


@pytest.mark.parametrize("options", [{}, {"compression": "none", "use_dictionary": False}])
@pytest.mark.parametrize("column", ["text", "two words"])
def test_rows_that_the_condition_excludes_need_no_file(stoker, tmp_path, options, column):
    write(tmp_path / "hub/train.parquet", {column: ["b", None, "a"]}, **options)
    err = stoker("data", "index", "hub", code=2).err
    quoted = column if " " not in column else f'"{column}"'
    assert err == (
        "hub/train.parquet: row 1: has no file: all its columns of bytes or text are null\n"
        f"  try: --where '{quoted} is not null' leaves such rows out\n"
    )
    done = stoker("data", "index", "hub", "--where", f"{quoted} is not null", code=0)
    assert done.out.startswith("hub: 2 samples, 1 shard, ")
    assert "  2 of 3 rows selected" in done.out
    stoker("data", "verify", "hub", "--full", code=0)
    assert (
        "2 of 3 rows selected"
        in stoker("data", "convert", "hub", "out", *TAR, "--columns", column, "--where", f"{quoted} is not null").out
        + stoker("data", "pack", "hub", "out2", "--where", f"{quoted} is not null").out
    )


def test_images_that_are_missing_are_excluded_by_the_condition(stoker, tmp_path):
    rows = [{"bytes": packing.jpeg(1), "path": None}, {"bytes": None, "path": None}, None]
    rows.append({"bytes": packing.jpeg(2), "path": None})
    table = pyarrow.table({"image": pyarrow.array(rows, PICTURE), "label": [0, 1, 2, 3]})
    write(tmp_path / "hub/train.parquet", table)
    assert "row 1: has no file" in stoker("data", "index", "hub", code=2).err
    stoker("data", "index", "hub", "--where", "image.bytes is not null", code=0)
    assert splits(stoker, "hub") == {"train": 2}


def test_one_table_of_texts_is_converted(stoker, tmp_path):
    write(tmp_path / "wiki.parquet", {"text": ["hello", "world"], "path": ["a", "b"]})
    stoker("data", "convert", "wiki.parquet", "out", *TAR, code=0)
    assert sorted(data for name, data in files(tmp_path / "out").items() if name.endswith(".text")) == [
        b"hello",
        b"world",
    ]
    write(tmp_path / "plain.parquet", {"text": ["hello"]})
    err = stoker("data", "pack", "plain.parquet", "packed", code=2).err
    cure = "stoker data convert plain.parquet OUT --format tar"
    assert err == f"plain.parquet: no column 'path' (available: text)\n  try: {cure}, if its rows are samples\n"
    stoker(*cure.split()[1:], code=0)


def test_names_with_dots_in_a_tar_are_reported(stoker, tmp_path):
    names = ["22.00.png", "22.01.png", "22.02.png", "23.00.png", "25.png", "25.1.png"]
    folder = tmp_path / "tars"
    folder.mkdir()
    with tarfile.open(folder / "train-000000.tar", "w") as archive:
        for i, name in enumerate(names):
            file = tmp_path / "one.png"
            file.write_bytes(packing.jpeg(i, kind="PNG"))
            archive.add(file, name)
    note = (
        "  names with dots: 3 images in 1 sample, such as '22.00.png' and '22.01.png' in '22': a key ends at the first dot "
        "(`stoker data pack ARCHIVE.tar OUT` makes a sample of each)\n"
    )
    assert note in stoker("data", "convert", "tars", "out", *TAR, code=0).out
    assert note in stoker("data", "lint", "tars").out
    assert note in stoker("data", "index", "tars", code=0).out
    assert note in stoker("data", "lint", "tars").out
    stoker("data", "pack", "tars/train-000000.tar", "packed", code=0)
    assert splits(stoker, "packed")["all"] == 5


def test_components_with_names_are_no_note(stoker, tmp_path):
    files = [(f"{i}.{name}.png", packing.jpeg(i, kind="PNG")) for i in range(2) for name in ("depth", "rgb", "seg.1")]
    packing.indexed_files(stoker, tmp_path, files)
    assert "names with dots" not in stoker("data", "lint", "shards").out


def test_members_without_a_sample_are_counted_by_reason(stoker, tmp_path):
    folder = tmp_path / "tars"
    folder.mkdir()
    with tarfile.open(folder / "train-000000.tar", "w") as archive:
        file = tmp_path / "file"
        file.write_bytes(packing.jpeg(1))
        for name in ("1.jpg", "README", "LICENSE", ".hidden.jpg", "__meta__/x.jpg"):
            archive.add(file, name)
        link = tarfile.TarInfo("2.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "1.jpg"
        archive.addfile(link)
    lines = [
        "  skipped: 1 member (hidden name)",
        "  skipped: 1 member (link or device)",
        "  skipped: 1 member (name __...__)",
        "  skipped: 2 members (no extension)",
    ]
    for command in (["convert", "tars", "out", *TAR], ["index", "tars"]):
        done = stoker("data", *command, code=0)
        assert [line for line in done.out.splitlines() if "member" in line] == lines


def test_texts_as_cls_members_are_reported(stoker, tmp_path):
    folder = tmp_path / "tars"
    folder.mkdir()
    with tarfile.open(folder / "train-000000.tar", "w") as archive:
        for i in range(2):
            for name, data in ((f"{i}.jpg", packing.jpeg(i)), (f"{i}.cls", b"cat")):
                (tmp_path / "file").write_bytes(data)
                archive.add(tmp_path / "file", name)
    assert "  no labels: the cls members of 2 samples are not natural numbers\n" in stoker("data", "index", "tars").out


def test_texts_as_json_labels_and_repeated_keys_are_reported(stoker, tmp_path):
    labels = [b'{"label": "cat"}', b'{"label": 1.5}', b'{"label": 3}', b'{"id": 7}']
    files = [(f"{i}.jpg", packing.jpeg(i)) for i in range(4)] + [(f"{i}.json", label) for i, label in enumerate(labels)]
    packing.indexed_files(stoker, tmp_path, files)
    for name in ("index.bin", "manifest.json"):
        (tmp_path / "shards" / name).unlink()
    first, *others = stoker("data", "index", "shards", code=0).out.splitlines()[2:]
    assert first.startswith("  repeated keys: 4 samples with the key of an earlier sample, such as '")
    assert first.endswith("' (the files of one sample must be adjacent in a tar)")
    assert others == [
        "  skipped: the label in 2 json members, which is not an integer",
        "  unlabelled: 7 of 8 samples (label -1)",
    ]
