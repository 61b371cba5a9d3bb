"""Reading from a failing disk: unreadable files are named, nothing crashes, and reading works once the disk recovers."""

import os
import re
import shutil
import time

import pytest
from failing_disk import failing_disk
from packing import tree

pytestmark = pytest.mark.needs("fuse")

# Reads all batches; prints their number and the error.
LOADER = """
import json, sys, stoker
options = {"batch_size": 100, "transform": "cifar-eval", "shuffle": False, "split": "train", "tensors": "dlpack"}
loader = stoker.Loader(sys.argv[1], **(options | json.loads(sys.argv[2])))
batches = 0
try:
    for batch in loader:
        batches += 1
except stoker.StokerError as error:
    print(type(error).__name__, error)
print(batches)
"""
PATIENT = """
import os, sys, stoker
loader = stoker.Loader(sys.argv[1], batch_size=100, transform="cifar-eval", shuffle=False, split="train", timeout=0.5)
batches = iter(loader)
try:
    next(batches)
except TimeoutError as error:
    print(error)
open(sys.argv[2] + ".new", "w").close()
os.rename(sys.argv[2] + ".new", sys.argv[2])
loader = stoker.Loader(sys.argv[1], batch_size=100, transform="cifar-eval", shuffle=False, split="train", timeout=60)
print(sum(1 for _ in loader))
"""


@pytest.fixture
def disk(example_dataset, tmp_path):
    """The packed example on a disk that can fail."""
    shutil.copytree(example_dataset, tmp_path / "data")
    with failing_disk(tmp_path / "data", tmp_path / "box") as disk:
        yield disk


def first_shard(disk):
    return sorted(disk.folder.glob("train-*"))[0]


def test_without_faults_everything_works(stoker, disk, tmp_path):
    assert tree(disk.folder) == tree(tmp_path / "data")
    stoker("data", "verify", disk.folder, "--full", code=0)


def test_verify_names_the_shard_and_checks_the_remaining_ones(stoker, disk):
    shard = first_shard(disk)
    disk.fail(shard.name, 1 << 20, (1 << 20) + 4096)
    stoker("data", "verify", disk.folder, code=0)
    lines = stoker("data", "verify", disk.folder, "--full", code=1).out.splitlines()
    assert len(lines) == 2, lines
    assert lines[1].startswith(f"{shard.name}   block 0 ") and lines[1].endswith(f"{shard}: input/output error")
    disk.mend()
    stoker("data", "verify", disk.folder, "--full", code=0)


def test_an_unreadable_index_is_an_error_not_a_crash(stoker, disk):
    size = (disk.folder / "index.bin").stat().st_size
    for begin, end in ((0, 4096), (size // 2, size // 2 + 1), (size - 1, size)):
        disk.fail("index.bin", begin, end)
        done = stoker("data", "verify", disk.folder, code=3)
        assert done.err == f"{disk.folder}/index.bin: cannot be read from its disk\n"
    disk.mend()
    stoker("data", "verify", disk.folder, code=0)


@pytest.mark.parametrize("options", ["{}", '{"resident": 0}', '{"errors": "skip"}', '{"transform": null}'])
def test_a_loader_names_shard_and_sample_and_skips_nothing(disk, python, options):
    shard = first_shard(disk)
    disk.fail(shard.name, shard.stat().st_size // 2)
    message, batches = python(LOADER, disk.folder, options).splitlines()
    named = rf"UnavailableError sample '.+' \(in shard '{shard.name}'\): {shard}: input/output error"
    assert re.fullmatch(named, message)
    assert 0 < int(batches) < 50
    disk.mend()
    assert python(LOADER, disk.folder, options) == "50\n"


def test_an_unresponsive_disk_is_reported_within_the_timeout(disk, python, tmp_path):
    shard = first_shard(disk)
    disk.hang(shard.name)
    begun = time.monotonic()
    message, batches = python(PATIENT, disk.folder, tmp_path / "box/faults").splitlines()
    assert time.monotonic() - begun < 60
    named = rf"loader: no batch before the deadline: epoch 1, waiting for sample '.+' \(in shard '{shard.name}'\)"
    assert re.fullmatch(named, message) and batches == "50"


def test_pack_names_the_unreadable_file_and_leaves_no_dataset(stoker, photos, tmp_path):
    with failing_disk(photos, tmp_path / "box") as disk:
        disk.fail("cat/0077.jpg")
        done = stoker("data", "pack", disk.folder, "packed", code=3)
        assert done.err.splitlines()[-1] == f"{disk.folder}/cat/0077.jpg: input/output error"
        assert not os.path.exists(tmp_path / "packed/manifest.json")
        disk.mend()
        stoker("data", "pack", disk.folder, "packed", code=0)
        stoker("data", "verify", "packed", "--full", code=0)
