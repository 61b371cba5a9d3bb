"""Packing 50 000 small JPEG files: `stoker data pack` (checks each image, hashes, writes index and labels, all cores)
beside GNU tar, which only copies. Both read a warm page cache and write to memory, so that neither waits for a disk.
Uses all of CIFAR-10 where STOKER_TEST_DATA has it, else ten copies of the shipped subset: the workload is 50 000 files
either way. A few thousand files take a tenth of a second, of which starting and publishing are a good part: there GNU tar
is further ahead, and the bench prints by how much."""

import os
import shutil
import tarfile
import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, REPOSITORY, conclude, in_turns, ratio_interval, seconds_of


def unpacked(folder: Path) -> Path:
    given = Path(os.environ.get("STOKER_TEST_DATA", "")) / "cifar10.tar"
    source = given if given.is_file() else REPOSITORY / "examples/cifar10/cifar10-6000.tar"
    with tarfile.open(source) as archive:
        archive.extractall(folder)  # our own archives
    if source == given:
        return folder / "train"
    for copy in range(10):
        for images in sorted((folder / "train").iterdir()):
            shutil.copytree(images, folder / "many" / images.name / str(copy))
    return folder / "many"


def few_of(images: Path, folder: Path) -> Path:
    """A tenth of the files, of every class."""
    for file in sorted(images.rglob("*.jpg"))[::10]:
        target = folder / file.relative_to(images)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return folder


def main() -> None:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as box:
        folder = Path(box)
        images = unpacked(folder / "images")
        few = few_of(images, folder / "few")

        def pack(source: Path) -> float:
            shutil.rmtree(folder / "packed", ignore_errors=True)
            return seconds_of([BIN / "stoker", "data", "pack", source, folder / "packed"])

        def tar(source: Path) -> float:
            (folder / "x.tar").unlink(missing_ok=True)
            return seconds_of(["tar", "--format=ustar", "-C", source, "-cf", folder / "x.tar", "."])

        for source in (few, images):
            files = sum(1 for _ in source.rglob("*.jpg"))
            pairs = in_turns(partial(pack, source), partial(tar, source), 15)
            ours, theirs = min(first for first, _ in pairs), min(second for _, second in pairs)
            print(f"{files} files: stoker {files / ours:.0f} files/s, tar {files / theirs:.0f} files/s (best of each)")
            print(f"       time of data pack / time of GNU tar: {ratio_interval(pairs)}")
        conclude("time of data pack / time of GNU tar, 50 000 files", ratio_interval(pairs), limit=2)


if __name__ == "__main__":
    main()
