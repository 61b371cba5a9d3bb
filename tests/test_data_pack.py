"""stoker data pack: from a folder of files to shards that every other tool reads, whatever happens on the way."""

import csv
import fcntl
import hashlib
import io
import json
import os
import pty
import random
import re
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from PIL import Image


def jpeg(seed: int, size: tuple[int, int] = (16, 12), kind: str = "JPEG") -> bytes:
    """A small image that differs for every seed."""
    image = Image.frombytes("RGB", size, random.Random(seed).randbytes(3 * size[0] * size[1]))
    data = io.BytesIO()
    image.save(data, kind)
    return data.getvalue()


def make_images(folder: Path, classes: dict[str, int]) -> Path:
    for c, (name, count) in enumerate(classes.items()):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            (folder / name / f"{i:04}.jpg").write_bytes(jpeg(1000 * c + i))
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """photos/ with 120 cats and 80 dogs."""
    return make_images(tmp_path / "photos", {"cat": 120, "dog": 80})


def tree(folder: Path) -> dict[str, str]:
    """Every file's SHA-256."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def members(dataset: Path, pattern: str = "*.tar") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for shard in sorted(dataset.glob(pattern)):
        with tarfile.open(shard) as archive:
            for member in archive:
                assert member.name not in found
                found[member.name] = archive.extractfile(member).read()
    return found


def left_out(dataset: Path) -> list[tuple[str, str, str]]:
    with (dataset / "left-out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["path", "reason", "detail"]
    return [tuple(row) for row in rows[1:]]


def test_class_folders_become_labelled_samples(stoker, photos):
    done = stoker("data", "pack", "photos", "out", "--shards", "3", code=0)
    lines = done.out.splitlines()
    assert re.fullmatch(
        r"packing photos: 200 files in 2 classes, [\d.]+ kB → 3 shards of [\d.]+ kB \(as --shards says\)", lines[0]
    )
    assert re.fullmatch(r"out: 200 samples, 3 shards, [\d.]+ kB, version [0-9a-f]{8}", lines[1])
    assert len(lines) == 2
    assert done.err == ""
    found = members(stoker.folder / "out")
    for file in photos.rglob("*.jpg"):
        key = f"{file.parent.name}/{file.stem}"
        assert found.pop(f"{key}.jpg") == file.read_bytes()
        assert found.pop(f"{key}.cls") == (b"0" if file.parent.name == "cat" else b"1")
    assert found == {}


def test_shards_are_even_and_mix_the_classes(stoker, photos):
    stoker("data", "pack", "photos", "out", "--shards", "3", code=0)
    for shard in sorted((stoker.folder / "out").glob("*.tar")):
        with tarfile.open(shard) as archive:
            names = [name for name in archive.getnames() if name.endswith(".jpg")]
        assert len(names) in (66, 67)
        assert 20 < sum(name.startswith("dog/") for name in names) < 34


def test_sorted_order_is_by_name(stoker, photos):
    stoker("data", "pack", "photos", "out", "--shards", "1", "--order", "sorted", code=0)
    with tarfile.open(stoker.folder / "out/all-000000.tar") as archive:
        names = [name for name in archive.getnames() if name.endswith(".jpg")]
    assert names == sorted(names)


def test_stock_webdataset_reads_all_samples(stoker, example_dataset, example_images):
    import webdataset

    shards = [str(path) for path in sorted(example_dataset.glob("train-*.tar"))]
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
    assert set(members(tmp_path / "out", "test-*.tar")) == {f"dog/{i:04}.{e}" for i in range(3) for e in ("jpg", "cls")}


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
    stoker("data", "pack", "in", "out", code=0)
    with tarfile.open(tmp_path / "out/all-000000.tar") as archive:
        names = archive.getnames()
    at = names.index("cat/0000.jpg")
    assert names[at : at + 4] == ["cat/0000.jpg", "cat/0000.json", "cat/0000.seg.png", "cat/0000.cls"]
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert info["components"] == [
        {"name": "jpg", "is_image": True},
        {"name": "json", "is_image": False},
        {"name": "seg.png", "is_image": True},
    ]


def test_any_files_are_packed_by_basename_when_asked(stoker, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(4):
        (tmp_path / f"in/{i}.flac").write_bytes(b"sound" * i)
        (tmp_path / f"in/{i}.cls").write_text(f"{i * 10}\n")
    stoker("data", "pack", "in", "out", "--layout", "files", code=0)
    found = members(tmp_path / "out")
    assert found["3.flac"] == b"soundsoundsound"
    assert found["3.cls"] == b"30\n"
    assert json.loads(stoker("data", "info", "out", "--json", code=0).out)["has_labels"] is True
    (tmp_path / "in/2.cls").write_text("two")
    done = stoker("data", "pack", "in", "out2", "--layout", "files", code=2)
    assert done.err == "in/2.cls: label 'two' is not a natural number\n"
    assert not (tmp_path / "out2").exists()


def test_large_files_that_are_no_images_pass_through_in_pieces(stoker, tmp_path):
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


def spoil(photos: Path) -> None:
    """Puts one of each kind of bad file among the photos."""
    good, png = jpeg(77, (64, 64)), jpeg(78, (64, 64), "PNG")
    (photos / "README.txt").write_text("read me")
    (photos / "cat/.DS_Store").write_bytes(b"x")
    (photos / "cat/empty.jpg").write_bytes(b"")
    (photos / "cat/html.jpg").write_text("<html>404</html>")
    (photos / "cat/cut.jpg").write_bytes(good[: len(good) * 6 // 10])
    (photos / "cat/cut.json").write_text("{}")
    (photos / "cat/header.jpg").write_bytes(good[:25])
    (photos / "dog/cut.png").write_bytes(png[:-20])
    (photos / "dog/flipped.png").write_bytes(png[:100] + bytes([png[100] ^ 1]) + png[101:])
    (photos / "dog/torn.webp").write_bytes(jpeg(79, (64, 64), "WEBP")[:-100])
    (photos / "dog/notes").write_text("no extension")
    (photos / "dog/gone.jpg").symlink_to("nowhere.jpg")
    os.mkfifo(photos / "dog/pipe.jpg")


SPOILED = [
    ("README.txt", "not an image", ""),
    ("cat/.DS_Store", "hidden", ""),
    ("cat/cut.jpg", "truncated", "JPEG without its end marker"),
    ("cat/cut.json", "image left out", "cut.jpg"),
    ("cat/empty.jpg", "empty", ""),
    ("cat/header.jpg", "truncated", "JPEG ends inside a segment"),
    ("cat/html.jpg", "not an image", ""),
    ("dog/cut.png", "truncated", "PNG ends inside a chunk"),
    ("dog/flipped.png", "broken", "PNG chunk at byte 33 has a wrong CRC"),
    ("dog/gone.jpg", "not a file", "a link to nothing"),
    ("dog/notes", "not an image", "no extension"),
    ("dog/pipe.jpg", "not a file", "a pipe, socket or device"),
    ("dog/torn.webp", "truncated", "WebP of {webp} bytes, its header says {whole}"),
]


def test_what_is_no_image_or_broken_is_left_out_and_listed(stoker, photos):
    stoker("data", "pack", "photos", "clean", code=0)
    spoil(photos)
    done = stoker("data", "pack", "photos", "out", "--most-left-out", "10%", code=0)
    webp = (photos / "dog/torn.webp").stat().st_size
    expected = [(p, r, d.format(webp=webp, whole=webp + 100)) for p, r, d in SPOILED]
    assert left_out(stoker.folder / "out") == expected
    assert done.out.splitlines()[-1] == (
        "  12 files left out: 1 broken, 1 empty, 1 image left out, 2 not a file, 3 not an image, 4 truncated (list: out/left-out.csv)"
    )
    assert members(stoker.folder / "out") == members(stoker.folder / "clean")


def test_decoding_finds_damage_that_no_marker_shows(stoker, photos):
    good = bytearray(jpeg(77, (64, 64)))
    good[-800:-200] = b"\x55" * 600
    (photos / "cat/damaged.jpg").write_bytes(good)
    stoker("data", "pack", "photos", "scanned", code=0)
    assert "cat/damaged.jpg" in members(stoker.folder / "scanned")
    done = stoker("data", "pack", "photos", "decoded", "--check", "decode", code=0)
    assert "1 file left out: 1 " in done.out
    assert "cat/damaged.jpg" not in members(stoker.folder / "decoded")


def test_too_many_left_out_is_an_error_that_names_the_first(stoker, photos):
    for i in range(7):
        (photos / f"cat/bad{i}.jpg").write_bytes(b"")
    done = stoker("data", "pack", "photos", "out", code=1)
    assert done.err == (
        "photos: 7 of 207 files are no images or broken, more than 1 % (--most-left-out)\n"
        "    cat/bad0.jpg: empty\n    cat/bad1.jpg: empty\n    cat/bad2.jpg: empty\n    cat/bad3.jpg: empty\n"
        "    cat/bad4.jpg: empty\n    and 2 more\n"
    )
    assert not (stoker.folder / "out").exists()


def test_strict_refuses_the_first_bad_file(stoker, photos):
    good = jpeg(77, (64, 64))
    (photos / "cat/cut.jpg").write_bytes(good[: len(good) // 2])
    done = stoker("data", "pack", "photos", "out", "--strict", code=1)
    assert done.err == (
        "photos: 1 of 201 files are no images or broken (--strict)\n"
        "    cat/cut.jpg: truncated (JPEG without its end marker)\n"
    )
    assert not (stoker.folder / "out").exists()


def test_hidden_files_do_not_count(stoker, photos):
    (photos / "cat/.DS_Store").write_bytes(b"x")
    (photos / ".git").mkdir()
    done = stoker("data", "pack", "photos", "out", "--strict", code=0)
    assert len(done.out.splitlines()) == 2
    assert left_out(stoker.folder / "out") == [(".git", "hidden", ""), ("cat/.DS_Store", "hidden", "")]


def refusal(stoker, *arguments: str, code: int = 2) -> str:
    done = stoker("data", "pack", *arguments, code=code)
    assert done.out == ""
    return done.err


def test_bad_sources_are_refused_by_name(stoker, tmp_path):
    assert refusal(stoker, "none", "out", code=1) == "none: no such folder\n"
    (tmp_path / "file").write_text("x")
    assert refusal(stoker, "file", "out") == "file: is not a folder\n"
    (tmp_path / "empty").mkdir()
    assert refusal(stoker, "empty", "out") == "empty: no images (JPEG, PNG or WebP by their extension)\n"
    make_images(tmp_path / "in", {"cat": 2, "dog": 0})
    assert refusal(stoker, "in", "out") == "in/dog: class 'dog' has no images\n  try: rmdir in/dog\n"
    assert not (tmp_path / "out").exists()


def test_a_class_whose_images_are_all_broken_is_refused(stoker, photos):
    (photos / "fish").mkdir()
    (photos / "fish/1.jpg").write_bytes(b"")
    done = stoker("data", "pack", "photos", "out", code=2)
    assert done.err == "photos: class 'fish' has no good image\n"
    assert not (stoker.folder / "out").exists()


def test_duplicate_basenames_are_refused(stoker, tmp_path):
    folder = make_images(tmp_path / "in", {"cat": 2})
    (folder / "cat/0001.png").write_bytes(jpeg(1, kind="PNG"))
    assert refusal(stoker, "in", "out") == (
        "in/cat: '0001.jpg' and '0001.png' share the basename '0001' and would become one sample\n"
        "  try: rename one of them, or stoker data pack --layout files if they belong together\n"
    )
    (folder / "cat/0001.png").rename(folder / "cat/0001.JPG")
    assert refusal(stoker, "in", "out") == (
        "in/cat: '0001.JPG' and '0001.jpg' would be the same file of one sample\n  try: rename one of them\n"
    )


def test_two_sources_of_labels_are_refused(stoker, photos):
    (photos / "cat/0000.cls").write_text("7")
    assert (
        refusal(stoker, "photos", "out")
        == "photos: label files (.cls) and class folders at once: which is the label?\n"
    )


def test_bad_outputs_are_refused(stoker, photos, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").write_text("x")
    assert (
        refusal(stoker, "photos", "full", code=1) == "full: is not empty (a dataset goes into a new or empty folder)\n"
    )
    (tmp_path / "file").write_text("x")
    assert refusal(stoker, "photos", "file", code=1) == "file: is not a folder\n"
    assert refusal(stoker, "photos", "photos/out") == "photos/out: lies inside photos, which is to be packed\n"
    stoker("data", "pack", "photos", "out", code=0)
    before = tree(tmp_path / "out")
    assert refusal(stoker, "photos", "out", code=1) == "out: is not empty (a dataset goes into a new or empty folder)\n"
    assert tree(tmp_path / "out") == before
    assert tree(tmp_path / "full").keys() == {"thesis.tex"}


def test_bad_options_are_refused(stoker, photos):
    assert refusal(stoker, "photos", "out", "--shards", "0") == "data pack: --shards: 0 is not between 1 and 999999\n"
    assert refusal(stoker, "photos", "out", "-j", "0") == "data pack: -j,--jobs: 0 is not between 1 and 256\n"
    assert (
        refusal(stoker, "photos", "out", "--check", "scna")
        == "data pack: --check: unknown value 'scna'; did you mean 'scan'?\n"
    )
    assert refusal(stoker, "photos", "out", "--most-left-out", "5") == (
        "data pack: --most-left-out: '5' is not a percentage (as in 1% or 0.5%)\n"
    )
    assert refusal(stoker, "photos", "out", "--shards", "2", "--shard-size", "1MB") == (
        "data pack: --shards and --shard-size: give one of them\n"
    )
    assert refusal(stoker, "photos", "out", "--shard-size", "0B") == "data pack: --shard-size: 0 bytes hold no sample\n"


@pytest.mark.needs("root")
def test_files_and_folders_without_permission_are_named(stoker, open_folder):
    folder = make_images(open_folder / "in", {"cat": 3})
    (open_folder / "work").mkdir(mode=0o777)
    (open_folder / "work").chmod(0o777)
    (folder / "cat/0001.jpg").chmod(0)
    done = stoker("data", "pack", folder, open_folder / "work/out", user=65534, code=2)
    assert done.err == f"{folder}/cat/0001.jpg: permission denied\n"
    assert not (open_folder / "work/out").exists()
    (folder / "cat/0001.jpg").chmod(0o644)
    (folder / "cat").chmod(0)
    done = stoker("data", "pack", folder, open_folder / "work/out", user=65534, code=2)
    assert done.err == f"{folder}/cat: permission denied\n"
    (folder / "cat").chmod(0o755)
    (open_folder / "work").chmod(0o555)
    done = stoker("data", "pack", folder, open_folder / "work/out", user=65534, code=2)
    assert done.err == f"{open_folder}/work/out: permission denied\n"


@pytest.mark.needs("mount")
def test_a_disk_that_is_too_small_is_noticed_before_writing(stoker, photos, tmpfs):
    disk = tmpfs("256K")
    done = stoker("data", "pack", "photos", disk / "out", code=1)
    assert re.fullmatch(rf"{disk}/out: the shards need \d+ kB, \d+ kB are free\n", done.err)
    assert list(disk.iterdir()) == []


@pytest.mark.needs("mount")
def test_a_disk_that_fills_up_leaves_no_dataset_and_a_later_call_goes_on(stoker, tmp_path, tmpfs):
    make_images(tmp_path / "in", {"cat": 300, "dog": 300})
    stoker("data", "pack", "in", "whole", "--shards", "4", code=0)
    needed = sum(file.stat().st_size for file in (tmp_path / "whole").glob("*.tar"))
    disk = tmpfs(f"{needed // 4096 * 4 + 4}K")
    done = stoker("data", "pack", "in", disk / "out", "--shards", "4", code=1)
    assert re.fullmatch(rf"{disk}/out/[^:]+: no space left on device\n", done.err)
    assert not (disk / "out/manifest.json").exists()
    after = stoker("data", "verify", disk / "out", code=1)
    assert after.err.startswith(f"{disk}/out: is not finished: packing it was interrupted\n")
    subprocess.run(["mount", "-o", "remount,size=64M", disk], check=True)
    stoker("data", "pack", "in", disk / "out", "--shards", "4", code=0)
    assert tree(disk / "out") == tree(tmp_path / "whole")


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_at_any_moment_a_rerun_gives_the_same_bytes(stoker, example_images, tmp_path, kills):
    begin = time.monotonic()
    stoker("data", "pack", example_images, "whole", "--shards", "6", code=0)
    duration = time.monotonic() - begin
    expected = tree(tmp_path / "whole")
    chance = random.Random(kills)
    killed = 0
    while killed < kills:
        out = tmp_path / f"out{killed}"
        for _ in range(3):
            process = stoker.start("data", "pack", example_images, out, "--shards", "6", "-j", "2")
            time.sleep(chance.uniform(0, duration))
            process.kill()
            process.communicate()
            killed += 1
            if (out / "manifest.json").exists():
                stoker("data", "verify", out, "--full", code=0)
        if not (out / "manifest.json").exists():
            stoker("data", "pack", example_images, out, "--shards", "6", "-j", "2", code=0)
        elif (out / ".packing").exists():  # killed while it tidied up: whole, and the next call ends that
            stoker("data", "pack", example_images, out, "--shards", "6", "-j", "2")
        assert tree(out) == expected


def test_an_interrupted_packing_says_so_and_goes_on(stoker, example_images, tmp_path):
    arguments = ("data", "pack", example_images, "out", "--shards", "8", "--check", "decode", "-j", "1")
    process = stoker.start(*arguments)
    while not list(tmp_path.glob("out/.packing/*.fragment")):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert re.fullmatch(
        r"out: stopped: \d+ of 16 shards are done\n  try: the same command again: it goes on from there\n", err
    )
    for command in ("info", "verify"):
        assert stoker("data", command, "out", code=1).err == (
            "out: is not finished: packing it was interrupted\n"
            "  try: the same `stoker data pack` again: it goes on where it stopped\n"
        )
    assert not list(tmp_path.glob("out/*.tar"))
    done = stoker(*arguments, code=0)
    assert re.search(r"^  \d+ of 16 shards were done before$", done.out, re.MULTILINE)
    stoker("data", "pack", example_images, "whole", "--shards", "8", "--check", "decode", code=0)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def interrupted(stoker, source: Path, out: Path, *options: str) -> None:
    """Leaves an unfinished packing with at least one finished shard."""
    process = stoker.start("data", "pack", source, out, "--check", "decode", "-j", "1", *options)
    while not list(out.glob(".packing/*.fragment")):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert not (out / "manifest.json").exists()


def test_an_unfinished_packing_of_other_input_is_begun_anew(stoker, example_images, photos, tmp_path):
    interrupted(stoker, example_images, tmp_path / "out", "--shards", "8")
    done = stoker("data", "pack", "photos", "out", code=0)
    assert "  an unfinished packing of other input or options was there: begun anew\n" in done.out
    stoker("data", "pack", "photos", "whole", code=0)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_a_damaged_fragment_is_not_taken_for_good(stoker, example_images, tmp_path):
    interrupted(stoker, example_images, tmp_path / "out", "--shards", "8")
    for fragment in (tmp_path / "out/.packing").glob("*.fragment"):
        data = bytearray(fragment.read_bytes())
        data[len(data) // 2] ^= 1
        fragment.write_bytes(data)
    done = stoker("data", "pack", example_images, "out", "--check", "decode", "--shards", "8", code=0)
    assert "were done before" not in done.out
    stoker("data", "verify", "out", "--full", code=0)


def test_two_packings_of_one_folder_do_not_meet(stoker, example_images, tmp_path):
    interrupted(stoker, example_images, tmp_path / "out")
    before = tree(tmp_path / "out")
    with (tmp_path / "out/.packing/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = stoker("data", "pack", example_images, "out", code=3)
        assert done.err == "out: another `stoker data pack` is writing there\n"
    assert tree(tmp_path / "out") == before


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
    out, _ = process.communicate(timeout=60)
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
    assert value.pop("bytes") == value["splits"][0].pop("bytes") > 200 * 1024
    assert value == {
        "dataset": "out",
        "samples": 200,
        "classes": 2,
        "shards": 2,
        "splits": [{"name": "all", "samples": 200, "shards": 2, "why_so_many_shards": "as --shards says"}],
        "files_left_out": 0,
        "left_out": {},
        "shards_done_before": 0,
    }
    done = stoker("data", "pack", "none", "out2", "--json", code=1)
    assert json.loads(done.out) == {"error": {"code": "not_found", "message": "none: no such folder", "cure": ""}}


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


def test_version_and_hashes_are_as_the_format_page_says(stoker, photos, tmp_path):
    """A reader of the page, in a few lines of Python, comes to the same numbers."""
    stoker("data", "pack", "photos", "out", "--shards", "2", code=0)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    lines = ["stoker-dataset-1", "container 3:tar", "components 1", "3:jpg image", "labels int64", "classes 2"]
    lines += ["3:cat", "3:dog", "splits 1", "3:all 2"]
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
    assert stoker("data", "verify", "out", "--full", code=0).out.endswith("every byte as packed\n")
