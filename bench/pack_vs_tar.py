"""Packing 50 000 small JPEG files: `stoker data pack` (checks each image, hashes, writes index and labels, all cores) compared with
GNU tar, which only copies. Both read a warm page cache and write to memory, so that neither waits for a disk. Uses the whole
CIFAR-10 if STOKER_TEST_DATA has it, otherwise ten copies of the shipped subset: 50 000 files in both cases. A few thousand files
take a tenth of a second, mostly start-up and publishing: there GNU tar is further ahead, and the benchmark prints the ratio."""

import os
import resource
import shutil
import tarfile
import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, REPOSITORY, conclude, in_turns, ratio_interval, seconds_of

# Lower bound for two threads, measured once on two cores by a program that only lists, opens, reads and writes: no checks of
# images, no hashes, one output without headers.
BOUND_FILES_PER_S = 259_000


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
    """A tenth of the files of every class."""
    for file in sorted(images.rglob("*.jpg"))[::10]:
        target = folder / file.relative_to(images)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return folder


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as box:
        folder = Path(box)
        images = unpacked(folder / "images")
        few = few_of(images, folder / "few")
        cpu: dict[str, list[float]] = {"stoker": [], "tar": []}

        def timed(name: str, command: list) -> float:
            before = cpu_seconds()
            seconds = seconds_of(command)
            cpu[name].append(cpu_seconds() - before)
            return seconds

        def pack(source: Path, *options: str) -> float:
            shutil.rmtree(folder / "packed", ignore_errors=True)
            return timed("stoker", [BIN / "stoker", "data", "pack", source, folder / "packed", *options])

        def tar(source: Path) -> float:
            (folder / "x.tar").unlink(missing_ok=True)
            return timed("tar", ["tar", "--format=ustar", "-C", source, "-cf", folder / "x.tar", "."])

        def size(options: tuple[str, ...]) -> float:
            pack(images, *options)
            packed = sum(file.stat().st_size for file in (folder / "packed").iterdir())
            return packed / sum(file.stat().st_size for file in images.rglob("*.jpg"))

        plain, labelled = size(()), size(("--labels", "cls"))
        print(f"bytes on disk / payload: {plain:.3f} (limit 1.75); with .cls members {labelled:.3f} (limit 2.9)")
        ways = {
            "SHA-256": (),
            "CRC-32C": ("--hash", "crc32c"),
            "CRC-32C, tfrecord": ("--hash", "crc32c", "--format", "tfrecord"),
        }
        found = {}
        for source, way in [(few, "SHA-256"), *((images, way) for way in ways)]:
            files = sum(1 for _ in source.rglob("*.jpg"))
            cpu = {"stoker": [], "tar": []}
            pairs = in_turns(partial(pack, source, *ways[way]), partial(tar, source), 15)
            ours, theirs = min(first for first, _ in pairs), min(second for _, second in pairs)
            found[way] = ratio_interval(pairs)
            print(
                f"{files} files, {way}: stoker {files / ours:.0f} files/s, tar {files / theirs:.0f} files/s (best of each)"
            )
            print(f"       CPU: stoker {min(cpu['stoker']):.3f} s, tar {min(cpu['tar']):.3f} s (least of each)")
            print(f"       best / bound of {BOUND_FILES_PER_S} files/s: {files / ours / BOUND_FILES_PER_S:.2f}")
            print(f"       time of data pack / time of GNU tar: {found[way]}")
        if plain > 1.75 or labelled > 2.9:
            raise SystemExit("MISSED bytes on disk")
        conclude(
            "time of data pack / time of GNU tar, 50 000 files, index and CRC-32C", found["CRC-32C"], limit=1 / 1.4
        )


if __name__ == "__main__":
    main()
