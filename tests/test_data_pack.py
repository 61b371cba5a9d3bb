"""stoker data pack: from a folder of files to shards that other tools can read."""

import hashlib
import json
import os
import pty
import random
import re
import subprocess
import tarfile

import pytest
from packing import jpeg, make_images, members, tree
from versions import content_of


def test_class_folders_become_labelled_samples(stoker, photos):
    done = stoker("data", "pack", "photos", "out", "--shards", "3", code=0)
    lines = done.out.splitlines()
    assert re.fullmatch(
        r"packing photos: 200 files in 2 classes, [\d.]+ kB → 3 shards of [\d.]+ kB \(set by --shards\)", lines[0]
    )
    assert re.fullmatch(r"out: 200 samples, 3 shards, [\d.]+ kB, version [0-9a-f]{8}", lines[1])
    assert len(lines) == 2
    assert done.err == ""
    found = members(stoker.folder / "out")
    for file in photos.rglob("*.jpg"):
        key = f"{file.parent.name}/{file.stem}"
        assert found.pop(f"{key}.jpg") == file.read_bytes()
    assert found == {}
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert (info["has_labels"], info["classes"]) == (True, ["cat", "dog"])


def test_labels_become_members_on_request(stoker, photos):
    stoker("data", "pack", "photos", "out", "--labels", "cls", code=0)
    found = members(stoker.folder / "out")
    stoker("data", "pack", "photos", "out2", "--labels", "json", code=0)
    found_json = members(stoker.folder / "out2")
    for file in photos.rglob("*.jpg"):
        key, label = f"{file.parent.name}/{file.stem}", ["cat", "dog"].index(file.parent.name)
        assert found.pop(f"{key}.jpg") == found_json.pop(f"{key}.jpg") == file.read_bytes()
        assert found.pop(f"{key}.cls") == str(label).encode()
        assert json.loads(found_json.pop(f"{key}.json")) == {"label": label, "class": file.parent.name}
    assert found == found_json == {}
    (photos / "cat/0000.json").write_text("{}")
    done = stoker("data", "pack", "photos", "out3", "--labels", "json", code=2)
    assert done.err == "photos/cat/0000.json: conflicts with the label member (--labels json)\n"


def test_shards_are_even_and_mix_the_classes(stoker, photos):
    stoker("data", "pack", "photos", "out", "--shards", "3", code=0)
    for shard in sorted((stoker.folder / "out").glob("*.tar")):
        with tarfile.open(shard) as archive:
            names = [name for name in archive.getnames() if name.endswith(".jpg")]
        assert len(names) in (66, 67)
        assert 20 < sum(name.startswith("dog/") for name in names) < 34


def test_sorted_order_is_by_name(stoker, photos):
    stoker("data", "pack", "photos", "out", "--shards", "1", "--order", "source", code=0)
    with tarfile.open(stoker.folder / "out/all-000000.tar") as archive:
        names = [name for name in archive.getnames() if name.endswith(".jpg")]
    assert names == sorted(names)


def test_stock_webdataset_reads_all_samples(stoker, example_images, tmp_path):
    import webdataset

    stoker("data", "pack", example_images, "out", "--labels", "cls", code=0)
    shards = [str(path) for path in sorted((tmp_path / "out").glob("train-*.tar"))]
    assert len(shards) > 1
    classes = sorted(path.name for path in (example_images / "train").iterdir())
    seen = set()
    for sample in webdataset.WebDataset(shards, shardshuffle=False).decode("rgb8"):
        key = sample["__key__"]
        assert sample["jpg"].shape == (32, 32, 3)
        assert classes[sample["cls"]] == key.split("/")[0]
        seen.add(key)
    expected = {f"{file.parent.name}/{file.stem}" for file in (example_images / "train").rglob("*.jpg")}
    assert seen == expected


def test_gnu_tar_reads_the_shards(stoker, photos):
    stoker("data", "pack", "photos", "out", code=0)
    for shard in (stoker.folder / "out").glob("*.tar"):
        listing = subprocess.run(["tar", "tvf", shard], capture_output=True, text=True, check=True, env={"TZ": "UTC"})
        assert listing.stderr == ""
        assert all(
            line.startswith("-r--r--r-- 0/0 ") and " 1970-01-01 00:00 " in line for line in listing.stdout.splitlines()
        )


def test_same_bytes_for_any_number_of_threads_and_any_file_times(stoker, photos):
    stoker("data", "pack", "photos", "one", "--shards", "5", "-j", "1", code=0)
    for file in photos.rglob("*.jpg"):
        os.utime(file, (1, 1))
    for jobs in ("2", "7"):
        stoker("data", "pack", "photos", f"out{jobs}", "--shards", "5", "-j", jobs, code=0)
        assert tree(stoker.folder / f"out{jobs}") == tree(stoker.folder / "one")


@pytest.mark.parametrize("options", [(), ("--check", "decode", "--jpeg", "restart"), ("--hash", "sha256")])
def test_same_bytes_of_one_shard_that_several_threads_read(stoker, example_images, options):
    for jobs in ("1", "2", "16"):
        stoker("data", "pack", example_images / "train", jobs, "--shards", "1", *options, "-j", jobs, code=0)
        assert tree(stoker.folder / jobs) == tree(stoker.folder / "1")


def test_first_level_of_split_names_becomes_splits(stoker, tmp_path):
    make_images(tmp_path / "in/train", {"cat": 5, "dog": 4})
    make_images(tmp_path / "in/test", {"dog": 3})
    stoker("data", "pack", "in", "out", code=0)
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert [(s["name"], s["samples"], s["class_samples"]) for s in info["splits"]] == [
        ("train", 9, [5, 4]),
        ("test", 3, [0, 3]),
    ]
    assert info["classes"] == ["cat", "dog"]
    assert set(members(tmp_path / "out", "test-*.tar")) == {f"dog/{i:04}.jpg" for i in range(3)}


def test_images_without_class_folders_have_no_labels(stoker, tmp_path):
    (tmp_path / "flat").mkdir()
    for i in range(3):
        (tmp_path / f"flat/{i}.JPEG").write_bytes(jpeg(i))
    stoker("data", "pack", "flat", "out", code=0)
    assert set(members(tmp_path / "out")) == {"0.jpeg", "1.jpeg", "2.jpeg"}
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert info["has_labels"] is False
    assert info["classes"] == []


def test_files_of_one_basename_become_one_sample(stoker, tmp_path):
    folder = make_images(tmp_path / "in", {"cat": 2})
    (folder / "cat/0000.json").write_text("{}")
    (folder / "cat/0000.SEG.png").write_bytes(jpeg(9, kind="PNG"))
    stoker("data", "pack", "in", "out", "--order", "source", code=0)
    with tarfile.open(tmp_path / "out/all-000000.tar") as archive:
        names = archive.getnames()
    at = names.index("cat/0000.jpg")
    assert names[at : at + 4] == ["cat/0000.jpg", "cat/0000.json", "cat/0000.seg.png", "cat/0001.jpg"]
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert info["components"] == [
        {"name": "jpg", "is_image": True},
        {"name": "json", "is_image": False},
        {"name": "seg.png", "is_image": True},
    ]


def test_any_files_are_packed_by_basename_on_request(stoker, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(4):
        (tmp_path / f"in/{i}.flac").write_bytes(b"sound" * i)
        (tmp_path / f"in/{i}.cls").write_text(f"{i * 10}\n")
    stoker("data", "pack", "in", "out", "--layout", "files", "--labels", "cls", code=0)
    found = members(tmp_path / "out")
    assert found["3.flac"] == b"soundsoundsound"
    assert found["3.cls"] == b"30"
    assert json.loads(stoker("data", "info", "out", "--json", code=0).out)["has_labels"] is True
    (tmp_path / "in/2.cls").write_text("two")
    done = stoker("data", "pack", "in", "out2", "--layout", "files", code=2)
    assert done.err == "in/2.cls: label 'two' is not a natural number\n"
    assert not (tmp_path / "out2").exists()


def test_large_non_images_are_copied_in_pieces(stoker, tmp_path):
    (tmp_path / "in").mkdir()
    big = random.Random(1).randbytes(1 << 20) * 70
    (tmp_path / "in/a.bin").write_bytes(big)
    stoker("data", "pack", "in", "out", "--layout", "files", code=0)
    assert members(tmp_path / "out") == {"a.bin": big}
    stoker("data", "verify", "out", "--full", code=0)


def test_long_and_foreign_names_survive(stoker, tmp_path):
    name = "ü" * 60 + "/" + "x" * 180
    file = tmp_path / "in" / (name + ".jpg")
    file.parent.mkdir(parents=True)
    file.write_bytes(jpeg(1))
    stoker("data", "pack", "in", "out", code=0)
    assert members(tmp_path / "out")[name + ".jpg"] == jpeg(1)
    listing = subprocess.run(
        ["tar", "tf", tmp_path / "out/all-000000.tar", "--quoting-style=literal"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listing.stdout.splitlines()[0] == name + ".jpg"


def test_links_to_files_are_followed(stoker, tmp_path, photos):
    (tmp_path / "linked/cat").mkdir(parents=True)
    (tmp_path / "linked/cat/a.jpg").symlink_to(photos / "cat/0001.jpg")
    (tmp_path / "linked/dog").symlink_to(photos / "dog")
    stoker("data", "pack", "linked", "out", code=0)
    assert members(tmp_path / "out")["cat/a.jpg"] == (photos / "cat/0001.jpg").read_bytes()


def test_progress_is_one_line_on_the_terminal_and_gone_at_the_end(stoker, example_images):
    ours, theirs = pty.openpty()
    process = stoker.start("data", "pack", example_images, "out", "--check", "decode", stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
    out, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 0
    assert re.search(r"\r  .*█.* %   [\d ]+ files", shown.decode())
    assert b"\n" not in shown
    assert shown.endswith(b"\r\x1b[K")
    assert "\r" not in out


def test_json_is_one_value_also_on_error(stoker, photos):
    done = stoker("data", "pack", "photos", "out", "--shards", "2", "--json", code=0)
    value = json.loads(done.out)
    version = value.pop("version")
    assert re.fullmatch("[0-9a-f]{64}", version)
    assert value.pop("bytes") == value["splits"][0].pop("bytes") > 200 * 512
    assert value == {
        "dataset": "out",
        "samples": 200,
        "classes": 2,
        "shards": 2,
        "format": "tar",
        "format_reason": "",
        "splits": [{"name": "all", "samples": 200, "shards": 2, "shard_count_reason": "set by --shards"}],
        "images_encoded_anew": 0,
        "files_left_out": 0,
        "left_out": {},
        "notes": [],
        "skipped_fields": {},
        "table": None,
        "shards_done_before": 0,
        "source_version": None,
        "compression": None,
    }
    done = stoker("data", "pack", "none", "out2", "--json", code=1)
    assert json.loads(done.out) == {
        "error": {"code": "not_found", "message": "none: no such folder, archive or list", "cure": ""}
    }


def test_the_version_is_the_content(stoker, photos, tmp_path):
    def version(out: str) -> str:
        return json.loads(stoker("data", "info", out, "--json", code=0).out)["version"]

    stoker("data", "pack", "photos", "a", code=0)
    photos.rename(tmp_path / "moved")
    stoker("data", "pack", "moved", "b", "-j", "1", code=0)
    assert version("a") == version("b")
    (tmp_path / "moved/cat/0000.jpg").write_bytes(jpeg(4242))
    stoker("data", "pack", "moved", "c", code=0)
    assert version("a") != version("c")


def test_version_and_hashes_match_the_format_page(stoker, photos, tmp_path):
    """An implementation of the page in Python gives the same numbers."""
    stoker("data", "pack", "photos", "out", "--shards", "2", code=0)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    lines = ["stoker-dataset-1", "container 3:tar", "components 1", "3:jpg image", "labels int64", "classes 2"]
    content = content_of((tmp_path / "out/index.bin").read_bytes())
    assert (manifest["incompatible_features"], manifest["index"]["content"]) == (["index-content"], content)
    lines += ["3:cat", "3:dog", f"content {content}", "splits 1", "3:all 2"]
    for shard in manifest["splits"][0]["shards"]:
        data = (tmp_path / "out" / shard["file"]).read_bytes()
        blocks = [hashlib.sha256(data[i : i + (4 << 20)]).digest() for i in range(0, len(data), 4 << 20)]
        assert [block.hex() for block in blocks] == shard["blocks"]
        assert hashlib.sha256(b"".join(blocks)).hexdigest() == shard["sha256"]
        lines.append(shard["sha256"])
    assert hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest() == manifest["version"]
    assert hashlib.sha256((tmp_path / "out/index.bin").read_bytes()).hexdigest() == manifest["index"]["sha256"]


def test_all_of_cifar10_is_packed(stoker, cifar10_images):
    stoker("data", "pack", cifar10_images, "out", code=0, timeout=300)
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    for split in info["splits"]:
        files = sum(1 for _ in (cifar10_images / split["name"]).rglob("*.jpg"))
        assert split["samples"] == files
        assert split["class_samples"] == [files // 10] * 10
    assert (info["images"]["width_min"], info["images"]["height_max"]) == (32, 32)
    assert stoker("data", "verify", "out", "--full", code=0).out.endswith("every byte verified\n")
