"""stoker data index over TFRecord shards that other tools have written."""

import json
import zlib

import pytest
from packing import jpeg
from records import imagenet, record, write_records


def test_imagenet_as_tensorflow_writes_it_becomes_a_dataset(stoker, python):
    shards = {f"train-0000{i}-of-00002": [imagenet(10 * i + k) for k in range(10)] for i in range(2)}
    write_records(stoker.folder / "tf", shards | {"validation-00000-of-00001": [imagenet(99)]})
    before = {path.name: path.read_bytes() for path in (stoker.folder / "tf").iterdir()}
    done = stoker("data", "index", "tf", code=0)
    assert done.out.startswith("tf: 21 samples, 3 shards, ") and "wrote index.bin, manifest.json" in done.out
    for name, content in before.items():
        assert (stoker.folder / "tf" / name).read_bytes() == content
    info = json.loads(stoker("data", "info", "tf", "--json", code=0).out)
    assert info["format"] == "tfrecord"
    assert {split["name"]: split["samples"] for split in info["splits"]} == {"train": 20, "validation": 1}
    stoker("data", "verify", "tf", "--full", code=0)
    code = """
import json, sys, stoker
loader = stoker.Loader(sys.argv[1], batch_size=5, shuffle=False, split="train", transform=[("CenterCrop", {"size": 8})],
                       fields=["label", "key", "synset"], columns={"synset": ("image.class.synset", "", str)},
                       tensors="dlpack")
print(json.dumps([[list(memoryview(b["label"])), b["key"], b["synset"]] for b in loader]))
"""
    batches = json.loads(python(code, "tf"))
    assert [label for batch in batches for label in batch[0]] == [number % 3 + 1 for number in range(20)]
    assert [key for batch in batches for key in batch[1]] == [f"n0000000{number % 3}_{number}" for number in range(20)]
    assert batches[0][2][4] == "n00000001"


def test_loader_returns_the_original_image_bytes(stoker, python):
    images = [jpeg(number, kind="PNG" if number % 2 else "JPEG") for number in range(8)]
    write_records(
        stoker.folder / "tf", {"all.tfrecord": [{"image": image, "label": i} for i, image in enumerate(images)]}
    )
    stoker("data", "index", "tf", code=0)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=8, shuffle=False, transform=None, tensors="dlpack"):
    print(bytes(memoryview(batch["data"])).hex(), list(memoryview(batch["label"])), batch["key"][3])
"""
    result = python(code, "tf").split(" ", 1)
    assert bytes.fromhex(result[0]) == b"".join(images)
    assert result[1] == "[0, 1, 2, 3, 4, 5, 6, 7] all.tfrecord/00000003\n"


def test_two_images_in_a_record_keep_their_names(stoker):
    example = {
        "Left/Image": jpeg(1),
        "right": jpeg(2, kind="PNG"),
        "png": b"no image",
        "depth_label": 5,
        "key": "a/b.c",
    }
    write_records(stoker.folder / "tf", {"all-00000-of-00001": [example]})
    stoker("data", "index", "tf", code=0)
    manifest = json.loads((stoker.folder / "tf/manifest.json").read_text())
    names = [component["name"] for component in manifest["schema"]["components"]]
    assert names == ["key", "left.image.jpg", "png.bin", "right.png"]
    assert json.loads(stoker("data", "info", "tf", "--json", code=0).out)["has_labels"] is True


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x1f\x8b" + bytes(20), "is compressed (gzip): its samples cannot be read individually"),
        (record({"label": 3}), "byte 0: a record without bytes"),
        (record({"image": b"x"})[:-1], "byte 0: a record reaches beyond the end"),
        *(
            (
                zlib.compress(record({"image": b"x" * 99}), level),
                "looks compressed with ZLIB, which is not supported (gzip and zstd are)",
            )
            for level in (1, 6, 9)
        ),
        (record({"a/jpg": b"x", "a.jpg": b"y"}), "sample 'x.tfrecord/00000000' has two files 'a.jpg.bin'"),
    ],
)
def test_unindexable_files_are_refused_by_name(stoker, content, message):
    (stoker.folder / "tf").mkdir()
    (stoker.folder / "tf/x.tfrecord").write_bytes(content)
    done = stoker("data", "index", "tf")
    assert done.code in (1, 2) and done.err.splitlines()[0] == f"tf/x.tfrecord: {message}"
    assert not (stoker.folder / "tf/manifest.json").exists()


@pytest.mark.parametrize("place", ["in a name", "in a file", "in the CRC"])
def test_record_with_wrong_crc_is_reported(stoker, place):
    """Otherwise the index would have the CRC of the damaged bytes."""
    records = [record({"image": jpeg(number), "label": number}) for number in range(3)]
    second = bytearray(records[1])
    at = {"in a name": second.index(b"image"), "in a file": len(second) // 2, "in the CRC": len(second) - 1}[place]
    second[at] ^= 1
    (stoker.folder / "tf").mkdir()
    (stoker.folder / "tf/x.tfrecord").write_bytes(records[0] + second + records[2])
    done = stoker("data", "index", "tf", code=1)
    message = f"tf/x.tfrecord: byte {len(records[0])}: the record's CRC is wrong (sample 'x.tfrecord/00000001')\n"
    assert done.err == message
    assert not (stoker.folder / "tf/manifest.json").exists()


def test_tar_and_tfrecord_in_one_folder_are_refused(stoker):
    write_records(stoker.folder / "in", {"a.tar": [], "b.tfrecord": [imagenet(1)]})
    assert (
        stoker("data", "index", "in", code=2).err
        == "in: a dataset has shards of one format: a.tar is tar, b.tfrecord is tfrecord\n"
    )
