"""stoker data pack of shards: datasets, and TFRecord and tar files of other tools."""

import json
import os
import random
import re
import tarfile
import time
from pathlib import Path

import pytest
from packing import indexed_files, jpeg, make_images, members, tree
from records import imagenet, record, write_records


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """images/train and images/val with two classes each; some images have a second file."""
    for split in ("train", "val"):
        make_images(tmp_path / "images" / split, {"cat": 40, "dog": 30})
    (tmp_path / "images/train/cat/0003.json").write_text('{"a": 1}')
    return tmp_path / "images"


@pytest.mark.parametrize("kind", ["tar", "tfrecord"])
def test_repacked_dataset_equals_packing_the_files(stoker, images, tmp_path, kind):
    stoker("data", "pack", images, "first", "--shards", "5", "--format", kind, code=0)
    for order in ("shuffle", "stratified"):
        options = ("--shards", "2", "--order", order, "--seed", "7")
        stoker("data", "pack", images, f"whole-{order}", *options, code=0)
        expected = tree(tmp_path / f"whole-{order}")
        for threads in ("1", "2"):
            out = f"{order}-{threads}"
            done = stoker("data", "pack", "first", out, *options, "-j", threads, code=0)
            assert "packing first: 141 files in 2 classes, " in done.out
            assert tree(tmp_path / out) == expected
        for part in ("2/2", "1/2"):
            stoker("data", "pack", "first", f"{order}-parts", *options, "--part", part, code=0)
        stoker("data", "merge", f"{order}-parts", code=0)
        assert tree(tmp_path / f"{order}-parts") == expected


def test_source_order_is_the_order_of_the_dataset(stoker, images):
    stoker("data", "pack", images, "first", "--shards", "3", code=0)
    stoker("data", "pack", "first", "again", "--shards", "1", "--order", "source", code=0)
    for split in ("train", "val"):
        assert list(members(stoker.folder / "again", f"{split}-*")) == list(
            members(stoker.folder / "first", f"{split}-*")
        )


def test_unnamed_labels_and_all_files_are_kept(stoker, tmp_path):
    (tmp_path / "list.csv").write_text("a/1.jpg,7\nb/2.jpg,2\n")
    for i, name in enumerate(("a/1.jpg", "b/2.jpg")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(jpeg(i))
    stoker("data", "pack", "list.csv", "numbers", code=0)
    stoker("data", "pack", "numbers", "again", "--labels", "cls", code=0)
    found = members(tmp_path / "again")
    assert (found["a/1.cls"], found["b/2.cls"]) == (b"7", b"2")
    texts = indexed_files(stoker, tmp_path, [("./x/1.txt", b"one"), ("./x/2.txt", b"two")])
    stoker("data", "pack", texts, "texts", code=0)
    assert members(tmp_path / "texts") == {"x/1.txt": b"one", "x/2.txt": b"two"}


@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_killed_at_any_moment_a_rerun_gives_the_same_bytes(stoker, example_dataset, tmp_path, kills):
    begin = time.monotonic()
    stoker("data", "pack", example_dataset, "whole", "--shards", "6", code=0)
    duration = time.monotonic() - begin
    expected = tree(tmp_path / "whole")
    chance = random.Random(kills)
    for number in range(kills):
        out = tmp_path / f"out{number}"
        process = stoker.start("data", "pack", example_dataset, out, "--shards", "6", "-j", "2")
        time.sleep(chance.uniform(0, duration))
        process.kill()
        process.communicate()
        # The plan is removed last: without it the dataset is complete, and its folder may remain.
        if not (out / "manifest.json").exists() or (out / ".packing/plan").exists():
            stoker("data", "pack", example_dataset, out, "--shards", "6", "-j", "2", code=0)
        assert tree(out) == expected


def test_damaged_dataset_is_refused(stoker, images, tmp_path):
    stoker("data", "pack", images / "val", "first", "--shards", "1", code=0)
    shard = tmp_path / "first/all-000000.tar"
    whole = shard.read_bytes()
    with tarfile.open(shard) as archive:
        member = archive.getmembers()[5]
    damaged = bytearray(whole)
    damaged[member.offset_data + member.size // 2] ^= 1
    shard.write_bytes(damaged)
    done = stoker("data", "pack", "first", "out", code=1)
    assert re.fullmatch(
        rf"first/all-000000.tar: '{member.name}': CRC-32C expected [0-9a-f]{{8}}, found [0-9a-f]{{8}}\n"
        r"  try: stoker data verify first --full\n",
        done.err,
    )
    assert not (tmp_path / "out").exists()
    shard.write_bytes(whole[:-512])
    assert (
        stoker("data", "pack", "first", "out", code=1).err
        == f"first/all-000000.tar: has {len(whole) - 512} bytes, the manifest has {len(whole)}\n"
    )
    shard.unlink()
    assert stoker("data", "pack", "first", "out", code=1).err.startswith("first/all-000000.tar: ")
    assert not (tmp_path / "out").exists()


def test_damage_in_a_large_file_is_found(stoker, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.bin").write_bytes(os.urandom(1 << 20) * 65)
    stoker("data", "pack", "in", "first", "--layout", "files", code=0)
    stoker("data", "pack", "first", "again", code=0)
    assert tree(tmp_path / "again") == tree(tmp_path / "first")
    with (tmp_path / "first/all-000000.tar").open("r+b") as shard:
        shard.seek(40 << 20)
        byte = shard.read(1)
        shard.seek(40 << 20)
        shard.write(bytes([byte[0] ^ 1]))
    assert "first/all-000000.tar: '1.bin': CRC-32C expected " in stoker("data", "pack", "first", "bad", code=1).err
    assert not (tmp_path / "bad").exists()


def test_unfinished_datasets_and_outputs_inside_are_refused(stoker, images, tmp_path):
    (tmp_path / "half/.packing").mkdir(parents=True)
    assert stoker("data", "pack", "half", "out", code=1).err.startswith(
        "half: is not finished: packing it was interrupted\n"
    )
    stoker("data", "pack", images, "first", code=0)
    assert stoker("data", "pack", "first", "first/out", code=2).err == ("first/out: is inside the source first\n")
    assert stoker("data", "pack", "first", "out", "--split", "a=50%,b=50%", code=2).err == (
        "first: has splits already: train, val (--split)\n"
    )


def test_tfrecords_of_other_tools_become_a_dataset(stoker, tmp_path):
    shards = {f"train-0000{i}-of-00002": [imagenet(10 * i + k) for k in range(10)] for i in range(2)}
    write_records(tmp_path / "tf", shards | {"validation-00000-of-00001": [imagenet(99)]})
    before = tree(tmp_path / "tf")
    done = stoker("data", "pack", "tf", "out", "--labels", "cls", "-j", "2", code=0)
    assert "out: 21 samples, " in done.out
    assert tree(tmp_path / "tf") == before
    found = members(tmp_path / "out")
    for number in [*range(20), 99]:
        key = f"n0000000{number % 3}_{number}"
        assert found[f"{key}.jpg"] == jpeg(number)
        assert found[f"{key}.cls"] == str(number % 3 + 1).encode()
        assert found[f"{key}.image.class.synset"] == f"n0000000{number % 3}".encode()
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert {split["name"]: split["samples"] for split in info["splits"]} == {"train": 20, "validation": 1}
    stoker("data", "pack", "tf", "one", "--labels", "cls", "-j", "1", code=0)
    assert tree(tmp_path / "one") == tree(tmp_path / "out")


def test_one_file_of_records_and_keys_with_dots_are_packed(stoker, tmp_path):
    examples = [{"image": jpeg(1), "filename": "a/b.c.jpg"}, {"image": jpeg(2)}]
    write_records(tmp_path / "tf", {"some.tfrecord": examples})
    stoker("data", "pack", "tf/some.tfrecord", "out", code=0)
    assert {name: content for name, content in members(tmp_path / "out").items() if name.endswith("jpg")} == {
        "a/b_c.jpg": jpeg(1),
        "some.tfrecord/00000001.jpg": jpeg(2),
    }
    assert {path.name for path in (tmp_path / "out").glob("*.tar")} == {"some-000000.tar"}


def test_record_with_a_wrong_crc_is_reported(stoker, tmp_path):
    records = [record({"image": jpeg(i)}) for i in range(3)]
    damaged = bytearray(b"".join(records))
    damaged[len(records[0]) + len(records[1]) // 2] ^= 4
    (tmp_path / "x.tfrecord").write_bytes(damaged)
    done = stoker("data", "pack", "x.tfrecord", "out", code=1)
    begin = re.escape(f"x.tfrecord: byte {len(records[0])}: the record's CRC is wrong")
    assert re.fullmatch(rf"{begin} \(expected [0-9a-f]{{8}}, found [0-9a-f]{{8}}\)\n", done.err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([{"image": b"x", "key": "a"}] * 2, "sample 'a' appears twice"),
        ([{"image": b"x", "key": "../a"}], "sample '../a': the key cannot be packed"),
        ([{"image": b"x", "key": "__a__/b"}], "sample '__a__/b': the key cannot be packed"),
        (
            [{"image": b"x", "label": 1 << 31}],
            "sample 'x.tfrecord/00000000': label 2147483648 is too large (at most 2147483647)",
        ),
    ],
)
def test_records_that_cannot_be_samples_are_refused_by_name(stoker, tmp_path, examples, message):
    write_records(tmp_path / "tf", {"x.tfrecord": examples})
    assert stoker("data", "pack", "tf", "out", code=2).err == f"tf: x.tfrecord: {message}\n"
    assert not (tmp_path / "out").exists()


def test_a_folder_of_webdataset_shards_is_packed_sample_by_sample(stoker, photos, tmp_path):
    stoker("data", "pack", photos, "first", "--shards", "4", "--labels", "cls", code=0)
    (tmp_path / "shards").mkdir()
    for shard in sorted((tmp_path / "first").glob("*.tar")):
        shard.rename(tmp_path / "shards" / shard.name.replace("all", "train"))
    (tmp_path / "shards/README.md").write_text("hello")
    stoker("data", "pack", "shards", "again", "--shards", "2", "--labels", "cls", code=0)
    assert members(tmp_path / "again") == members(tmp_path / "shards")
    assert json.loads(stoker("data", "info", "again", "--json", code=0).out)["has_labels"] is True
    (tmp_path / "shards/x.tfrecord").write_bytes(record({"image": jpeg(1)}))
    assert stoker("data", "pack", "shards", "bad", code=2).err == (
        "shards: has shards of two formats: train-000000.tar and x.tfrecord\n"
    )
