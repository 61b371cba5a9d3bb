"""MosaicML's shards (MDS) and LitData's chunks, written by these libraries (golden/make_streams.py), become datasets."""

import gzip
import hashlib
import io
import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy
import packing
import pytest
from PIL import Image

GOLDEN = Path(__file__).parent / "golden/streams"


def rows(shard: Path, names: list[str], sizes: list[int | None]) -> list[dict[str, bytes]]:
    """The values of an MDS shard, by an independent reader."""
    data = shard.read_bytes()
    (count,) = struct.unpack_from("<I", data)
    offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
    found = []
    for begin in offsets[:-1]:
        variable = [name for name, size in zip(names, sizes, strict=True) if size is None]
        lengths = dict(zip(variable, struct.unpack_from(f"<{len(variable)}I", data, begin), strict=True))
        at, row = begin + 4 * len(variable), {}
        for name, size in zip(names, sizes, strict=True):
            length = lengths.get(name, size)
            row[name] = data[at : at + length]
            at += length
        found.append(row)
    return found


def write_mds(folder: Path, values: list[bytes]) -> Path:
    """One shard with a column of bytes."""
    folder.mkdir()
    config = json.dumps({"column_encodings": ["bytes"], "column_names": ["x"], "column_sizes": [None]}).encode()
    body = [struct.pack("<I", len(value)) + value for value in values]
    offsets = [4 + 4 * (len(values) + 1) + len(config)]
    for sample in body:
        offsets.append(offsets[-1] + len(sample))
    head = struct.pack(f"<{len(values) + 2}I", len(values), *offsets)
    (folder / "shard.00000.mds").write_bytes(head + config + b"".join(body))
    return folder


def converted(stoker, source: Path, *options: str) -> dict[str, bytes]:
    stoker("data", "convert", source, "out", "--format", "tar", *options, code=0)
    return packing.members(stoker.folder / "out")


def edited(stoker, name: str, edit) -> Path:
    """A copy of a folder whose index was edited."""
    folder = stoker.folder / name
    shutil.copytree(GOLDEN / name, folder)
    index = json.loads((folder / "index.json").read_text())
    edit(index)
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def test_images_and_classes_of_mds_keep_their_order(stoker):
    members = converted(stoker, GOLDEN / "mds", "--labels", "cls")
    values = [row for n in range(3) for row in rows(GOLDEN / f"mds/shard.0000{n}.mds", ["class", "image"], [8, None])]
    assert [value for name, value in members.items() if name.endswith(".jpg")] == [row["image"] for row in values]
    labels = [int(value) for name, value in members.items() if name.endswith(".cls")]
    assert labels == [struct.unpack("<q", row["class"])[0] for row in values] == [0, 1, 2, 0, 1, 2, 0]
    assert next(iter(members)) == "shard.00000/00000000.jpg"


def test_packed_shards_yield_the_same_dataset(stoker):
    plain = converted(stoker, GOLDEN / "mds")
    shutil.move(stoker.folder / "out", stoker.folder / "plain")
    assert converted(stoker, GOLDEN / "mds-zstd") == plain
    assert packing.tree(stoker.folder / "out") == packing.tree(stoker.folder / "plain")
    shutil.rmtree(stoker.folder / "out")
    done = stoker("data", "pack", GOLDEN / "mds-gz", "out", "--order", "source", code=0)
    assert "  skipped: hashes (xxh3_64), which are not supported (7 samples)\n" in done.out
    assert list(packing.members(stoker.folder / "out").values()) == list(plain.values())


def test_every_encoding_of_mds_becomes_a_file_a_label_or_a_number(stoker):
    members = converted(stoker, GOLDEN / "mds-everything", "--labels", "cls")
    (golden,) = {tuple(sorted(n.split(".", 1)[1] for n in members if n.startswith(f"photos/{i}."))) for i in (0, 1, 2)}
    assert golden == tuple(sorted([
        "any.npy", "cls", "frames.0.png", "frames.1.png", "grey.png", "id", "json", "numbers.json", "pixels.png", "raw",
        "shaped.npy", "shots.0.jpg", "shots.1.jpg", "typed.npy",
    ]))  # fmt: skip
    one = {name.split(".", 1)[1]: value for name, value in members.items() if name.startswith("photos/1.")}
    assert one["id"] == b"photos/1.jpg" and one["raw"] == b"\1" and one["cls"] == b"1"
    assert json.loads(one["json"]) == {"n": 1}
    assert json.loads(one["numbers.json"]) == {
        "big": 2**64 - 2, "exact": 10**20 + 1, "half": float(numpy.float16(0.1)), "price": 1.5, "small": -1, "weight": 0.25,
    }  # fmt: skip
    assert b'"exact":100000000000000000001,' in one["numbers.json"] and b'"price":1.50,' in one["numbers.json"]
    for name, expected in (
        ("any", numpy.arange(6, dtype=numpy.uint16).reshape(3, 2) + 1),
        ("typed", numpy.full((2, 300), 1, numpy.float32)),
        ("shaped", numpy.full((2, 3), -1, numpy.int16)),
    ):
        found = numpy.load(io.BytesIO(one[f"{name}.npy"]))
        assert found.dtype == expected.dtype and numpy.array_equal(found, expected)
    for name, mode in (("pixels", "RGB"), ("grey", "L")):
        image = Image.open(io.BytesIO(one[f"{name}.png"]))
        assert image.size == (6, 4) and image.mode == mode
        assert image.tobytes() == bytes((37 + j * 11) % 256 for j in range(24 * len(mode)))
    assert [one[f"shots.{j}.jpg"] for j in (0, 1)] == [b"\xff\xd8\xff\1\0", b"\xff\xd8\xff\1\1"]
    assert Image.open(io.BytesIO(one["frames.1.png"])).getpixel((0, 0)) == (74, 85, 96)


def test_folders_with_an_index_are_splits(stoker):
    done = stoker("data", "convert", GOLDEN / "mds-splits", "out", "--format", "parquet", "--json", code=0)
    splits = json.loads(done.out)["splits"]
    assert [(split["name"], split["samples"]) for split in splits] == [("train", 5), ("val", 2)]


def test_pairs_of_litdata_are_images_with_labels(stoker):
    members = converted(stoker, GOLDEN / "litdata", "--labels", "cls")
    assert [value for name, value in members.items() if name.endswith(".cls")] == [
        b"0",
        b"1",
        b"2",
        b"0",
        b"1",
        b"2",
        b"0",
    ]
    images = [Image.open(io.BytesIO(value)) for name, value in members.items() if name.endswith(".png")]
    assert [image.tobytes() for image in images] == [
        bytes((i * 37 + j * 11) % 256 for j in range(72)) for i in range(7)
    ]
    assert next(iter(members)) == "chunk-0-0/00000000.png"


def test_litdata_in_every_packing_is_the_same_dataset(stoker):
    members = converted(stoker, GOLDEN / "litdata-arrays", "--labels", "cls")
    trees = [packing.tree(stoker.folder / "out")]
    for packed in ("chunk", "batch", "sample"):
        shutil.rmtree(stoker.folder / "out")
        converted(stoker, GOLDEN / f"litdata-{packed}", "--labels", "cls")
        trees.append(packing.tree(stoker.folder / "out"))
    assert trees[1:] == trees[:1] * 3
    last = {name.split(".", 1)[1]: value for name, value in members.items() if name.startswith("chunk-0-1/00000001.")}
    assert sorted(last) == ["cls", "json", "name", "tokens.npy", "x.npy", "y.npy"]
    assert (
        last["name"] == b"sample-5"
        and json.loads(last["json"]) == {"score": 0.625, "good": False}
        and last["cls"] == b"5"
    )
    assert numpy.array_equal(
        numpy.load(io.BytesIO(last["x.npy"])), numpy.arange(6, dtype=numpy.float32).reshape(2, 3) * 5
    )
    assert numpy.load(io.BytesIO(last["y.npy"])).tolist() == [[5, 5], [5, 5]]
    assert numpy.load(io.BytesIO(last["tokens.npy"])).tolist() == [0, 1, 2, 3, 4, 5]


def test_tokens_and_nested_values_of_litdata(stoker):
    tokens = converted(stoker, GOLDEN / "litdata-tokens")
    arrays = [numpy.load(io.BytesIO(value)) for value in tokens.values()]
    assert [array.tolist() for array in arrays] == [[*range(i, i + 10)] for i in range(4)]
    assert arrays[0].dtype == numpy.int64
    shutil.rmtree(stoker.folder / "out")
    nested = converted(stoker, GOLDEN / "litdata-nested")
    last = {name.split(".", 1)[1]: value for name, value in nested.items() if name.startswith("chunk-0-0/00000002.")}
    assert json.loads(last["boxes.xs.json"]) == [2, 2] and json.loads(last["boxes.names.json"]) == ["a", "b"]
    assert json.loads(last["boxes.rows.json"]) == [{"k": 2, "v": 0.5, "w": None}]


@pytest.mark.parametrize("packing", ["", "-zstd"])
def test_rows_of_litdatas_tables_are_samples(stoker, packing):
    found = converted(stoker, GOLDEN / f"litdata-table{packing}", "--labels", "cls")
    keys = [f"chunk-0-{i // 4}/{i % 4:08}" for i in range(6)]
    assert sorted({name.split(".")[0] for name in found}) == keys
    for i, key in enumerate(keys):
        assert found[f"{key}.image"] == bytes([i]) * i
        assert found[f"{key}.cls"] == str(i % 3).encode()
        assert found.get(f"{key}.caption") == (None if i == 3 else f"{i} caf\u00e9".encode())
        assert json.loads(found[f"{key}.json"]) == {
            "weight": i / 8,
            "rare": None if i % 2 else 2**40 * i,
            "good": i == 1,
        }
        assert json.loads(found[f"{key}.tokens.json"]) == list(range(i))
        boxes = [{"x": i, "name": "a"}, {"x": None, "name": "\u20ac"}][: i % 3]
        assert json.loads(found[f"{key}.boxes.json"]) == boxes


def test_damage_in_a_table_is_an_error_or_changes_a_value(stoker):
    """A damaged byte never writes beyond the samples, and never ends the command by a signal."""
    folder = shutil.copytree(GOLDEN / "litdata-table", stoker.folder / "table")
    chunk = folder / "chunk-0-1.bin"
    whole = chunk.read_bytes()
    for at in range(len(whole) - 1, 11, -37):
        chunk.write_bytes(whole[:at] + bytes([whole[at] ^ 0x81]) + whole[at + 1 :])
        done = stoker("data", "convert", folder, "out", "--format", "tar")
        assert done.code in (0, 1, 2), (at, done.err)
        assert done.code == 0 or (f"{folder.name}" in done.err and "chunk-0-1" in done.err), done.err
        shutil.rmtree(stoker.folder / "out", ignore_errors=True)
    chunk.write_bytes(whole[:-1])
    bad = stoker("data", "convert", folder, "out", "--format", "tar", code=1)
    assert "chunk-0-1.bin: has 2389 bytes, index.json declares 2390" in bad.err


def test_mds_is_indexed_and_read_in_place(stoker):
    folder = stoker.folder / "mds"
    shutil.copytree(GOLDEN / "mds", folder)
    done = stoker("data", "index", "mds", code=0)
    assert done.out.startswith("mds: 7 samples, 3 shards, ")
    stoker("data", "verify", "mds", "--full", code=0)
    assert "in mds\n" in stoker("data", "info", "mds", code=0).out
    from_index = converted(stoker, folder)
    shutil.rmtree(stoker.folder / "out")
    (folder / "index.bin").unlink()
    (folder / "manifest.json").unlink()
    assert converted(stoker, folder) == from_index
    (folder / "shard.00001.mds").write_bytes(b"\0" * 2256)
    bad = stoker("data", "index", "mds", code=1)
    assert bad.err.startswith("mds/shard.00001.mds: samples are in bytes 0 to 0 of 2256\n")


def test_the_loader_reads_mds_in_place(stoker, python):
    shutil.copytree(GOLDEN / "mds", stoker.folder / "mds")
    stoker("data", "index", "mds", code=0)
    code = """
import hashlib, stoker
for batch in stoker.Loader("mds", batch_size=4, transform=None, tensors="dlpack", shuffle=False):
    print(list(memoryview(batch["label"])), [key for key in batch["key"]], hashlib.md5(bytes(memoryview(batch["data"]))).hexdigest())
"""
    values = [row for n in range(3) for row in rows(GOLDEN / f"mds/shard.0000{n}.mds", ["class", "image"], [8, None])]
    result = python(code)
    for begin, labels in ((0, [0, 1, 2, 0]), (4, [1, 2, 0])):
        images = b"".join(row["image"] for row in values[begin : begin + 4])
        assert f"{labels} " in result and hashlib.md5(images).hexdigest() in result


def test_shards_without_random_access_are_not_indexed(stoker):
    for name in ("mds-zstd", "mds-everything", "litdata"):
        shutil.copytree(GOLDEN / name, stoker.folder / name)
    bad = stoker("data", "index", "mds-zstd", code=2)
    assert bad.err == (
        "mds-zstd/shard.00000.mds.zstd: is compressed (zstd): its samples cannot be read individually\n"
        "  try: stoker data convert mds-zstd OUT\n"
    )
    bad = stoker("data", "index", "mds-everything", code=2)
    assert bad.err == (
        "mds-everything/shard.00000.mds: column 'any' (ndarray) needs conversion: its samples cannot be read individually\n  try: stoker data convert mds-everything OUT\n"
    )
    bad = stoker("data", "index", "litdata", code=2)
    assert bad.err == ("litdata: chunks of LitData cannot be read in place\n  try: stoker data convert litdata OUT\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "mds-pickle",
            "index.json: column 'meta' is pickled ('pkl'): reading it would run arbitrary code\n"
            "  try: write it again with a different encoding: bytes, json or ndarray\n",
        ),
        (
            "litdata-pickle",
            "index.json: column 'meta' is pickled ('pickle'): reading it would run arbitrary code\n"
            "  try: write it again with a different encoding: bytes, json or ndarray\n",
        ),
        (
            "mds-brotli",
            "index.json: shards are compressed by 'br'; zstd and gz are supported\n  try: brotli -d *.br, in that folder\n",
        ),
    ],
)
def test_unsupported_datasets_are_refused_by_name(stoker, name, message):
    bad = stoker("data", "convert", GOLDEN / name, "out", "--format", "tar", code=2)
    assert bad.err == f"{GOLDEN / name}/{message}"
    assert not (stoker.folder / "out").exists()


def test_damage_is_named(stoker):
    def expect_error(folder: Path, text: str) -> None:
        bad = stoker("data", "convert", folder.name, "out", "--format", "tar")
        assert bad.code in (1, 2)
        assert bad.err.startswith(f"{folder.name}/{text}"), bad.err
        shutil.rmtree(folder)

    def copy(name: str) -> Path:
        return shutil.copytree(GOLDEN / name, stoker.folder / name)

    folder = copy("mds")
    shard = folder / "shard.00001.mds"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    expect_error(folder, "shard.00001.mds: sha1 expected ")
    folder = copy("mds")
    (folder / "shard.00002.mds").unlink()
    expect_error(folder, "shard.00002.mds: ")
    folder = copy("litdata-arrays")
    (folder / "chunk-0-1.bin").write_bytes((folder / "chunk-0-1.bin").read_bytes()[:-1])
    expect_error(folder, "chunk-0-1.bin: has 337 bytes, index.json declares 338")
    expect_error(edited(stoker, "litdata-arrays", lambda index: index["chunks"][0].update(chunk_size=5)),
         "chunk-0-0.bin: has 4 samples, index.json declares 5")  # fmt: skip
    expect_error(edited(stoker, "litdata", lambda index: index["chunks"][0].update(filename="../x")),
         "index.json: a chunk's filename is not a valid file name")  # fmt: skip
    expect_error(edited(stoker, "litdata", lambda index: index["config"].update(encryption={"algorithm": "fernet"})),
         "index.json: its chunks are encrypted\n  try: optimize it again without encryption")  # fmt: skip
    expect_error(edited(stoker, "mds", lambda index: index["shards"][1].update(column_names=["a", "image"])),
         "shard.00001.mds: its columns differ from index.json")  # fmt: skip
    folder = copy("litdata-batch")
    chunk = folder / "chunk-0-0.bin"
    data = bytearray(chunk.read_bytes())
    data[48] ^= 1  # the number of samples of a batch
    chunk.write_bytes(data)
    expect_error(folder, "chunk-0-0.bin: batch 0 does not fit the samples")


def test_a_sample_count_like_a_gzip_magic_is_not_gzip(stoker):
    count = 0x8B1F
    folder = write_mds(stoker.folder / "many", [f"{i}".encode() for i in range(count)])
    done = stoker("data", "index", folder, "--json", code=0)
    assert json.loads(done.out)["samples"] == count
    shutil.rmtree(folder)
    folder = write_mds(stoker.folder / "many", [f"{i}".encode() for i in range(count)])
    done = stoker("data", "convert", folder, "out", "--format", "tfrecord", "--json", code=0)
    assert json.loads(done.out)["samples"] == count


def test_more_shards_than_open_files(stoker):
    folder = stoker.folder / "many"
    folder.mkdir()
    shards = []
    for i in range(700):
        name = f"shard.{i:05}.mds"
        one = write_mds(stoker.folder / "one", [b"%d" % i])
        packed = gzip.compress((one / "shard.00000.mds").read_bytes())
        (folder / f"{name}.gz").write_bytes(packed)
        shutil.rmtree(one)
        shards.append({
            "version": 2, "format": "mds", "samples": 1, "compression": "gz", "column_names": ["x"], "column_encodings": ["bytes"],
            "column_sizes": [None], "raw_data": {"basename": name, "bytes": 0, "hashes": {}},
            "zip_data": {"basename": f"{name}.gz", "bytes": len(packed), "hashes": {}},
        })  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    limited = subprocess.run(
        ["bash", "-c", 'ulimit -Sn 256; exec "$0" "$@"', stoker.path, "data", "convert", "many", "out", "--format", "tfrecord", "--json"],
        cwd=stoker.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert limited.returncode == 0 and json.loads(limited.stdout)["samples"] == 700, limited.stderr


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        ('{"version": 2, "sha', "hub/index.json: is not a JSON object\n", 1),
        ("", "hub/index.json: is not a JSON object\n", 1),
        ("{}", "hub/index.json: has neither MDS shards nor LitData chunks\n", 2),
    ],
)
@pytest.mark.parametrize("kind", ["mds", "litdata"])
def test_a_damaged_index_is_reported(stoker, tmp_path, kind, text, message, code):
    shutil.copytree(GOLDEN / kind, tmp_path / "hub")
    (tmp_path / "hub/index.json").write_text(text)
    for command in (["index", "hub"], ["convert", "hub", "out", "--format", "tar"], ["pack", "hub", "out"]):
        assert stoker("data", *command, code=code).err == message


def test_shards_that_contradict_their_index_are_reported(stoker, tmp_path):
    write_mds(tmp_path / "hub", [b"a", b"b", b"c"])
    shard = tmp_path / "hub/shard.00000.mds"
    columns = {"column_names": ["x"], "column_encodings": ["bytes"], "column_sizes": [None]}
    raw = {"basename": shard.name, "bytes": shard.stat().st_size, "hashes": {}}
    entry = {"version": 2, "format": "mds", "compression": None, "hashes": [], "size_limit": 1 << 26, "samples": 2}
    entry |= columns | {"raw_data": raw, "zip_data": None}
    (tmp_path / "hub/index.json").write_text(json.dumps({"version": 2, "shards": [entry]}))
    message = "hub/shard.00000.mds: has 3 samples, index.json lists 2\n"
    assert stoker("data", "index", "hub", code=1).err == message
    (tmp_path / "hub/index.json").write_text(json.dumps({"version": 2, "shards": [entry | {"samples": 3}]}))
    shutil.copy(shard, tmp_path / "hub/shard.00001.mds")
    note = "  skipped: shard.00001.mds, which index.json does not list\n"
    assert note in stoker("data", "index", "hub", code=0).out
