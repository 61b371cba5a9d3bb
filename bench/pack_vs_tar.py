"""Packing 50 000 small JPEG files: `stoker data pack` (checks each image, hashes, writes index and labels, all cores)
beside GNU tar, which only copies. Both read a warm page cache and write to memory, so that neither waits for a disk.
Uses all of CIFAR-10 where STOKER_TEST_DATA has it, else the shipped subset."""

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from measure import BIN, REPOSITORY, conclude, in_turns, ratio_interval, seconds_of


def unpacked(folder: Path) -> Path:
    given = Path(os.environ.get("STOKER_TEST_DATA", "")) / "cifar10.tar"
    source = given if given.is_file() else REPOSITORY / "examples/cifar10/cifar10-6000.tar"
    with tarfile.open(source) as archive:
        archive.extractall(folder)  # our own archives
    return folder / "train"


def main() -> None:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as box:
        folder = Path(box)
        images = unpacked(folder / "images")
        files = sum(1 for _ in images.rglob("*.jpg"))

        def pack() -> float:
            shutil.rmtree(folder / "packed", ignore_errors=True)
            return seconds_of([BIN / "stoker", "data", "pack", images, folder / "packed"])

        def tar() -> float:
            (folder / "x.tar").unlink(missing_ok=True)
            return seconds_of(["tar", "--format=ustar", "-C", images, "-cf", folder / "x.tar", "."])

        pairs = in_turns(pack, tar, 15)
        ours, theirs = min(first for first, _ in pairs), min(second for _, second in pairs)
        print(f"{files} files: stoker {files / ours:.0f} files/s, tar {files / theirs:.0f} files/s (best of each)")
        conclude("time of data pack / time of GNU tar", ratio_interval(pairs), limit=2)


if __name__ == "__main__":
    main()
