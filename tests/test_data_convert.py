"""stoker data convert: samples keep their order in a different shard format."""

import gzip
import hashlib
import io
import json
import struct
import tarfile
from pathlib import Path

import packing
import pyarrow
import pytest
from crc import crc32c
from packing import jpeg
from records import imagenet, record, write_records

KINDS = ("tar", "tfrecord", "parquet")


@pytest.fixture
def dataset(stoker, tmp_path: Path) -> Path:
    folder = packing.make_images(tmp_path / "images", {"cat": 30, "dog": 20})
    (folder / "cat/0001.json").write_text('{"note": 1}')
    stoker("data", "pack", folder, "first", "--shards", "3", "--split", "train=80%,val=20%", code=0)
    return tmp_path / "first"


def test_round_trip_through_every_format_gives_the_same_bytes(stoker, dataset):
    before = dataset
    for step, kind in enumerate(("parquet", "tfrecord", "parquet", "tar")):
        out = stoker.folder / f"step-{step}"
        done = stoker("data", "convert", before, out, "--format", kind, "--shards", "3", code=0)
        assert "  verified: every byte\n" in done.out and "skipped" not in done.out
        before = out
    assert packing.tree(before) == packing.tree(dataset)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_keep_their_numbers_for_any_number_of_shards(stoker, python, dataset, kind):
    stoker("data", "convert", dataset, "out", "--format", kind, "--shards", "2", "-j", "2", code=0)
    code = """
import sys, stoker
for name in sys.argv[1:]:
    for split in ("train", "val"):
        loader = stoker.Loader(name, batch_size=7, seed=3, split=split, transform=None, tensors="dlpack")
        for batch in loader:
            print(list(memoryview(batch["label"])), batch["key"], hash(bytes(memoryview(batch["data"]))))
    print("--")
"""
    first, second, _ = python(code, dataset, "out", env={"PYTHONHASHSEED": "0"}).split("--\n")
    assert first == second and first.count("\n") > 6


def test_skipped_fields_are_listed_before_writing(stoker):
    write_records(stoker.folder / "tf", {"train-00000-of-00001": [imagenet(i) for i in range(12)]})
    done = stoker("data", "convert", "tf", "out", "--format", "parquet", "--dry-run", "--json", code=0)
    result = json.loads(done.out)
    assert result["skipped_fields"] == {
        "image/height": 12,
        "image/object/bbox/label": 12,
        "image/object/bbox/xmin": 12,
        "image/width": 12,
    }
    assert result["splits"] == [{"name": "train", "samples": 12, "shards": 1}]
    assert not (stoker.folder / "out").exists()
    done = stoker("data", "convert", "tf", "out", "--format", "parquet", code=0)
    assert "  skipped: image/object/bbox/xmin (12 samples)\n" in done.out


def test_broken_images_are_kept_unchanged(stoker):
    shards = packing.indexed_files(stoker, stoker.folder, [("a.jpg", jpeg(1)), ("b.jpg", b"torn"), ("c.jpg", jpeg(2))])
    stoker("data", "convert", shards, "out", "--format", "tar", code=0)
    assert packing.members(stoker.folder / "out")["b.jpg"] == b"torn"


def webdataset_tar(count: int) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for i in range(count):
            for name, content in ((f"{i:03}.jpg", jpeg(i)), (f"{i:03}.cls", str(i % 3).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("train-000000.tar.gz", gzip.compress),
        ("train-000000.tgz", gzip.compress),
        ("train-000000.tar.zst", lambda data: pyarrow.compress(data, "zstd", asbytes=True)),
    ],
)
def test_compressed_shards_are_read(stoker, name, pack):
    (stoker.folder / "in").mkdir()
    (stoker.folder / "in" / name).write_bytes(pack(webdataset_tar(10)))
    refused = stoker("data", "index", "in", code=2)
    assert "so that" in refused.err or "cannot be read individually" in refused.err
    done = stoker("data", "convert", "in", "out", "--format", "tar", "--labels", "cls", "--json", code=0)
    assert json.loads(done.out)["splits"][0]["name"] == "train"
    found = packing.members(stoker.folder / "out")
    assert [found[f"{i:03}.jpg"] for i in range(10)] == [jpeg(i) for i in range(10)]
    assert [found[f"{i:03}.cls"] for i in range(10)] == [str(i % 3).encode() for i in range(10)]


@pytest.mark.parametrize("name", ["x.tfrecord", "x.tfrecord.gz", "x-00000-of-00001"])
def test_compressed_records_are_read_for_any_file_name(stoker, name):
    (stoker.folder / "in").mkdir()
    records = b"".join(record({"image": jpeg(i), "label": i}) for i in range(5))
    (stoker.folder / "in" / name).write_bytes(gzip.compress(records))
    stoker("data", "convert", "in", "out", "--format", "tar", "--labels", "cls", code=0)
    found = packing.members(stoker.folder / "out")
    assert sorted(content for file, content in found.items() if file.endswith(".jpg")) == sorted(map(jpeg, range(5)))


def test_truncated_compressed_shard_is_reported_and_leaves_no_output(stoker):
    (stoker.folder / "in").mkdir()
    packed = gzip.compress(webdataset_tar(10))
    (stoker.folder / "in/a.tar.gz").write_bytes(packed[: len(packed) // 2])
    refused = stoker("data", "convert", "in", "out", "--format", "tar", code=1)
    assert refused.err == "in/a.tar.gz: ends inside gzip data\n"
    assert sorted(path.name for path in stoker.folder.iterdir()) == ["in"]


def test_compressed_archive_of_images_is_packed_directly(stoker, photos):
    with tarfile.open(stoker.folder / "photos.tar.gz", "w:gz") as archive:
        for path in sorted(photos.rglob("*.jpg")):
            archive.add(path, path.relative_to(photos))
    stoker("data", "pack", "photos.tar.gz", "packed", code=0)
    stoker("data", "pack", photos, "plain", code=0)
    assert packing.tree(stoker.folder / "packed") == packing.tree(stoker.folder / "plain")


def test_rerun_after_success_is_refused(stoker, dataset):
    stoker("data", "convert", dataset, "out", "--format", "tfrecord", code=0)
    before = packing.tree(stoker.folder / "out")
    refused = stoker("data", "convert", dataset, "out", "--format", "tfrecord", code=1)
    assert refused.err.startswith("out: is not empty")
    assert packing.tree(stoker.folder / "out") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("first", "out"), "data convert: --format is required (tar, tfrecord, parquet, hdf5, zarr)"),
        (
            ("first", "out", "--format", "parqet"),
            "data convert: --format: unknown value 'parqet'; did you mean 'parquet'?",
        ),
        (
            ("images", "out", "--format", "tar"),
            "images: neither a dataset nor shards (tar, TFRecord, Parquet, HDF5, Zarr)",
        ),
        (("first", "out", "--format", "tar", "--shards", "0"), "data convert: --shards: 0 is not between 1 and 999999"),
    ],
)
def test_unconvertible_sources_are_refused(stoker, dataset, arguments, message):
    assert stoker("data", "convert", *arguments, code=2).err.startswith(message)


def test_missing_source_is_reported(stoker):
    refused = stoker("data", "convert", "none", "out", "--format", "tar", code=1)
    assert refused.err == "none: no such dataset or shards\n"


def test_label_out_of_range_is_damage(stoker, tmp_path):
    packing.make_images(tmp_path / "images", {"cat": 3, "dog": 3})
    stoker("data", "pack", "images", "in", code=0)
    path = tmp_path / "in/index.bin"
    path.write_bytes(relabelled(path.read_bytes(), 10**9))
    for command in (["convert", "in", "out", "--format", "tfrecord"], ["pack", "in", "out"], ["verify", "in"]):
        done = stoker("data", *command)
        assert done.code == 1 and "in/index.bin: does not match the manifest (SHA-256 " in done.err
    manifest = json.loads((tmp_path / "in/manifest.json").read_text())
    manifest["index"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "in/manifest.json").write_text(json.dumps(manifest))
    for command in (["convert", "in", "out", "--format", "tfrecord"], ["pack", "in", "out"]):
        done = stoker("data", *command)
        assert done.code == 1 and "label 1000000000 of 2 classes" in done.err


def relabelled(index: bytes, label: int) -> bytes:
    """Changes the label of the first sample and its CRCs (docs/formats/index.md)."""
    data = bytearray(index)
    (sections,) = struct.unpack_from("<I", data, 20)
    begin, size = struct.unpack_from("<QQ", data, 64)
    (columns,) = struct.unpack_from("<H", data, begin + 6)
    for i in range(columns):
        tag, _, _, offset, _ = struct.unpack_from("<HHIQQ", data, begin + 72 + 24 * i)
        if tag == 4:
            struct.pack_into("<q", data, begin + offset, label)
    crc = crc32c(bytes(data[begin : begin + size - 8]))
    struct.pack_into("<I", data, begin + size - 8, crc)
    struct.pack_into("<I", data, 64 + 24, crc)
    struct.pack_into("<I", data, 64 + 64 * sections, crc32c(bytes(data[64 : 64 + 64 * sections])))
    return bytes(data)
