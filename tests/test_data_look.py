"""stoker data index, diff, sample and lint: inspecting datasets, foreign shards and sources."""

import base64
import io
import json
import re
import shutil
import struct
import tarfile
from pathlib import Path

import browser
import pytest
from packing import jpeg, make_images, members
from PIL import Image
from versions import without_content


def write_shard(path: Path, samples: dict[str, dict[str, bytes]]) -> None:
    with tarfile.open(path, "w") as archive:
        for key, files in samples.items():
            for extension, data in files.items():
                info = tarfile.TarInfo(f"{key}.{extension}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


@pytest.fixture
def foreign(tmp_path) -> Path:
    """Shards from webdataset's writer."""
    import webdataset

    folder = tmp_path / "shards"
    folder.mkdir()
    for split, count in (("train", 25), ("val", 5)):
        with webdataset.ShardWriter(f"{folder}/{split}-%06d.tar", maxcount=10, verbose=0) as writer:
            for i in range(count):
                writer.write({"__key__": f"{split}/{i:03}", "jpg": jpeg(i), "cls": i % 3, "json": {"id": i}})
    return folder


def test_foreign_shards_become_a_dataset(stoker, foreign):
    before = {path.name: path.read_bytes() for path in foreign.iterdir()}
    done = stoker("data", "index", "shards", code=0)
    assert re.fullmatch(
        r"shards: 30 samples, 4 shards, \d+ kB, version [0-9a-f]{8}\n  wrote index.bin, manifest.json\n", done.out
    )
    assert {path.name: path.read_bytes() for path in foreign.glob("*.tar")} == before
    info = json.loads(stoker("data", "info", "shards", "--json", code=0).out)
    assert [(s["name"], s["samples"], s["shards"]) for s in info["splits"]] == [("train", 25, 3), ("val", 5, 1)]
    assert info["components"] == [{"name": "jpg", "is_image": True}, {"name": "json", "is_image": False}]
    assert info["has_labels"] is True
    stoker("data", "verify", "shards", "--full", code=0)
    data = bytearray((foreign / "train-000001.tar").read_bytes())
    data[600] ^= 1
    (foreign / "train-000001.tar").write_bytes(data)
    assert "train-000001.tar" in stoker("data", "verify", "shards", "--full", code=1).out


def test_lost_index_is_rebuilt_byte_for_byte(stoker, photos, tmp_path):
    stoker("data", "pack", "photos", "out", "--labels", "cls", "--shards", "3", code=0)
    index = (tmp_path / "out/index.bin").read_bytes()
    (tmp_path / "out/index.bin").unlink()
    assert stoker("data", "index", "out", code=0).out.splitlines()[1] == "  wrote index.bin"
    assert (tmp_path / "out/index.bin").read_bytes() == index
    shard = tmp_path / "out/all-000001.tar"
    data = bytearray(shard.read_bytes())
    data[600] ^= 1
    shard.write_bytes(data)
    assert stoker("data", "index", "out", code=1).err == (
        "out/all-000001.tar: does not match the manifest (SHA-256)\n  try: stoker data verify out --full\n"
    )


def test_labels_of_a_lost_index_are_not_invented(stoker, photos):
    stoker("data", "pack", "photos", "out", code=0)
    (stoker.folder / "out/index.bin").unlink()
    assert stoker("data", "index", "out", code=2).err == (
        "out: the index cannot be rebuilt from the shards: it has labels that are not in the shards (packed with --labels index)\n"
        "  try: restore out/index.bin from a copy, or pack again\n"
    )


def test_folders_without_good_shards_are_refused(stoker, tmp_path):
    def error_of(code: int) -> str:
        return stoker("data", "index", "in", code=code).err

    assert error_of(1) == "in: no such folder\n"
    (tmp_path / "in").mkdir()
    assert (
        error_of(2)
        == "in: no shards (*.tar, *.tfrecord, *-00000-of-00001, *.parquet, *.h5, *.zarr.zip, *.mds, *.npy, *.npz) in it\n"
    )
    (tmp_path / "notes").write_text("")
    assert stoker("data", "index", "notes", code=2).err == "notes: is not a folder\n"
    write_shard(tmp_path / "in/0.tar", {"a/1": {"jpg": b"x"}, "../evil": {"jpg": b"y"}})
    (tmp_path / "in/a.zarr").mkdir()
    for shard in "in/0.tar", "in/a.zarr", "in/a.zarr/":
        assert stoker("data", "index", shard, code=2).err == (
            f"{shard}: is a shard; `data index` needs the folder of all shards\n  try: stoker data index in\n"
        )
    (tmp_path / "in/a.zarr").rmdir()
    assert error_of(2) == "in/0.tar: member '../evil.jpg': '..' in the name\n"
    write_shard(tmp_path / "in/0.tar", {"a/1": {"jpg": b"x", "JPG": b"y"}})
    assert error_of(2) == "in/0.tar: sample 'a/1' has two files 'jpg'\n"
    whole = (tmp_path / "in/0.tar").read_bytes()
    (tmp_path / "in/0.tar").write_bytes(whole[:1024])
    assert error_of(1) == "in/0.tar: has no end-of-archive marker: its last members may be missing\n"
    assert not (tmp_path / "in/manifest.json").exists()
    assert stoker("data", "index", "in", "--export", "wods", code=2).err == (
        "data index: --export: unknown value 'wods'; did you mean 'wids'?\n"
    )


def test_indexes_for_other_readers_are_right(stoker, foreign):
    stoker("data", "index", "shards", "--export", "wids,dali,energon", code=0)
    for shard in sorted(foreign.glob("*.tar")):
        with tarfile.open(shard) as archive:
            infos = archive.getmembers()
        samples: dict[str, list[tarfile.TarInfo]] = {}
        for info in infos:
            samples.setdefault(info.name.partition(".")[0], []).append(info)
        lines = shard.with_suffix(".idx").read_text().splitlines()
        assert lines[0] == f"v1.2 {len(samples)}"
        for line, components in zip(lines[1:], samples.values(), strict=True):
            expected = [
                x for i in components for x in (i.name.partition(".")[2], str(i.offset_data), str(i.size), i.name)
            ]
            assert line.split(" ") == expected
        offsets = struct.iter_unpack("<Q", Path(f"{shard}.idx").read_bytes())
        end = infos[-1].offset_data + -(-infos[-1].size // 512) * 512
        assert [o for (o,) in offsets] == [components[0].offset for components in samples.values()] + [end]
    wids = json.loads((foreign / "train.wids.json").read_text())
    assert (wids["__kind__"], wids["wids_version"]) == ("wids-shard-index-v1", 1)
    assert [(s["url"], s["nsamples"], s["filesize"]) for s in wids["shardlist"]] == [
        (f"train-{i:06}.tar", n, (foreign / f"train-{i:06}.tar").stat().st_size) for i, n in enumerate((10, 10, 5))
    ]
    import yaml

    meta = foreign / ".nv-meta"
    assert yaml.safe_load((meta / ".info.yaml").read_text())["shard_counts"]["val-000000.tar"] == 5
    assert yaml.safe_load((meta / "split.yaml").read_text()) == {
        "exclude": [],
        "split_parts": {"train": [f"train-{i:06}.tar" for i in range(3)], "val": ["val-000000.tar"], "test": []},
    }
    assert yaml.safe_load((meta / "dataset.yaml").read_text()) == {
        "__module__": "megatron.energon",
        "__class__": "ImageClassificationWebdataset",
        "field_map": {"image": "jpg", "label": "cls"},
    }


def test_diff_names_every_kind_of_change(stoker, photos):
    stoker("data", "pack", "photos", "one", "--split", "train=80%,val=20%", code=0)
    same = stoker("data", "diff", "one", "one", code=0).out
    assert re.fullmatch(r"one and one are identical: version [0-9a-f]{8}\n", same)
    moved = sorted(members(stoker.folder / "one", "val-*.tar"))[0]
    (photos / "cat/0000.jpg").write_bytes(jpeg(4242))
    (photos / "cat/0001.jpg").unlink()
    (photos / "dog/new.jpg").write_bytes(jpeg(77))
    (photos / "zebra").mkdir()
    (photos / "zebra/z.jpg").write_bytes(jpeg(78))
    stoker("data", "pack", "photos", "two", "--split", "train=80%,val=20%", "--seed", "0", code=0)
    done = json.loads(stoker("data", "diff", "one", "two", "--json", code=1).out)
    keys: dict[str, list[str]] = {}
    for change in done["samples"]:
        keys.setdefault(change["change"], []).append(change["key"])
    assert keys["added"] == ["dog/new", "zebra/z"]
    assert keys["removed"] == ["cat/0001"]
    assert keys["content"] == ["cat/0000"]
    assert done["schema"] == ["class 'zebra' added"]
    assert done["same"] + len({key for c in ("content", "removed", "moved") for key in keys.get(c, [])}) == 200
    stoker("data", "pack", "photos", "three", "--shards", "2", code=0)
    stoker("data", "pack", "photos", "four", "--shards", "3", code=0)
    text = stoker("data", "diff", "three", "four", code=1).out
    assert text.splitlines()[1:] == ["  same samples in different shards or order", "  201 the same"]
    assert moved


def test_diff_reports_samples_that_moved_to_a_different_split_or_class(stoker, tmp_path):
    (tmp_path / "1.csv").write_text("path,label,split\na.jpg,cat,train\nb.jpg,dog,val\nc.jpg,dog,train\n")
    (tmp_path / "2.csv").write_text("path,label,split\na.jpg,cat,val\nb.jpg,cat,val\nc.jpg,dog,train\n")
    for i, name in enumerate("abc"):
        (tmp_path / f"{name}.jpg").write_bytes(jpeg(i))
    stoker("data", "pack", "1.csv", "one", code=0)
    stoker("data", "pack", "2.csv", "two", code=0)
    lines = stoker("data", "diff", "one", "two", code=1).out.splitlines()
    assert lines[1:] == [
        "  1 with a different label: b (dog → cat)",
        "  1 in a different split: a (train → val)",
        "  1 the same",
    ]


def pack_labelled(stoker, name: str, labels: str) -> Path:
    """A dataset of 0.jpg, 1.jpg, ... with these labels, stored only in its index."""
    for i in range(len(labels.split())):
        (stoker.folder / f"{i}.jpg").write_bytes(jpeg(i))
    rows = (f"{i}.jpg,{label}\n" for i, label in enumerate(labels.split()))
    (stoker.folder / f"{name}.csv").write_text("path,label\n" + "".join(rows))
    stoker("data", "pack", f"{name}.csv", name, code=0)
    return stoker.folder / name


def test_index_only_labels_are_part_of_the_version(stoker, python):
    one, two = (pack_labelled(stoker, *words) for words in (("one", "cat dog cat"), ("two", "cat cat dog")))
    assert (one / "all-000000.tar").read_bytes() == (two / "all-000000.tar").read_bytes()
    assert (
        pack_labelled(stoker, "again", "cat dog cat").joinpath("manifest.json").read_bytes()
        == (one / "manifest.json").read_bytes()
    )
    lines = stoker("data", "diff", "one", "two", code=1).out.splitlines()
    assert lines[1:] == ["  2 with a different label: 1 (dog → cat), 2 (cat → dog)", "  1 the same"]
    code = """
import stoker
options = {"batch_size": 1, "transform": None, "tensors": "dlpack"}
state = stoker.Loader("one", **options).state_dict()
stoker.Loader("again", **options).load_state_dict(state)
try:
    stoker.Loader("two", **options).load_state_dict(state)
except stoker.InvalidError as error:
    print(error)
"""
    assert python(code).startswith("loader: the state to load has dataset version ")


def test_diff_ignores_versions_of_older_releases(stoker):
    """Those versions did not cover index-only labels."""
    for name, labels in (("one", "cat dog cat"), ("two", "cat cat dog")):
        manifest = pack_labelled(stoker, name, labels) / "manifest.json"
        shutil.copytree(stoker.folder / name, stoker.folder / f"old-{name}")
        old = without_content(json.loads(manifest.read_text()))
        (stoker.folder / f"old-{name}/manifest.json").write_text(json.dumps(old))
        stoker("data", "verify", f"old-{name}", "--full", code=0)
    found = json.loads(stoker("data", "diff", "old-one", "old-two", "--json", code=1).out)
    assert found["first"] == found["second"]
    assert (found["is_same"], found["counts"]["relabelled"]) == (False, 2)
    same = stoker("data", "diff", "old-one", "one", code=0).out
    assert re.fullmatch(
        r"old-one and one have identical samples but different versions: [0-9a-f]{8} and [0-9a-f]{8}\n", same
    )


def test_partly_labelled_tar_keeps_its_labels(stoker, python, tmp_path):
    (tmp_path / "in").mkdir()
    files = [{"jpg": jpeg(i), "cls": text} for i, text in enumerate((b"3", b"cat", b"-2"))] + [{"jpg": jpeg(3)}]
    write_shard(tmp_path / "in/train-000000.tar", {f"{i}": sample for i, sample in enumerate(files)})
    done = stoker("data", "index", "in", code=0)
    assert done.out.splitlines()[2:] == [
        "  skipped: cls members that are not natural numbers (2 samples)",
        "  unlabelled: 3 of 4 samples (label -1)",
    ]
    code = """
import stoker
for batch in stoker.Loader("in", batch_size=4, shuffle=False, transform=None, tensors="dlpack"):
    print(list(memoryview(batch["label"])))
"""
    assert python(code) == "[3, -1, -1, -1]\n"
    before = (tmp_path / "in/index.bin").read_bytes()
    (tmp_path / "in/index.bin").unlink()
    stoker("data", "index", "in", code=0)
    assert (tmp_path / "in/index.bin").read_bytes() == before


def test_contact_sheet_shows_every_class_and_broken_samples(stoker, photos, tmp_path):
    (photos / "dog/<b>.jpg").write_bytes(jpeg(5, (300, 200)))
    stoker("data", "pack", "photos", "out", code=0)
    shard = tmp_path / "out/all-000000.tar"
    with tarfile.open(shard) as archive:
        hurt = next(m for m in archive if m.name.startswith("dog/"))
    data = bytearray(shard.read_bytes())
    data[hurt.offset_data + 30] ^= 1
    shard.write_bytes(data)
    done = stoker("data", "sample", "out", "--count", "162", "-o", "page.html", code=0)
    assert re.fullmatch(r"wrote page.html: 162 samples, \d+ kB, 1 broken\n", done.out)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure>") == 162
    assert len(re.findall(r"<h2>(cat|dog)</h2>", page)) == 2
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert re.search(r"all-000000\.tar: sample &#?\w*;?'?dog/|sample 'dog/", page)
    for encoded in re.findall(r"data:image/jpeg;base64,([^\"]+)", page):
        with Image.open(io.BytesIO(base64.b64decode(encoded, validate=True))) as image:
            assert max(image.size) <= 144
            image.load()
    assert "http" not in page.replace("http-equiv", "")  # needs nothing else
    again = stoker("data", "sample", "out", "--count", "10", "-o", "a.html", code=0)
    stoker("data", "sample", "out", "--count", "10", "-o", "b.html", code=0)
    stoker("data", "sample", "out", "--count", "10", "-o", "c.html", "--seed", "1", code=0)
    pages = [(tmp_path / f"{name}.html").read_text() for name in "abc"]
    assert pages[0] == pages[1] != pages[2]
    assert "10 samples" in again.out


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("width", "theme"), browser.LOOKS)
def test_a_contact_sheet_opens_in_a_browser(stoker, photos, tmp_path, width, theme):
    stoker("data", "pack", "photos", "out", code=0)
    stoker("data", "sample", "out", code=0)
    assert browser.look(tmp_path / "sample.html", "figures: all('figure').length")["figures"] == 96
    browser.assert_legible(tmp_path / "sample.html", width, theme)


def rules(stoker, *arguments, code: int) -> dict[str, dict]:
    value = json.loads(stoker("data", "lint", *arguments, "--json", code=code).out)
    # The free inodes of the test machine are not part of the data.
    return {finding["rule"]: finding for finding in value["findings"] if finding["rule"] != "inodes-full"}


def test_lint_finds_problems(stoker, tmp_path):
    folder = make_images(tmp_path / "in/train", {"cat": 60, "dog": 3}).parent
    make_images(tmp_path / "in/val", {"dog": 0})
    for i in range(20):
        (folder / f"val/dog/{i}.jpg").write_bytes(jpeg(9000 + i))
    shutil.copy(folder / "train/cat/0000.jpg", folder / "val/dog/leak.jpg")
    shutil.copy(folder / "train/cat/0001.jpg", folder / "train/cat/copy.jpg")
    (folder / "train/cat/cut.jpg").write_bytes(jpeg(3, (64, 64))[:900])
    (folder / "train/cat/really.jpg").write_bytes(jpeg(4, kind="PNG"))
    (folder / "train/cat/notes.txt").write_text("x")
    Image.new("CMYK", (20, 20)).save(folder / "train/cat/cmyk.jpg")
    Image.new("RGBA", (20, 20)).save(folder / "train/cat/alpha.png")
    Image.new("RGB", (20, 20)).save(folder / "train/cat/slow.jpg", progressive=True)
    found = rules(stoker, "in", code=1)
    first = {rule: (f["level"], f["what"], [e["where"] for e in f["evidence"]]) for rule, f in found.items()}
    assert first == {
        "broken-file": ("job", "1 file is broken or not an image", ["train/cat/cut.jpg"]),
        "split-leak": (
            "job",
            "1 image is in more than one split: validation would include training data",
            ["train/cat/0000.jpg"],
        ),
        "label-conflict": ("job", "1 image is in more than one class", ["train/cat/0000.jpg"]),
        "progressive-jpeg": (
            "time",
            "1 image is progressive, three times as slow to decode",
            ["train/cat/slow.jpg"],
        ),
        "cmyk-image": (
            "advice",
            "1 image is CMYK, which decoders convert to RGB in different ways",
            ["train/cat/cmyk.jpg"],
        ),
        "alpha-image": (
            "advice",
            "1 image is partly transparent: the loader drops the alpha channel",
            ["train/cat/alpha.png"],
        ),
        "wrong-extension": (
            "advice",
            "1 image is of a type that the extension does not match",
            ["train/cat/really.jpg"],
        ),
        "not-packed": ("advice", "1 file would not be packed", ["train/cat/notes.txt"]),
        "duplicate": ("advice", "2 duplicate images", ["train/cat/copy.jpg", "val/dog/leak.jpg"]),
    }
    assert all(f["cure"] for f in found.values())
    text = stoker("data", "lint", "in", code=1).out
    assert text.splitlines()[0].startswith("in: 91 files, ")
    assert re.fullmatch(r"(9|10|11) findings, 3 would break a training", text.splitlines()[-1])


def test_lint_accepts_a_valid_source_and_its_dataset(stoker, example_images, example_dataset):
    assert rules(stoker, example_images, code=0) == {}
    assert rules(stoker, example_dataset, "--decode", code=0) == {}
    found = rules(stoker, example_dataset, "--for", "ranks=2,workers=2", code=1)
    assert found["too-few-shards"]["cure"] == "stoker data pack ... --for ranks=2,workers=2"


@pytest.mark.needs("mount")
def test_lint_warns_about_a_disk_too_small_for_the_shards(stoker, tmpfs):
    disk = tmpfs("8M")
    make_images(disk / "in/cat", {"": 20})
    (disk / "other").write_bytes(bytes(8_000_000))
    assert "disk-full" not in rules(stoker, disk / "in", code=0), "a full disk, with room for these few bytes"
    (disk / "in/cat/large.jpg").write_bytes(jpeg(1, (400, 400)) + bytes(200_000))
    found = rules(stoker, disk / "in", code=0)["disk-full"]
    assert re.fullmatch(r"[\d.]+ kB of 8\.39 MB are free: shards of these \d+ kB would not fit", found["what"])
    assert found["cure"] == "pack to another filesystem"


def test_lint_reads_archives_without_unpacking_them(stoker, tmp_path):
    write_shard(tmp_path / "in.tar", {"cat/1": {"jpg": jpeg(1)}, "../evil": {"jpg": jpeg(2)}})
    found = rules(stoker, "in.tar", code=1)
    assert found["unsafe-member"]["what"] == "1 member would be written outside the folder when unpacked"
    assert [e["where"] for e in found["unsafe-member"]["evidence"]] == ["../evil.jpg"]


def test_a_read_error_is_named_by_pack_and_found_by_lint(stoker, photos):
    # Reading the beginning of this file fails with EIO, like on a failing disk.
    (photos / "cat/0000.jpg").unlink()
    (photos / "cat/0000.jpg").symlink_to("/proc/self/mem")
    done = stoker("data", "pack", "photos", "out", code=3)
    assert done.err == "photos/cat/0000.jpg: input/output error\n"
    found = rules(stoker, "photos", code=1)
    assert found["broken-file"]["evidence"] == [
        {"where": "cat/0000.jpg", "text": "unreadable: photos/cat/0000.jpg: input/output error"}
    ]
