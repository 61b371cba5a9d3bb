"""stoker data pack with a full disk, kills, interrupts and concurrent calls."""

import fcntl
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy
import pytest
from packing import make_images, tree
from running import wait_for


@pytest.mark.needs("mount")
def test_too_small_disk_is_detected_before_writing(stoker, photos, tmpfs):
    disk = tmpfs("256K")
    done = stoker("data", "pack", "photos", disk / "out", code=1)
    assert re.fullmatch(rf"{disk}/out: the shards need \d+ kB, \d+ kB are free\n", done.err)
    assert list(disk.iterdir()) == []


@pytest.mark.needs("mount")
def test_full_disk_leaves_no_dataset_and_a_rerun_continues(stoker, tmp_path, tmpfs):
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
            threads = chance.choice(["2", "9"])  # some threads write a shard, the other ones read ahead
            process = stoker.start("data", "pack", example_images, out, "--shards", "6", "-j", threads)
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


def test_interrupted_pack_is_reported_and_resumable(stoker, example_images, tmp_path):
    arguments = ("data", "pack", example_images, "out", "--shards", "8", "--check", "decode", "-j", "1")
    process = stoker.start(*arguments)
    while not list(tmp_path.glob("out/.packing/*.fragment")):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert re.fullmatch(
        r"out: interrupted: \d+ of 16 shards are finished\n  try: rerun the same command to continue\n", err
    )
    for command in ("info", "verify"):
        assert stoker("data", command, "out", code=1).err == (
            "out: is not finished: packing it was interrupted\n"
            "  try: run the same `stoker data pack` command again to resume it\n"
        )
    assert not list(tmp_path.glob("out/*.tar"))
    done = stoker(*arguments, code=0)
    assert re.search(r"^  \d+ of 16 shards were already complete$", done.out, re.MULTILINE)
    stoker("data", "pack", example_images, "whole", "--shards", "8", "--check", "decode", code=0)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_ctrl_c_keeps_shards_of_an_earlier_call(stoker, photos, tmp_path):
    stoker("data", "pack", "photos", "whole", "--shards", "4", code=0)
    for part in ("3/4", "4/4"):
        stoker("data", "pack", "photos", "out", "--shards", "4", "--part", part, code=0)
    slow = stoker.start("data", "pack", "photos", "out", "--shards", "4", "-j", "1", "--metadata-rate", "30")
    wait_for(lambda: list(tmp_path.glob("out/.packing/*.part")))  # it is in the first shard
    slow.send_signal(signal.SIGINT)
    _, err = slow.communicate()
    assert err.startswith("out: interrupted: 2 of 4 shards are finished\n")
    done = stoker("data", "pack", "photos", "out", "--shards", "4", code=0)
    assert "2 of 4 shards were already complete" in done.out
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_incomplete_files_of_killed_calls_are_removed(stoker, photos, tmp_path):
    for _ in range(2):
        slow = stoker.start("data", "pack", "photos", "out", "--shards", "4", "-j", "1", "--metadata-rate", "30")
        wait_for(lambda: list(tmp_path.glob("out/.packing/*.part")))
        slow.kill()
        slow.communicate()
        assert len(list(tmp_path.glob("out/.packing/*.part"))) <= 2  # a thread writes two shards in turns


def zipped(folder: Path, out: Path) -> None:
    shutil.make_archive(str(out), "zip", folder)


def tarred(folder: Path, out: Path) -> None:
    shutil.make_archive(str(out), "tar", folder)


@pytest.mark.parametrize(("make", "archive"), [(zipped, "in.zip"), (tarred, "in.tar")])
def test_rewritten_archive_is_a_different_source(stoker, photos, tmp_path, make, archive):
    make(photos, tmp_path / "in")
    stoker("data", "pack", archive, "out", "--shards", "2", "--part", "1/2", code=0)
    for file in photos.glob("*/0000.jpg"):  # with names and sizes as before
        file.write_bytes(file.read_bytes()[:-9] + b"\0" * 7 + b"\xff\xd9")
    make(photos, tmp_path / "in")
    done = stoker("data", "pack", archive, "out", "--shards", "2", "--part", "2/2", code=2)
    assert done.err.startswith("out: the other parts have a different source or different options\n")


def test_rewritten_array_file_is_a_different_source(stoker, tmp_path):
    rows = tmp_path / "in"
    rows.mkdir()
    for name in ("x", "y"):
        numpy.save(rows / f"{name}.npy", numpy.arange(8, dtype="int64"))
    stoker("data", "pack", "in", "out", "--shards", "2", "--part", "1/2", code=0)
    numpy.save(rows / "y.npy", numpy.arange(8, dtype="int64")[::-1].copy())
    done = stoker("data", "pack", "in", "out", "--shards", "2", "--part", "2/2", code=2)
    assert done.err.startswith("out: the other parts have a different source or different options\n")


def interrupted(stoker, source: Path, out: Path, *options: str) -> None:
    """Leaves an unfinished pack with at least one finished shard."""
    process = stoker.start("data", "pack", source, out, "--check", "decode", "-j", "1", *options)
    while not list(out.glob(".packing/*.fragment")):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert not (out / "manifest.json").exists()


def test_unfinished_pack_of_different_input_restarts(stoker, example_images, photos, tmp_path):
    interrupted(stoker, example_images, tmp_path / "out", "--shards", "8")
    done = stoker("data", "pack", "photos", "out", code=0)
    assert "  restarted: an unfinished packing had different input or options\n" in done.out
    stoker("data", "pack", "photos", "whole", code=0)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_damaged_fragment_is_ignored(stoker, example_images, tmp_path):
    interrupted(stoker, example_images, tmp_path / "out", "--shards", "8")
    for fragment in (tmp_path / "out/.packing").glob("*.fragment"):
        data = bytearray(fragment.read_bytes())
        data[len(data) // 2] ^= 1
        fragment.write_bytes(data)
    done = stoker("data", "pack", example_images, "out", "--check", "decode", "--shards", "8", code=0)
    assert "were done before" not in done.out
    stoker("data", "verify", "out", "--full", code=0)


def test_concurrent_packs_of_one_folder_are_refused(stoker, example_images, tmp_path):
    interrupted(stoker, example_images, tmp_path / "out")
    before = tree(tmp_path / "out")
    with (tmp_path / "out/.packing/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = stoker("data", "pack", example_images, "out", code=3)
        assert done.err == "out: another `stoker data pack` is writing there\n"
    assert tree(tmp_path / "out") == before
