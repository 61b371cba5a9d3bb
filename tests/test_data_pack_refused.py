"""stoker data pack: invalid images are left out and listed, unusable sources are refused by name."""

import os
from pathlib import Path

import pytest
from packing import jpeg, left_out, make_images, members, refusal, tree


def spoil(photos: Path) -> None:
    """Adds one invalid file of each kind to the photos."""
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
    ("dog/gone.jpg", "not a file", "a broken link"),
    ("dog/notes", "not an image", "no extension"),
    ("dog/pipe.jpg", "not a file", "a pipe, socket or device"),
    ("dog/torn.webp", "truncated", "WebP of {webp} bytes, its header declares {whole}"),
]


def test_invalid_images_are_left_out_and_listed(stoker, photos):
    stoker("data", "pack", "photos", "clean", code=0)
    spoil(photos)
    done = stoker("data", "pack", "photos", "out", "--max-left-out", "10%", code=0)
    webp = (photos / "dog/torn.webp").stat().st_size
    expected = [(p, r, d.format(webp=webp, whole=webp + 100)) for p, r, d in SPOILED]
    assert left_out(stoker.folder / "out") == expected
    assert done.out.splitlines()[-1] == (
        "  12 files left out: 1 broken, 1 empty, 1 image left out, 2 not a file, 3 not an image, 4 truncated (list: out/left-out.csv)"
    )
    assert members(stoker.folder / "out") == members(stoker.folder / "clean")


def test_decoding_finds_damage_inside_the_data(stoker, photos):
    good = bytearray(jpeg(77, (64, 64)))
    good[-800:-200] = b"\x55" * 600
    (photos / "cat/damaged.jpg").write_bytes(good)
    stoker("data", "pack", "photos", "scanned", code=0)
    assert "cat/damaged.jpg" in members(stoker.folder / "scanned")
    done = stoker("data", "pack", "photos", "decoded", "--check", "decode", code=0)
    assert "1 file left out: 1 " in done.out
    assert "cat/damaged.jpg" not in members(stoker.folder / "decoded")


def test_too_many_left_out_files_are_an_error(stoker, photos):
    for i in range(7):
        (photos / f"cat/bad{i}.jpg").write_bytes(b"")
    done = stoker("data", "pack", "photos", "out", code=1)
    assert done.err == (
        "photos: 7 of 207 files are broken or not images, more than 1 % (--max-left-out)\n"
        "    cat/bad0.jpg: empty\n    cat/bad1.jpg: empty\n    cat/bad2.jpg: empty\n    cat/bad3.jpg: empty\n"
        "    cat/bad4.jpg: empty\n    and 2 more\n"
        "  try: --max-left-out 4% packs the other files; all are listed in out.left-out.csv\n"
    )
    assert not (stoker.folder / "out").exists()
    listed = (stoker.folder / "out.left-out.csv").read_text().splitlines()
    assert listed == ["path,reason,detail", *(f"cat/bad{i}.jpg,empty," for i in range(7))]
    stoker("data", "pack", "photos", "out", "--max-left-out", "4%", code=0)


def test_parts_with_too_many_left_out_files_name_the_list_when_merged(stoker, photos):
    for i in range(7):
        (photos / f"cat/bad{i}.jpg").write_bytes(b"")
    stoker("data", "pack", "photos", "out/", "--part", "1/1", code=0)
    done = stoker("data", "merge", "out/", code=1)
    assert done.err.endswith("; all are listed in out.left-out.csv\n")
    assert len((stoker.folder / "out.left-out.csv").read_text().splitlines()) == 8


def test_a_source_without_any_good_file_has_no_share_to_allow(stoker, tmp_path):
    (tmp_path / "photos/cat").mkdir(parents=True)
    (tmp_path / "photos/cat/a.jpg").write_bytes(b"")
    done = stoker("data", "pack", "photos", "out", code=1)
    assert done.err == (
        "photos: 1 of 1 files is broken or not an image, more than 1 % (--max-left-out)\n    cat/a.jpg: empty\n"
    )
    assert not (stoker.folder / "out.left-out.csv").exists()


@pytest.mark.parametrize("words", [("pack", "photos", "-"), ("convert", "out", "-", "--format", "tfrecord")])
def test_standard_output_is_no_folder(stoker, photos, words):
    stoker("data", "pack", "photos", "out", code=0)
    done = stoker("data", *words, code=2)
    assert done.err == ("-: a dataset is a folder, not standard output (OUT)\n  try: ./- for a folder of that name\n")
    assert not (stoker.folder / "-").exists()


def test_strict_refuses_the_first_bad_file(stoker, photos):
    good = jpeg(77, (64, 64))
    (photos / "cat/cut.jpg").write_bytes(good[: len(good) // 2])
    done = stoker("data", "pack", "photos", "out", "--strict", code=1)
    assert done.err == (
        "photos: 1 of 201 files is broken or not an image (--strict)\n"
        "    cat/cut.jpg: truncated (JPEG without its end marker)\n"
        "  try: without --strict the other files are packed\n"
    )
    assert not (stoker.folder / "out").exists()


def test_hidden_files_do_not_count(stoker, photos):
    (photos / "cat/.DS_Store").write_bytes(b"x")
    (photos / ".git").mkdir()
    done = stoker("data", "pack", "photos", "out", "--strict", code=0)
    assert len(done.out.splitlines()) == 2
    assert left_out(stoker.folder / "out") == [(".git", "hidden", ""), ("cat/.DS_Store", "hidden", "")]


def test_bad_sources_are_refused_by_name(stoker, tmp_path):
    assert refusal(stoker, "none", "out", code=1) == "none: no such folder, archive or list\n"
    (tmp_path / "file").write_text("x")
    assert (
        refusal(stoker, "file", "out")
        == "file: is neither a folder, nor a tar or zip archive, nor a list (.csv, .tsv, .parquet)\n"
    )
    (tmp_path / "empty").mkdir()
    assert refusal(stoker, "empty", "out") == "empty: no images (JPEG, PNG or WebP by their extension)\n"
    make_images(tmp_path / "in", {"cat": 2, "dog": 0})
    assert (
        refusal(stoker, "in", "out")
        == "in/dog: class 'dog' has no images\n  try: remove that folder, or add images to it\n"
    )
    assert not (tmp_path / "out").exists()


def test_a_class_whose_images_are_all_broken_is_refused(stoker, photos):
    (photos / "fish").mkdir()
    (photos / "fish/1.jpg").write_bytes(b"")
    done = stoker("data", "pack", "photos", "out", code=2)
    assert done.err == "photos: class 'fish' has no valid image\n"
    assert not (stoker.folder / "out").exists()


def test_link_to_a_parent_folder_is_refused(stoker, photos):
    (photos / "cat/up").symlink_to("..")
    message = refusal(stoker, "photos", "out")
    assert message.startswith("photos/cat/up/cat/up/")
    assert message.endswith("/cat/up/cat: folders more than 32 deep (a link to a parent?)\n")


def test_duplicate_basenames_are_refused(stoker, tmp_path):
    folder = make_images(tmp_path / "in", {"cat": 2})
    (folder / "cat/0001.png").write_bytes(jpeg(1, kind="PNG"))
    assert refusal(stoker, "in", "out") == (
        "in/cat: '0001.jpg' and '0001.png' share the basename '0001' and would become one sample\n"
        "  try: rename one of them, or use --layout files if they belong together\n"
    )
    (folder / "cat/0001.png").rename(folder / "cat/0001.JPG")
    assert refusal(stoker, "in", "out") == (
        "in/cat: '0001.JPG' and '0001.jpg' would be the same file of one sample\n  try: rename one of them\n"
    )


def test_two_sources_of_labels_are_refused(stoker, photos):
    (photos / "cat/0000.cls").write_text("7")
    assert refusal(stoker, "photos", "out") == "photos: has both label files (.cls) and class folders\n"


def test_bad_outputs_are_refused(stoker, photos, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").write_text("x")
    assert (
        refusal(stoker, "photos", "full", code=1) == "full: is not empty (a dataset goes into a new or empty folder)\n"
    )
    (tmp_path / "file").write_text("x")
    assert refusal(stoker, "photos", "file", code=1) == "file: is not a folder\n"
    assert refusal(stoker, "photos", "photos/out") == "photos/out: is inside the source photos\n"
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
    assert refusal(stoker, "photos", "out", "--max-left-out", "5") == (
        "data pack: --max-left-out: '5' is not a percentage (as in 1% or 0.5%)\n"
    )
    assert refusal(stoker, "photos", "out", "--shards", "2", "--shard-size", "1MB") == (
        "data pack: --shards and --shard-size: give one of them\n"
    )
    assert refusal(stoker, "photos", "out", "--shard-size", "0B") == "data pack: --shard-size: 0 bytes hold no sample\n"


def test_empty_arguments_are_refused(stoker, photos):
    def error_of(*words: str) -> str:
        return stoker("data", *words, code=2).err

    for option in ("--split", "--for", "--part", "--where", "--label"):
        assert error_of("pack", "photos", "out", option, "") == f"data pack: {option}: is empty\n"
    name = "empty argument ('')\n  try: stoker data pack --help\n"
    assert error_of("pack", "photos", "") == error_of("pack", "", "out") == f"data pack: {name}"
    assert error_of("sample", "photos", "--split", "") == "data sample: --split: is empty\n"
    assert error_of("index", "photos", "--where", "") == "data index: --where: is empty\n"
    assert error_of("lint", "photos", "--for", "") == "data lint: --for: is empty\n"
    assert error_of("convert", "photos", "out", "--where", "") == "data convert: --where: is empty\n"


def test_label_instead_of_labels_gets_a_suggestion(stoker, photos):
    assert refusal(stoker, "photos", "out", "--label", "cls") == (
        "photos: is not Parquet: --columns, --tensor, --where, --label, --key and --missing need tables\n"
        "  try: --labels cls writes the labels of all samples as such members\n"
    )
    assert "try:" not in refusal(stoker, "photos", "out", "--label", "species")


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
