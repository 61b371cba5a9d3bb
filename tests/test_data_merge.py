"""stoker data pack in parts, and their merge."""

import fcntl
import os
import shutil
from pathlib import Path

from packing import refusal, tree

REFUSED = "out: the other parts have a different source or different options\n  try: rm -r out/.packing\n"


def test_parts_and_merge_give_the_bytes_of_one_call(stoker, photos, tmp_path):
    (photos / "cat/empty.jpg").write_bytes(b"")
    Path(os.fsdecode(bytes(photos) + b"/cat/\xff.jpg")).write_bytes(b"not UTF-8 by its name")
    stoker("data", "pack", "photos", "whole", "--shards", "7", "--max-left-out", "20%", code=0)
    part = ("data", "pack", "photos", "out", "--shards", "7", "--max-left-out", "20%", "--part")
    for number in (3, 1):
        done = stoker(*part, f"{number}/3", code=0)
        assert done.out.splitlines()[1:] == [
            f"out: part {number}/3: {2 if number == 3 else 3} of 7 shards are packed",
            "  next, when all parts are packed: stoker data merge out",
        ]
    assert stoker("data", "merge", "out", code=1).err == (
        "out: 2 of 7 shards are not packed yet, the first is all-000001.tar\n  try: stoker data pack ... --part 2/3\n"
    )
    assert stoker("data", "info", "out", code=1).err.startswith("out: is not finished: packing it was interrupted\n")
    stoker(*part, "2/3", "-j", "3", code=0)
    assert stoker("data", "info", "out", code=1).err == (
        "out: unfinished: all shards are packed but not merged\n  try: stoker data merge out\n"
    )
    shutil.move(photos, tmp_path / "gone")  # the source is needed no more
    stoker("data", "merge", "out", code=0)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    assert stoker("data", "merge", "out", code=1).err == "out: is already a complete dataset\n"
    assert stoker("data", "merge", "none", code=1).err == (
        "none: has no packed parts\n  try: stoker data pack SOURCE none --part 1/N\n"
    )


def test_parts_survive_kills_and_reruns(stoker, example_images, tmp_path):
    stoker("data", "pack", example_images, "whole", "--shards", "8", code=0)
    part = ["data", "pack", example_images, "out", "--shards", "8", "--part"]
    first = [stoker.start(*part, f"{i}/4") for i in (1, 2, 3, 4)]
    first[0].kill()
    first[2].kill()
    for process in first:
        process.communicate()
    for again in [stoker.start(*part, f"{i}/4") for i in (1, 2, 3, 4)]:
        _, err = again.communicate()
        assert again.returncode == 0, err
    stoker("data", "merge", "out", code=0)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_mismatched_parts_are_refused(stoker, photos, tmp_path):
    stoker("data", "pack", "photos", "out", "--shards", "4", "--part", "1/2", code=0)
    with (tmp_path / "out/.packing/lock").open("r+") as held:  # as another part does while it works
        fcntl.flock(held, fcntl.LOCK_SH)
        done = stoker("data", "pack", "photos", "out", "--shards", "3", "--part", "2/2", code=2)
        assert done.err == REFUSED
        assert stoker("data", "merge", "out", code=3).err == "out: another `stoker data pack` is writing there\n"
        done = stoker("data", "pack", "photos", "out", "--shards", "4", "--part", "2/3", code=2)
        assert done.err == "out: others pack it in 2 parts, this one of 3\n"
        stoker("data", "pack", "photos", "out", "--shards", "4", "--part", "2/2", code=0)
    stoker("data", "merge", "out", code=0)
    assert refusal(stoker, "photos", "new", "--part", "3/2") == (
        "data pack: --part: '3/2' is not I/N with I from 1 to N (as in 2/8)\n"
    )


def test_finished_parts_survive_a_wrong_option(stoker, photos, tmp_path):
    for number in (1, 2):
        stoker("data", "pack", "photos", "out", "--shards", "4", "--part", f"{number}/2", code=0)
    before = tree(tmp_path / "out")
    for slip in (
        ["--seed", "7", "--order", "shuffle", "--shards", "4"],
        ["--format", "tfrecord", "--shards", "4"],
        ["--shards", "3"],
    ):
        done = stoker("data", "pack", "photos", "out", *slip, "--part", "1/2", code=2)
        assert done.err == REFUSED
    assert tree(tmp_path / "out") == before
    # A different number of parts gives the same dataset.
    stoker("data", "pack", "photos", "out", "--shards", "4", "--part", "2/3", code=0)
    stoker("data", "merge", "out", code=0)
