"""stoker data pack: splits and classes from folders, samples from file names."""

import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from packing import jpeg, left_out, make_images, members, refusal


def run_json(stoker, *arguments: object) -> dict:
    return json.loads(stoker("data", *arguments, "--json", code=0).out)


def splits(stoker, dataset: str) -> dict[str, int]:
    return {split["name"]: split["samples"] for split in run_json(stoker, "info", dataset)["splits"]}


def make_files(folder: Path, *names: str) -> Path:
    """An image or a text for each name."""
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        kind = {".png": "PNG", ".gif": "GIF"}.get(Path(name).suffix, "JPEG")
        (folder / name).write_bytes(b"{}" if Path(name).suffix in (".json", ".txt") else jpeg(i, kind=kind))
    return folder


@pytest.fixture
def small(stoker, tmp_path) -> Path:
    """A folder of splits and its dataset."""
    for split in ("train", "val"):
        make_images(tmp_path / "small" / split, {"cat": 3, "dog": 2})
    stoker("data", "pack", "small", "expected", code=0)
    return tmp_path / "small"


def wrap(folder: Path, kind: str) -> tuple[str, str]:
    """Wraps the folder as archives do; returns the new source and the folder around its splits."""
    top = folder.parent
    if kind == "tar":
        with tarfile.open(top / "small.tar", "w") as archive:
            archive.add(folder, "small")
        return "small.tar", "small"
    if kind == "zip of a Mac":
        with zipfile.ZipFile(top / "small.zip", "w") as archive:
            for file in folder.rglob("*.jpg"):
                name = file.relative_to(top)
                archive.write(file, name)
                archive.writestr(f"__MACOSX/{name.parent}/._{name.name}", b"x")
        return "small.zip", "small"
    (top / "around/data").mkdir(parents=True)
    (top / "around/README.md").write_text("pictures")
    folder.rename(top / "around/data/small")
    return "around", "data/small"


@pytest.mark.parametrize("kind", ["tar", "zip of a Mac", "folders"])
def test_folder_around_splits_is_not_a_class(stoker, small, kind):
    source, root = wrap(small, kind)
    done = stoker("data", "pack", source, "out", "--max-left-out", "10%", code=0)
    assert f"  its only folder '{root}' is used as the root\n" in done.out
    assert run_json(stoker, "info", "out")["version"] == run_json(stoker, "info", "expected")["version"]
    assert splits(stoker, "out") == {"train": 5, "val": 5}
    assert run_json(stoker, "info", "out")["classes"] == ["cat", "dog"]
    found = json.loads(stoker("data", "lint", source, "--json", code=1).out)  # the splits hold the same
    assert found["notes"] == [f"its only folder '{root}' is used as the root"]
    assert [split["name"] for split in found["splits"]] == ["train", "val"]


def test_folder_around_classes_is_not_a_class(stoker, tmp_path):
    make_images(tmp_path / "in/photos", {"cat": 3, "dog": 2})
    assert run_json(stoker, "pack", "in", "out")["notes"] == ["its only folder 'photos' is used as the root"]
    assert run_json(stoker, "info", "out")["classes"] == ["cat", "dog"]
    assert "dog/0001.jpg" in members(tmp_path / "out")


@pytest.mark.parametrize(
    "names",
    [
        ("cat/1.jpg", "cat/2.jpg"),
        ("cat/a/1.jpg", "cat/b/c/1.jpg", "cat/1.jpg"),  # pictures in the class folder
        ("cat/a/1.jpg", "cat/b/1.txt"),  # a folder without
        ("cat/a/1.jpg",),
    ],
)
def test_a_class_with_folders_in_it_stays_a_class(stoker, tmp_path, names):
    make_files(tmp_path / "in", *names)
    assert run_json(stoker, "pack", "in", "out", "--max-left-out", "50%")["notes"] == []
    assert run_json(stoker, "info", "out")["classes"] == ["cat"]
    assert set(members(tmp_path / "out")) == {name for name in names if name.endswith(".jpg")}


def test_split_names_are_case_insensitive(stoker, tmp_path):
    make_files(tmp_path / "in", "Train/cat/1.jpg", "TEST/cat/2.jpg")
    stoker("data", "pack", "in", "out", code=0)
    assert splits(stoker, "out") == {"train": 1, "test": 1}
    assert run_json(stoker, "info", "out")["classes"] == ["cat"]
    make_files(tmp_path / "twice", "Train/1.jpg", "train/1.jpg")
    assert refusal(stoker, "twice", "none") == (
        "twice: 'Train' and 'train' would be the same split\n  try: rename one of them\n"
    )


def test_dev_is_a_split_next_to_train(stoker, tmp_path):
    make_files(tmp_path / "in", "train/cat/1.jpg", "dev/cat/2.jpg", "test/cat/3.jpg")
    stoker("data", "pack", "in", "out", code=0)
    assert splits(stoker, "out") == {"train": 1, "test": 1, "dev": 1}
    make_files(tmp_path / "birds", "dev/1.jpg", "wren/2.jpg")
    stoker("data", "pack", "birds", "out2", code=0)
    assert run_json(stoker, "info", "out2")["classes"] == ["dev", "wren"]


def test_splits_next_to_other_entries_are_refused(stoker, tmp_path):
    make_files(tmp_path / "in", "train/cat/1.jpg", "test/cat/2.jpg", "cat/3.jpg")
    find = "find in/train in/test -type f"
    assert refusal(stoker, "in", "out") == (
        "in: 'train', 'test' are split names, but 'cat' next to them is not\n"
        f"  try: move 'cat' elsewhere, or: {find} | stoker data pack - OUT\n"
    )
    paths = "".join(f"in/{split}/cat/{i}.jpg\n" for i, split in ((1, "train"), (2, "test")))
    stoker("data", "pack", "-", "out", input=paths, code=0)
    assert splits(stoker, "out") == {"train": 1, "test": 1}
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        archive.add(tmp_path / "in", "in")
    assert refusal(stoker, "in.tar", "none") == (
        "in.tar: in: 'train', 'test' are split names, but 'cat' next to them is not\n  try: an archive without 'cat'\n"
    )
    make_files(tmp_path / "vehicles", "train/1.jpg", "car/2.jpg")  # a train is a vehicle, too
    stoker("data", "pack", "vehicles", "out2", code=0)
    assert run_json(stoker, "info", "out2")["classes"] == ["car", "train"]


def test_dots_in_names_of_images_become_part_of_the_key(stoker, tmp_path):
    names = ["0010.v1.jpg", "2021.07.12.jpg", "2021.07.13.jpg", "2021.07.13.json", "at 10.30.15.jpg", "at 10.30.16.jpg"]
    make_files(tmp_path / "in/cat", *names, "1.jpg", "1.json", "1.seg.png")
    done = stoker("data", "pack", "in", "out", code=0)
    assert "  skipped: original file names (dots become _) (5 samples)\n" in done.out
    found = members(tmp_path / "out")
    assert set(found) == {
        *(f"cat/{name.replace('.', '_', name.count('.') - 1)}" for name in names),
        *("cat/1.jpg", "cat/1.json", "cat/1.seg.png"),
    }
    assert found["cat/2021_07_12.jpg"] == (tmp_path / "in/cat/2021.07.12.jpg").read_bytes()
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        archive.add(tmp_path / "in", ".")
    stoker("data", "pack", "in.tar", "out2", code=0)
    assert members(tmp_path / "out2") == found
    # With --layout files the sample is the part before the first dot.
    stoker("data", "pack", "in", "out3", "--layout", "files", code=0)
    assert run_json(stoker, "info", "out3")["splits"][0]["samples"] == 4
    assert set(members(tmp_path / "out3")) == {f"cat/{name}" for name in (*names, "1.jpg", "1.json", "1.seg.png")}


def test_broken_image_with_dots_is_listed_by_its_original_name(stoker, tmp_path):
    folder = make_files(tmp_path / "in/cat", "1.jpg", "2021.07.12.jpg", "2021.07.12.json")
    (folder / "2021.07.12.jpg").write_bytes(b"")
    stoker("data", "pack", "in", "out", "--max-left-out", "90%", code=0)
    assert left_out(tmp_path / "out") == [
        ("cat/2021.07.12.jpg", "empty", ""),
        ("cat/2021.07.12.json", "image left out", "2021.07.12.jpg"),
    ]
    findings = json.loads(stoker("data", "lint", "in", "--json", code=1).out)["findings"]
    (broken,) = (each for each in findings if each["rule"] == "broken-file")
    assert broken["evidence"][0]["where"] == "cat/2021.07.12.jpg"


def test_colliding_names_with_dots_are_refused(stoker, tmp_path):
    make_files(tmp_path / "in/cat", "0010.v1.jpg", "0010_v1.jpg")
    assert refusal(stoker, "in", "out") == (
        "in/cat: '0010.v1.jpg' and '0010_v1.jpg' would both become the sample '0010_v1' (dots become _)\n"
        "  try: rename one of them\n"
    )
    make_files(tmp_path / "in2/cat", "1.2.jpg", "1.2.JPG")
    assert refusal(stoker, "in2", "out") == (
        "in2/cat: '1.2.JPG' and '1.2.jpg' would be the same file of one sample\n  try: rename one of them\n"
    )


def test_ambiguous_images_are_left_out_and_reported(stoker, tmp_path):
    make_files(tmp_path / "in/cat", "1.depth.png", "1.rgb.png")
    make_files(tmp_path / "in/dog", "1.jpg", "a.gif", "notes.txt")
    why = "'1.depth.png' has several dots, and a sample's name ends at the first"
    cure = "rename such files, or use --layout files if files of one name belong together"
    assert refusal(stoker, "in", "out") == f"in/cat: class 'cat' has no images: {why}\n  try: {cure}\n"
    make_files(tmp_path / "in/cat", "2.jpg")
    stoker("data", "pack", "in", "out", "--max-left-out", "90%", code=0)
    detail = "other files also have '1' before the first dot"
    assert left_out(tmp_path / "out") == [
        ("cat/1.depth.png", "ambiguous name", detail),
        ("cat/1.rgb.png", "ambiguous name", detail),
        ("dog/a.gif", "not JPEG, PNG or WebP", ""),
        ("dog/notes.txt", "not an image", ""),
    ]
    make_files(tmp_path / "flat", "1.depth.png", "1.rgb.png")
    assert refusal(stoker, "flat", "none") == f"flat: no images: {why}\n  try: {cure}\n"


def test_names_with_control_characters_are_left_out_and_listed(stoker, photos, tmp_path):
    (photos / "cat/tab\there.jpg").write_bytes(jpeg(99))
    (photos / "dog/new\nline").mkdir()
    (photos / "dog/new\nline/1.jpg").write_bytes(jpeg(98))
    stoker("data", "pack", "photos", "out", "--max-left-out", "5%", code=0)
    assert left_out(tmp_path / "out") == [
        ("cat/tab\\x09here.jpg", "unusable name", "a control character"),
        ("dog/new\\x0aline", "unusable name", "a control character"),
    ]
    for name in ("index.bin", "manifest.json"):
        (tmp_path / "out" / name).unlink()
    stoker("data", "index", "out", code=0)  # what was packed can be indexed by whoever has the shards alone
