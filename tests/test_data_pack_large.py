"""stoker data pack of folders with a million entries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packing import jpeg

ENTRIES = 1_000_000
NAMES_PER_FILE = 50_000  # a file on ext4 may have 65 000


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """One folder of a million small files (twenty with many hard links)."""
    folder, originals = tmp_path / "crowded", tmp_path / "originals"
    folder.mkdir()
    originals.mkdir()
    for begin in range(0, ENTRIES, NAMES_PER_FILE):
        original = originals / str(begin)
        original.write_text(f"from {begin} on\n" * 10)
        for number in range(begin, begin + NAMES_PER_FILE):
            os.link(original, folder / f"{number:07}.txt")
    return folder


# A process inherits the peak memory of its parent until exec (getrusage(2)
# of Linux): so a small one starts it.
MEASURED = """
import os, sys
process = os.fork()
if process == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(process, 0)
print(usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_memory_of(command: list) -> int:
    """Peak memory of the command in bytes."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURED, *map(str, command)], check=True, stdout=subprocess.PIPE
    )
    return int(done.stdout)


def test_shards_are_not_kept_in_memory(stoker, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.txt").write_bytes(b"x" * 16_000)
    for number in range(1, 20_000):
        os.link(folder / "0.txt", folder / f"{number}.txt")
    words = ["--layout", "files", "--shards", "8", "-j", "2"]
    # Each thread writes two shards in turns: 164 MB.
    assert peak_memory_of([stoker.path, "data", "pack", folder, tmp_path / "packed", *words]) < 64 << 20


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_folder_of_a_million_entries_is_packed_in_bounded_memory(stoker, crowded, tmp_path):
    words = ["--layout", "files", "--for", "ranks=4,workers=2"]
    # Memory holds names, sizes and times of all files, but no contents.
    assert peak_memory_of([stoker.path, "data", "pack", crowded, tmp_path / "packed", *words]) < 400 << 20
    done = stoker("data", "info", "packed", "--json", code=0)
    assert json.loads(done.out)["samples"] == ENTRIES
    assert peak_memory_of([stoker.path, "data", "verify", tmp_path / "packed", "--full"]) < 200 << 20


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_folder_of_a_million_images_is_packed(stoker, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    data = jpeg(1)
    (folder / "0.jpg").write_bytes(data)
    for i in range(1, 1_000_000):
        os.link(folder / f"{(i - 1) // 60000 * 60000}.jpg", folder / f"{i}.jpg") if i % 60000 else (
            folder / f"{i}.jpg"
        ).write_bytes(data)
    process = subprocess.run(
        ["/usr/bin/time", "-f", "%M", stoker.path, "data", "pack", "in", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    assert "1 000 000 samples" in process.stdout
    assert int(process.stderr.split()[-1]) < 1_000_000  # kB
