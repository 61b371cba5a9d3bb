"""Datasets in Parquet: what pyarrow reads of ours, and what we read of pyarrow's."""

import json
from pathlib import Path

import packing
import pyarrow
import pyarrow.parquet
import pytest
from packing import jpeg

PACKED = ("--format", "parquet")


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return packing.make_animals(tmp_path / "animals")


def rows(dataset: Path) -> list[dict]:
    found = []
    for shard in sorted(dataset.glob("*.parquet")):
        with pyarrow.parquet.ParquetFile(shard, page_checksum_verification=True) as file:
            found += file.read().to_pylist()
    return found


def test_pyarrow_reads_the_files_their_keys_and_labels(stoker, animals):
    stoker("data", "pack", animals, "packed", *PACKED, "--shards", "3", code=0)
    found = {row["__key__"]: row for row in rows(stoker.folder / "packed")}
    assert len(found) == 20
    for label, name in enumerate(("cat", "dog")):
        for path in (animals / name).glob("*.jpg"):
            row = found[f"{name}/{path.stem}"]
            assert (row["jpg"], row["cls"]) == (path.read_bytes(), label)
            for extension in ("json", "mask.png", "txt"):
                beside = path.with_suffix("." + extension)
                assert row[extension] == (beside.read_bytes() if beside.exists() else None)


def test_all_shards_have_the_same_columns(stoker, animals):
    stoker("data", "pack", animals, "packed", *PACKED, "--shards", "5", code=0)
    schemas = [pyarrow.parquet.read_schema(shard) for shard in (stoker.folder / "packed").glob("*.parquet")]
    assert len(schemas) == 5 and all(schema.equals(schemas[0]) for schema in schemas)
    assert schemas[0].names == ["__key__", "jpg", "json", "mask.png", "txt", "cls"]
    assert schemas[0].field("__key__").type == pyarrow.string() and not schemas[0].field("__key__").nullable
    assert schemas[0].field("jpg").type == pyarrow.binary() and schemas[0].field("cls").type == pyarrow.int64()


def test_it_equals_the_tar_dataset(stoker, animals):
    for kind in ("tar", "parquet"):
        stoker("data", "pack", animals, kind, "--format", kind, "-j", "3", code=0)
    stoker("data", "verify", "parquet", "--full", code=0)
    assert "  20 the same" in stoker("data", "diff", "tar", "parquet", code=1).out
    assert json.loads(stoker("data", "info", "parquet", "--json", code=0).out)["format"] == "parquet"
    stoker("data", "sample", "parquet", code=0)
    stoker("data", "lint", "parquet", code=0)


def test_large_files_are_values_too(stoker, tmp_path):
    (tmp_path / "large").mkdir()
    content = {f"{i}.bin": bytes([i]) * (70 << 20 if i == 1 else 300_000 * i) for i in range(3)}
    for name, data in content.items():
        (tmp_path / "large" / name).write_bytes(data)
    stoker("data", "pack", "large", "packed", *PACKED, "--layout", "files", "--shards", "1", code=0)
    stoker("data", "verify", "packed", "--full", code=0)
    assert {row["__key__"] + ".bin": row["bin"] for row in rows(stoker.folder / "packed")} == content


def test_label_members_are_rejected(stoker, animals):
    (animals / "cat/0001.json").unlink()
    refused = stoker("data", "pack", "animals", "other", *PACKED, "--labels", "json", code=2)
    assert (
        refused.err == "animals: rows store labels as the number 'cls', not as JSON (--labels json, --format parquet)\n"
    )


def foreign(folder: Path, **options) -> Path:
    """A table as others have it: the Hub's images, a label, and what no sample has."""
    folder.mkdir()
    images = [{"bytes": jpeg(i, kind="PNG" if i == 3 else "JPEG"), "path": f"photo-{i}.jpeg"} for i in range(20)]
    table = pyarrow.table(
        {
            "image": pyarrow.array(images, pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])),
            "label": [i % 3 for i in range(20)],
            "width": [16] * 20,
            "score": [0.5] * 20,
            "boxes": [[1, 2]] * 20,
        }
    )
    pyarrow.parquet.write_table(table, folder / "train-00000-of-00001.parquet", row_group_size=8, **options)
    return folder


def test_plain_files_from_other_tools_are_indexed_in_place(stoker, python, tmp_path):
    foreign(tmp_path / "hub", compression="none", use_dictionary=False)
    before = (tmp_path / "hub/train-00000-of-00001.parquet").read_bytes()
    done = stoker("data", "index", "hub", code=0)
    assert done.out.startswith("hub: 20 samples, 1 shard, ")
    assert (tmp_path / "hub/train-00000-of-00001.parquet").read_bytes() == before
    stoker("data", "verify", "hub", "--full", code=0)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=20, shuffle=False, transform=None, tensors="dlpack"):
    print(bytes(memoryview(batch["data"])).hex(), list(memoryview(batch["label"])), batch["key"][4])
"""
    output = python(code, "hub").split(" ", 1)
    assert bytes.fromhex(output[0]) == b"".join(jpeg(i, kind="PNG" if i == 3 else "JPEG") for i in range(20))
    assert output[1] == f"{[i % 3 for i in range(20)]} photo-4\n"


def test_null_labels_do_not_affect_other_rows(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    labels = [None if i == 7 else i % 3 for i in range(20)]
    table = pyarrow.table({"jpg": [jpeg(i) for i in range(20)], "label": labels, "score": [0.5] * 20})
    pyarrow.parquet.write_table(table, tmp_path / "hub/train.parquet", compression="none", use_dictionary=False)
    stoker("data", "convert", "hub", "copy", *PACKED, code=0)
    assert stoker("data", "index", "hub", code=0).out.splitlines()[2:] == [
        "  skipped: score (20 samples)",
        "  unlabelled: 1 of 20 samples (label -1)",
    ]
    found = json.loads(stoker("data", "diff", "copy", "hub", "--json").out)
    assert (found["same"], found["samples"], found["schema"]) == (20, [], [])


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "snappy", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "none", "use_dictionary": ["image.bytes"]},
        {"compression": "brotli", "use_dictionary": False},
        {"compression": "none", "use_dictionary": False, "column_encoding": {"image.bytes": "DELTA_BYTE_ARRAY"}},
    ],
)
def test_compressed_ones_are_converted(stoker, tmp_path, options):
    foreign(tmp_path / "hub", **options)
    done = stoker("data", "convert", "hub", "out", *PACKED, code=0)
    for name in ("boxes", "score", "width"):
        assert f"  skipped: {name} (20 samples)\n" in done.out
    found = {row["__key__"]: row for row in rows(stoker.folder / "out")}
    assert [found[f"photo-{i}"]["cls"] for i in range(20)] == [i % 3 for i in range(20)]
    assert [found[f"photo-{i}"]["png" if i == 3 else "jpg"] for i in range(20)] == [
        jpeg(i, kind="PNG" if i == 3 else "JPEG") for i in range(20)
    ]


def test_length_prefixed_values_are_read_in_place_and_delta_strings_are_not(stoker, tmp_path):
    encoding = {"image.bytes": "DELTA_LENGTH_BYTE_ARRAY", "label": "DELTA_BINARY_PACKED", "score": "BYTE_STREAM_SPLIT"}
    foreign(tmp_path / "hub", compression="none", use_dictionary=False, column_encoding=encoding)
    assert stoker("data", "index", "hub", code=0).out.startswith("hub: 20 samples, 1 shard, ")
    stoker("data", "verify", "hub", "--full", code=0)
    foreign(tmp_path / "joined", use_dictionary=False, column_encoding={"image.path": "DELTA_BYTE_ARRAY"})
    refused = stoker("data", "index", "joined", code=2)
    assert refused.err == (
        "joined/train-00000-of-00001.parquet: column 'image.path': has values with shared prefixes, so that "
        "single values cannot be read\n"
        "  try: stoker data convert SOURCE OUT --format parquet\n"
    )


def test_one_file_of_samples_is_packed_and_one_of_paths_is_a_list(stoker, animals, tmp_path):
    file = foreign(tmp_path / "hub") / "train-00000-of-00001.parquet"
    assert json.loads(stoker("data", "pack", file, "out", "--json", code=0).out)["samples"] == 20
    paths = sorted(str(path.relative_to(animals)) for path in animals.rglob("*.jpg"))
    pyarrow.parquet.write_table(pyarrow.table({"image": paths}), animals / "list.parquet")
    assert json.loads(stoker("data", "pack", "animals/list.parquet", "listed", "--json", code=0).out)["samples"] == 20


@pytest.mark.parametrize("length", [0, 11, 500, -1])
def test_a_truncated_file_is_rejected(stoker, tmp_path, length):
    file = foreign(tmp_path / "hub") / "train-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:length])
    done = stoker("data", "convert", "hub", "out", *PACKED, code=1)
    assert done.err == "hub/train-00000-of-00001.parquet: is not a Parquet file, or is truncated\n"
    assert not (tmp_path / "out").exists()
