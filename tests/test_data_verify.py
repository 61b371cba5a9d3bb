"""stoker data verify and info: damage is reported, non-datasets are refused."""

import hashlib
import json
import random
import re
import shutil
from pathlib import Path

import pytest
from packing import jpeg
from versions import version_of


@pytest.fixture
def dataset(example_dataset: Path, tmp_path: Path) -> Path:
    """A copy of the packed example that a test may damage."""
    return shutil.copytree(example_dataset, tmp_path / "data")


def flip(file: Path, offset: int) -> None:
    data = bytearray(file.read_bytes())
    data[offset] ^= 1
    file.write_bytes(data)


def test_untouched_dataset_is_intact(stoker, dataset):
    assert stoker("data", "verify", "data", code=0).out == (
        "data: 6 000 samples in {} shards, index and sizes verified (--full verifies every byte)\n".format(
            len(list(dataset.glob("*.tar")))
        )
    )
    assert stoker("data", "verify", "data", "--full", code=0).out.endswith("shards, every byte verified\n")


def test_flipped_bit_in_a_sample_is_reported(stoker, dataset):
    shard = dataset / "train-000000.tar"
    name = shard.read_bytes()[:100].rstrip(b"\0").decode()
    flip(shard, 512 + 100)
    assert stoker("data", "verify", "data", code=0).err == ""
    done = stoker("data", "verify", "data", "--full", code=1)
    lines = done.out.splitlines()
    assert lines[0].split() == ["SHARD", "SAMPLE", "EXPECTED", "FOUND"]
    assert re.fullmatch(rf"train-000000\.tar   {name}   CRC-32C [0-9a-f]{{8}}   [0-9a-f]{{8}}", lines[1])
    assert len(lines) == 2
    assert re.fullmatch(r"data: 1 damaged \(version [0-9a-f]{8}\)\n", done.err)


def test_flipped_bit_between_samples_is_reported_by_block(stoker, dataset):
    flip(dataset / "train-000000.tar", 140)
    done = stoker("data", "verify", "data", "--full", code=1)
    assert re.search(r"^train-000000\.tar   block 0   SHA-256 [0-9a-f]{12}   [0-9a-f]{12}$", done.out, re.MULTILINE)


@pytest.mark.parametrize("kind", ["sha256", "crc32c"])
@pytest.mark.parametrize("mebibytes", [3, 7, 9])
def test_every_block_has_its_own_hash_however_many_there_are(stoker, kind, mebibytes):
    folder = stoker.folder / "files"
    folder.mkdir()
    content = random.Random(mebibytes).randbytes(mebibytes << 20)
    (folder / "one.bin").write_bytes(content[: 5 << 20])
    (folder / "two.bin").write_bytes(content[5 << 20 :] or b"2")
    words = ["--layout", "files", "--shards", "1", "--format", "tar", "--hash", kind]
    stoker("data", "pack", "files", "packed", *words, code=0)
    shard = stoker.folder / "packed/all-000000.tar"
    manifest = json.loads((stoker.folder / "packed/manifest.json").read_text())
    blocks = manifest["splits"][0]["shards"][0]["blocks"]
    stored = shard.read_bytes()
    pieces = [stored[begin : begin + (4 << 20)] for begin in range(0, len(stored), 4 << 20)]
    assert len(blocks) == len(pieces)
    if kind == "sha256":
        assert blocks == [hashlib.sha256(piece).hexdigest() for piece in pieces]
    stoker("data", "verify", "packed", "--full", code=0)
    for number in range(len(pieces)):
        flip(shard, (number * (4 << 20)) + len(pieces[number]) // 2)
        damaged = stoker("data", "verify", "packed", "--full", code=1).out
        named = r"(one|two)\.bin" if number < len(pieces) - 1 else rf"((one|two)\.bin|block {number})"
        assert re.search(rf"^all-000000\.tar +{named} ", damaged, re.MULTILINE), damaged
        flip(shard, (number * (4 << 20)) + len(pieces[number]) // 2)


def test_crc_blocks_detect_damage_and_change_the_version(stoker, photos):
    stoker("data", "pack", "photos", "sha", code=0)
    stoker("data", "pack", "photos", "crc", "--hash", "crc32c", code=0)
    assert (stoker.folder / "sha/all-000000.tar").read_bytes() == (stoker.folder / "crc/all-000000.tar").read_bytes()
    manifests = [json.loads((stoker.folder / name / "manifest.json").read_text()) for name in ("sha", "crc")]
    assert manifests[0]["version"] != manifests[1]["version"]
    assert manifests[1]["incompatible_features"] == ["blocks-crc32c", "index-content"]
    block = manifests[1]["splits"][0]["shards"][0]["blocks"][0]
    assert len(block) == 64 and block[8:] == "0" * 56
    stoker("data", "verify", "crc", "--full", code=0)
    flip(stoker.folder / "crc/all-000000.tar", 10)
    done = stoker("data", "verify", "crc", "--full", code=1)
    assert f"block 0   CRC-32C {block[:8]}" in done.out


def test_missing_and_torn_shards_are_found_without_reading(stoker, dataset):
    whole = (dataset / "train-000000.tar").stat().st_size
    (dataset / "train-000000.tar").write_bytes(b"x" * 100)
    test = (dataset / "test-000000.tar").stat().st_size
    (dataset / "test-000000.tar").unlink()
    done = stoker("data", "verify", "data", "--json", code=1)
    value = json.loads(done.out)
    assert value["damages"] == 2
    assert value["compared"] == "index and sizes"
    assert value["damaged"] == [
        {"shard": "train-000000.tar", "sample": "-", "expected": f"{whole} bytes", "found": "100 bytes"},
        {"shard": "test-000000.tar", "sample": "-", "expected": f"{test} bytes", "found": "missing"},
    ]


def test_damaged_index_or_manifest_is_reported(stoker, dataset):
    index = (dataset / "index.bin").read_bytes()
    flip(dataset / "index.bin", len(index) // 2)
    done = stoker("data", "verify", "data", code=1)
    assert re.fullmatch(r"data/index\.bin: section \d+: section is damaged \(CRC-32C\)\n", done.err)
    (dataset / "index.bin").write_bytes(index[:-1])
    assert stoker("data", "verify", "data", code=1).err == (
        f"data/index.bin: has {len(index) - 1} bytes, its header lists {len(index)}\n"
    )
    (dataset / "index.bin").unlink()
    assert stoker("data", "verify", "data", code=1).err == "data/index.bin: no such file or directory\n"
    text = (dataset / "manifest.json").read_text()
    (dataset / "manifest.json").write_text(text[: len(text) // 2])
    assert stoker("data", "info", "data", code=1).err == "data/manifest.json: is not JSON\n"


@pytest.fixture
def relabelled(stoker) -> tuple[Path, Path]:
    """Two datasets with the same shards whose indexes swap two labels."""
    for name, labels in (("one", "cat dog"), ("two", "dog cat")):
        rows = (f"{i}.jpg,{label}\n" for i, label in enumerate(labels.split()))
        (stoker.folder / f"{name}.csv").write_text("path,label\n" + "".join(rows))
    for i in range(2):
        (stoker.folder / f"{i}.jpg").write_bytes(jpeg(i))
    for name in ("one", "two"):
        stoker("data", "pack", f"{name}.csv", name, code=0)
    one, two = stoker.folder / "one", stoker.folder / "two"
    assert (one / "all-000000.tar").read_bytes() == (two / "all-000000.tar").read_bytes()
    return one, two


def test_foreign_index_is_detected_without_reading_shards(stoker, relabelled):
    one, two = relabelled
    shutil.copy(two / "index.bin", one / "index.bin")
    expected, found = (
        json.loads((folder / "manifest.json").read_text())["index"]["sha256"][:12] for folder in relabelled
    )
    assert stoker("data", "verify", "one", code=1).err == (
        f"one/index.bin: does not match the manifest (SHA-256 expected {expected}, found {found})\n"
    )


@pytest.mark.parametrize("has_table", [True, False])
def test_every_reader_detects_a_foreign_index(stoker, relabelled, has_table):
    one, two = relabelled
    shutil.copy(two / "index.bin", one / "index.bin")
    if not has_table:  # a manifest from before index.table
        manifest = json.loads((one / "manifest.json").read_text())
        del manifest["index"]["table"]
        (one / "manifest.json").write_text(json.dumps(manifest))
    commands = "verify one|lint one|diff one two|diff two one|convert one out --format parquet|pack one out2|sample one"
    for command in commands.split("|"):
        done = stoker("data", *command.split(), code=1)
        assert "one/index.bin: does not match the manifest (SHA-256 expected " in done.err, command
    assert not (stoker.folder / "out").exists()
    shutil.copy(two / "manifest.json", one / "manifest.json")
    stoker("data", "verify", "one", "--full", code=0)


def test_changed_labels_are_detected(stoker, relabelled):
    one, two = relabelled
    manifest, other = (json.loads((folder / "manifest.json").read_text()) for folder in relabelled)
    shutil.copy(two / "index.bin", one / "index.bin")
    manifest["index"]["sha256"] = other["index"]["sha256"]  # which is no part of the version
    (one / "manifest.json").write_text(json.dumps(manifest))
    assert stoker("data", "verify", "one", code=1).err == (
        f"one/index.bin: does not match version {manifest['version'][:8]} (content expected "
        f"{manifest['index']['content'][:12]}, found {other['index']['content'][:12]})\n"
    )


def test_counts_of_classes_are_compared_with_the_index(stoker, relabelled):
    path = relabelled[0] / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["splits"][0]["class_samples"][1] = 99  # a statistic
    assert version_of(manifest) == manifest["version"]
    path.write_text(json.dumps(manifest))
    for depth in ([], ["--full"]):
        assert stoker("data", "verify", "one", *depth, code=1).err == (
            "one/manifest.json: split 'all' has 99 of class 'dog', the index has 1\n"
        )
    del manifest["schema"]["classes"][1]
    del manifest["splits"][0]["class_samples"][1]
    path.write_text(json.dumps(manifest | {"version": version_of(manifest)}))
    refused = stoker("data", "verify", "one", code=1).err
    assert re.fullmatch(r"one/index\.bin: sample [01] of all-000000\.tar has label 1 of 1 classes\n", refused)


def test_non_datasets_are_refused(stoker, tmp_path):
    assert stoker("data", "info", "none", code=1).err == "none: no such dataset\n"
    (tmp_path / "empty").mkdir()
    assert stoker("data", "info", "empty", code=1).err == (
        "empty: is not a dataset: it has no manifest.json\n  try: stoker data pack FOLDER empty\n"
    )


def test_info_shows_splits_classes_and_images(stoker, dataset):
    lines = stoker("data", "info", "data", code=0).out.splitlines()
    assert re.fullmatch(r"data: 6 000 samples, \d+ shards, [\d.]+ MB, version [0-9a-f]{64}", lines[0])
    assert lines[1].split() == ["SPLIT", "SAMPLES", "SHARDS", "SIZE"]
    assert lines[2].split()[:2] == ["train", "5"]
    assert lines[3].split()[:2] == ["test", "1"]
    assert lines[4:] == [
        "files    jpg in tar",
        "classes  10: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck",
        "images   6 000, 32x32",
    ]
