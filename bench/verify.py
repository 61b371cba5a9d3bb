"""`stoker data verify` of 512 MB in files of 2 MB, compared byte by byte with two parallel tools that only read them: cat for blocks with
CRC-32C, `openssl dgst -sha256` for blocks with SHA-256; from memory and, after dropping the page cache before each turn, from disk.
Without --full: the time for a dataset of 50 000 samples."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from cifar import packed_cifar
from measure import BIN, check_limit, in_turns, ratio_interval, seconds_of, start_times

FILES, FILE_BYTES = 256, 2_000_000


def packed(folder: Path, name: str, hashed: str) -> Path:
    words = ["--layout", "files", "--format", "tar", "--shards", "8", "--hash", hashed]
    subprocess.run(
        [BIN / "stoker", "data", "pack", folder / "files", folder / name, *words], check=True, stdout=subprocess.DEVNULL
    )
    return folder / name


def drop(dataset: Path) -> None:
    """Drops the shards from the page cache. Needs no privileges, as the files are owned and synced."""
    for shard in dataset.glob("*.tar"):
        with shard.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def by_two(command: list[str], dataset: Path, is_cold: bool) -> float:
    """Seconds for two processes, each with half of the shards."""
    if is_cold:
        drop(dataset)
    shards = sorted(map(str, dataset.glob("*.tar")))
    words = " ".join(command)
    script = f"{words} {' '.join(shards[::2])} >/dev/null & {words} {' '.join(shards[1::2])} >/dev/null & wait"
    return seconds_of(["bash", "-c", script])


def verify(dataset: Path, is_cold: bool) -> float:
    if is_cold:
        drop(dataset)
    return seconds_of([BIN / "stoker", "data", "verify", "--full", dataset])


def compared(what: str, dataset: Path, command: list[str], limit: float, is_cold: bool = False) -> bool:
    pairs = in_turns(partial(verify, dataset, is_cold), partial(by_two, command, dataset, is_cold), 7)
    bytes_in_all = sum(shard.stat().st_size for shard in dataset.glob("*.tar"))
    ours, theirs = min(a for a, _ in pairs), min(b for _, b in pairs)
    print(
        f"       {what}: {bytes_in_all / ours / 1e9:.2f} GB/s, two {command[0]} {bytes_in_all / theirs / 1e9:.2f} GB/s"
    )
    return check_limit(f"time of verify --full / two {command[0]}, {what}", ratio_interval(pairs), limit)


def main() -> None:
    met = True
    with tempfile.TemporaryDirectory(dir="/var/tmp") as box:
        folder = Path(box)
        (folder / "files").mkdir()
        for number in range(FILES):
            (folder / f"files/{number:04}.bin").write_bytes(os.urandom(FILE_BYTES))
        crc, sha = packed(folder, "crc", "crc32c"), packed(folder, "sha", "sha256")
        met &= compared("CRC-32C, in memory", crc, ["cat"], 2)
        met &= compared("SHA-256, in memory", sha, ["openssl", "dgst", "-sha256"], 0.75)
        met &= compared("CRC-32C, from disk", crc, ["cat"], 1.25, is_cold=True)
        met &= compared("SHA-256, from disk", sha, ["cat"], 1.5, is_cold=True)
    with packed_cifar() as dataset:
        met &= check_limit(
            "verify without --full, 50 000 samples",
            start_times([BIN / "stoker", "data", "verify", dataset], 21),
            50,
            "ms",
        )
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
