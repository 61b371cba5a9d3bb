"""stoker data pack: sources, splits and shards."""

import csv
import io
import json
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from packing import jpeg, make_images, members, refusal, tree
from running import wait_for


def version(stoker, dataset: str) -> str:
    return json.loads(stoker("data", "info", dataset, "--json", code=0).out)["version"]


@pytest.fixture
def packed(stoker, photos) -> str:
    """The version of photos/ packed as a folder."""
    stoker("data", "pack", "photos", "from-folder", code=0)
    return version(stoker, "from-folder")


def make_tar(path: Path, folder: Path, **options) -> Path:
    with tarfile.open(path, "w", **options) as archive:
        archive.add(folder, arcname=".")
    return path


def test_a_tar_gives_the_same_dataset_as_the_folder_in_it(stoker, photos, packed, tmp_path):
    for name, tar_format in (("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        before = make_tar(tmp_path / f"{name}.tar", photos, format=tar_format).read_bytes()
        stoker("data", "pack", f"{name}.tar", name, code=0)
        assert version(stoker, name) == packed
        assert (tmp_path / f"{name}.tar").read_bytes() == before
    stoker("data", "verify", "pax", "--full", code=0)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_gives_the_same_dataset_as_the_folder_in_it(stoker, photos, packed, tmp_path, method):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w", method) as archive:
        for file in sorted(photos.rglob("*"), reverse=True):
            archive.write(file, file.relative_to(photos))
    stoker("data", "pack", "photos.zip", "out", code=0)
    assert version(stoker, "out") == packed


def test_a_zip_with_wide_records_is_read(stoker, photos, packed, tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for file in photos.rglob("*.jpg"):
            with archive.open(str(file.relative_to(photos)), "w", force_zip64=True) as member:
                member.write(file.read_bytes())
    stoker("data", "pack", "photos.zip", "out", code=0)
    assert version(stoker, "out") == packed


def test_paths_on_standard_input_give_the_same_dataset_as_their_folder(stoker, photos, packed):
    paths = sorted(str(path) for path in photos.rglob("*.jpg"))
    for name, text in (("lines", "\n".join(paths) + "\n"), ("nuls", "\0".join(paths) + "\0")):
        stoker("data", "pack", "-", name, code=0, input=text)
        assert version(stoker, name) == packed
    assert stoker("data", "pack", "-", "none", code=2, input="\n\n").err == "standard input: no paths\n"
    assert stoker("data", "pack", "-", "none", code=1, input="photos/none.jpg\n").err == (
        "photos/none.jpg: no such file or directory\n"
    )
    assert stoker("data", "pack", "-", "none", code=2, input="photos/cat/0000.jpg\nphotos//cat/0000.jpg\n").err == (
        "standard input: 'photos/cat/0000.jpg' appears twice\n"
    )


def write_list(path: Path, rows: list[tuple], header: tuple = ()) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows] if header else rows)


def test_list_has_paths_labels_and_splits(stoker, photos, tmp_path):
    rows = [(f"photos/cat/{i:04}.jpg", 'a "tabby", grey', "train" if i % 2 else "val") for i in range(20)]
    rows += [(f"photos/dog/{i:04}.jpg", "dog", "train") for i in range(5)]
    write_list(tmp_path / "list.csv", rows, ("File", "label", "split"))
    stoker("data", "pack", "list.csv", "out", "--labels", "cls", code=0)
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert info["classes"] == ['a "tabby", grey', "dog"]
    assert {s["name"]: s["class_samples"] for s in info["splits"]} == {"val": [10, 0], "train": [10, 5]}
    found = members(tmp_path / "out", "train-*.tar")
    assert found["photos/dog/0003.cls"] == b"1"
    assert found["photos/cat/0001.jpg"] == (photos / "cat/0001.jpg").read_bytes()


def test_numeric_labels_are_kept(stoker, photos, tmp_path):
    write_list(tmp_path / "list.csv", [(photos / f"cat/{i:04}.jpg", 7 * i) for i in range(4)])
    stoker("data", "pack", "list.csv", "out", "--labels", "cls", "--order", "source", code=0)
    found = members(tmp_path / "out")
    # The paths are absolute: keys begin at their common folder.
    assert list(found) == [f"{i:04}.{e}" for i in range(4) for e in ("jpg", "cls")]
    assert found["0003.cls"] == b"21"


def test_invalid_lists_are_refused_with_their_line(stoker, photos, tmp_path):
    def error_of(text: str, code: int = 2) -> str:
        (tmp_path / "list.csv").write_text(text)
        return refusal(stoker, "list.csv", "out", code=code)

    assert error_of("path,label\n") == "list.csv: lists no files\n"
    assert error_of("path,label\nphotos/cat/0000.jpg,cat\nphotos/cat/none.jpg,cat\n", code=1) == (
        "list.csv:3: photos/cat/none.jpg: no such file or directory\n"
    )
    assert error_of("photos/cat/0000.jpg,1\n\nphotos/cat/./0000.jpg,2\n") == (
        "list.csv:3: 'photos/cat/0000.jpg' and the file of line 1 would be the same sample ('photos/cat/0000')\n"
        "  try: list each file once; to oversample a class, weight it in training\n"
    )
    assert error_of('photos/cat/0000.jpg,"cat\n') == "list.csv:1: a quote is never closed\n"
    assert error_of('photos/cat/0000.jpg,"cat"s\n') == "list.csv:1: text after a closing quote\n"
    assert error_of('photos/cat/0000.jpg,c"at\n') == "list.csv:1: a quote inside a field without quotes\n"
    assert error_of("photos/cat/0000.jpg,c\0at\n") == "list.csv:1: a NUL byte\n"
    assert error_of(",cat\n") == "list.csv:1: not a file path\n"
    assert error_of("photos/cat/0000.jpg,99999999999\n") == (
        "list.csv:1: label 99999999999 is too large (at most 2147483647)\n"
    )
    assert error_of("photos/cat/0000.jpg,1,a/b\n") == (
        "list.csv:1: 'a/b' cannot be the name of a split (letters, digits, '-', '_')\n"
    )
    assert error_of(f"{'x' * 5000},1\n") == "list.csv:1: a path of 5000 bytes (at most 4096)\n"


def test_splits_depend_only_on_class_key_and_seed(stoker, photos, packed):
    shares = ("--split", "train=80%,val=0.1,test=10%")
    stoker("data", "pack", "photos", "a", *shares, code=0)
    info = json.loads(stoker("data", "info", "a", "--json", code=0).out)
    assert {s["name"]: s["class_samples"] for s in info["splits"]} == {
        "train": [96, 64],
        "val": [12, 8],
        "test": [12, 8],
    }
    stoker("data", "pack", "photos", "b", *shares, "-j", "1", code=0)
    assert tree(stoker.folder / "a") == tree(stoker.folder / "b")
    stoker("data", "pack", "photos", "c", *shares, "--seed", "1", code=0)
    one, two = (set(members(stoker.folder / name, "val-*.tar")) for name in "ac")
    assert len(one) == len(two) == 20
    assert one != two
    # The keys of one split are spread over the whole order of the dataset without splits.
    assert set(members(stoker.folder / "a")) == set(members(stoker.folder / "from-folder"))


def test_wrong_splits_are_refused(stoker, photos, tmp_path):
    assert refusal(stoker, "photos", "out", "--split", "train=90%,val=5%") == (
        "data pack: --split: the shares add up to 95 %, not to 100 %\n"
    )
    assert refusal(stoker, "photos", "out", "--split", "train") == (
        "data pack: --split: 'train' is not NAME=SHARE (as in train=90%,val=10%)\n"
    )
    assert refusal(stoker, "photos", "out", "--split", "a=50%,a=50%") == "data pack: --split: 'a' appears twice\n"
    assert refusal(stoker, "photos", "out", "--split", "train=100%,val=0%") == (
        "photos: split 'val' would get none of 200 samples (--split)\n"
    )
    make_images(tmp_path / "split/train", {"cat": 2})
    make_images(tmp_path / "split/val", {"cat": 2})
    assert refusal(stoker, "split", "out", "--split", "a=50%,b=50%") == (
        "split: has splits already: train, val (--split)\n"
    )


def test_shards_fit_the_job_that_reads_them(stoker, photos):
    done = stoker("data", "pack", "photos", "out", "--for", "ranks=3,workers=5", "--json", code=0)
    split = json.loads(done.out)["splits"][0]
    assert split["shards"] == 15
    assert split["shard_count_reason"] == "3 ranks x 5 workers: one for each"
    for shard in (stoker.folder / "out").glob("*.tar"):
        with tarfile.open(shard) as archive:
            assert len(archive.getnames()) in (13, 14)
    assert refusal(stoker, "photos", "none", "--for", "ranks=64,workers=8") == (
        "photos: split 'all': 200 samples are too few for 512 readers (--for ranks=64,workers=8)\n"
        "  try: --for ranks=64,workers=3\n"
    )
    assert refusal(stoker, "photos", "none", "--for", "rank=64") == (
        "data pack: --for: 'rank=64' is neither ranks=N nor workers=N\n"
    )


def test_stratified_shards_have_the_same_share_of_each_class(stoker, photos, tmp_path):
    stoker("data", "pack", "photos", "out", "--shards", "10", "--order", "stratified", code=0)
    for shard in (tmp_path / "out").glob("*.tar"):
        with tarfile.open(shard) as archive:
            names = archive.getnames()
        assert (len(names), sum(name.startswith("dog/") for name in names)) == (20, 8)
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat/1.jpg").write_bytes(jpeg(1))
    assert refusal(stoker, "flat", "none", "--order", "stratified") == (
        "flat: has no classes in its folders or list, which stratifying needs (--order stratified)\n"
    )


def pixels(data: bytes) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB").tobytes()


def photograph(seed: int, **options) -> bytes:
    from PIL import Image

    small = Image.open(io.BytesIO(jpeg(seed, (12, 9))))
    data = io.BytesIO()
    small.resize((203, 150)).save(data, "JPEG", quality=90, **options)
    return data.getvalue()


@pytest.mark.parametrize("mode", ["baseline", "restart"])
def test_jpegs_are_converted_losslessly(stoker, tmp_path, mode):
    from PIL import Image

    folder = tmp_path / "in/cat"
    folder.mkdir(parents=True)
    exif = Image.Exif()
    exif[0x010E] = "a cat"
    files = {
        "plain": photograph(1, exif=exif),
        "progressive": photograph(2, progressive=True, icc_profile=b"profile" * 99),
        "full": photograph(3, subsampling=0),
    }
    grey = io.BytesIO()
    Image.open(io.BytesIO(files["plain"])).convert("L").save(grey, "JPEG")
    files["grey"] = grey.getvalue()
    for name, data in files.items():
        (folder / f"{name}.jpg").write_bytes(data)
    stoker("data", "pack", "in", "out", "--jpeg", mode, code=0)
    found = {Path(name).stem: data for name, data in members(tmp_path / "out").items()}
    assert found.keys() == files.keys()
    for name, data in files.items():
        assert pixels(found[name]) == pixels(data), name
        with Image.open(io.BytesIO(found[name])) as image:
            assert "progressive" not in image.info
        restarts = found[name].count(b"\xff\xdd\x00\x04")
        if mode == "restart":
            assert restarts == 1
            assert b"\xff\xd3" in found[name]
        elif name != "progressive":
            assert found[name] == data
    assert found["plain"].count(b"a cat\0") == 1
    assert found["progressive"].count(b"profile" * 99) == 1
    info = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert info["images"]["progressive"] == 0
    stoker("data", "verify", "out", "--full", code=0)


def test_metadata_rate_is_respected(stoker, tmp_path):
    make_images(tmp_path / "in", {"cat": 40})
    begin = time.monotonic()
    stoker("data", "pack", "in", "out", "--metadata-rate", "80", "-j", "8", code=0)
    # 40 files and their folder are listed, then 40 opened: 81 requests, and the first one is free.
    assert time.monotonic() - begin >= 80 / 80


def test_file_removed_while_packing_is_reported(stoker, photos, tmp_path):
    process = stoker.start("data", "pack", "photos", "out", "--metadata-rate", "150", "-j", "1")
    deadline = time.monotonic() + 60
    while not (tmp_path / "out/.packing/plan").exists():  # then the source has been listed, and is read
        assert time.monotonic() < deadline
        time.sleep(0.005)
    for file in photos.rglob("*.jpg"):
        file.unlink()
    _, err = process.communicate()
    assert process.returncode == 3
    lines = err.splitlines()
    assert lines[0].startswith("photos/") and lines[0].endswith(".jpg: disappeared while packing")
    assert lines[1:] == ["  try: rerun the command when no process removes files there"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [0, 68 << 20])  # small files are read at once, large ones piece by piece
def test_file_changed_while_packing_is_reported(stoker, photos, tmp_path, size):
    if size:
        (photos / "cat/0000.bin").write_bytes(bytes(size))
    process = stoker.start("data", "pack", "photos", "out", "--metadata-rate", "150", "-j", "1", "--layout", "files")
    wait_for(lambda: (tmp_path / "out/.packing/plan").exists())
    for file in photos.rglob("*.*"):  # sizes do not change
        file.write_bytes(file.read_bytes())
    _, err = process.communicate()
    assert process.returncode == 3
    lines = err.splitlines()
    assert lines[0].endswith(": changed while packing (it was modified after it was listed)")
    assert lines[1:] == ["  try: rerun the command when no process writes there"]
