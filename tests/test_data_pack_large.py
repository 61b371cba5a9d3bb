"""stoker data pack of folders with a million entries."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from packing import jpeg

ENTRIES = 1_000_000
NAMES_PER_FILE = 50_000  # a file on ext4 may have 65 000


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """One folder of a million small files; in truth twenty, under many names."""
    folder, originals = tmp_path / "crowded", tmp_path / "originals"
    folder.mkdir()
    originals.mkdir()
    for begin in range(0, ENTRIES, NAMES_PER_FILE):
        original = originals / str(begin)
        original.write_text(f"from {begin} on\n" * 10)
        for number in range(begin, begin + NAMES_PER_FILE):
            os.link(original, folder / f"{number:07}.txt")
    return folder


def peak_memory_of(command: list) -> int:
    """Runs it to its end; the bytes it had in memory at most."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_folder_of_a_million_entries_is_packed_in_bounded_memory(stoker, crowded, tmp_path):
    words = ["--layout", "files", "--for", "ranks=4,workers=2"]
    # Names, sizes and times of all files are held, and nothing of their contents.
    assert peak_memory_of([stoker.path, "data", "pack", crowded, tmp_path / "packed", *words]) < 600 << 20
    done = stoker("data", "info", "packed", "--json", code=0)
    assert json.loads(done.out)["samples"] == ENTRIES
    assert peak_memory_of([stoker.path, "data", "verify", tmp_path / "packed", "--full"]) < 600 << 20


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
