"""`stoker cache stage`: a dataset that is not in the cache, beside rsync with fsync, which compares no hash; and one that is there,
beside rsync without anything to do.

    bench/cache_vs_rsync.py [--gigabytes 1] [--pairs 7]"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measure import BIN, check_limit, in_turns, ratio_interval, seconds_of

LIMIT = 1.0  # of rsync's time, for a first copy


def make_dataset(folder: Path, gigabytes: float, shard: str = "100MB") -> Path:
    files = folder / "files" / "a"
    files.mkdir(parents=True)
    chance = random.Random(1)
    for number in range(round(gigabytes * 100)):
        (files / f"{number}.bin").write_bytes(chance.randbytes(10_000_000))
    subprocess.run(
        [
            BIN / "stoker",
            "data",
            "pack",
            folder / "files",
            folder / "data",
            "--layout",
            "files",
            "--shard-size",
            shard,
        ],
        check=True,
    )
    shutil.rmtree(folder / "files")
    return folder / "data"


def first_copy(command: list[str | Path], target: Path) -> float:
    shutil.rmtree(target, ignore_errors=True)
    return seconds_of(command, stderr=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, cache, copy = make_dataset(folder, options.gigabytes), folder / "cache", folder / "copy"
        stage = [BIN / "stoker", "cache", "stage", source, "--cache", cache, "--reserve", "0B"]
        rsync = ["rsync", "-a", "--fsync", f"{source}/", f"{copy}/"]
        pairs = in_turns(partial(first_copy, stage, cache), partial(first_copy, rsync, copy), options.pairs)
        rate = options.gigabytes * 1000 / min(ours for ours, _ in pairs)
        print(f"fastest copy {rate:.0f} MB/s")
        is_met = check_limit("first copy, time / rsync", ratio_interval(pairs), LIMIT)
        again = in_turns(
            partial(seconds_of, stage, stderr=subprocess.DEVNULL), partial(seconds_of, rsync), options.pairs
        )
        print(
            f"       second copy, time / rsync: {ratio_interval(again)}; {1000 * min(ours for ours, _ in again):.0f} ms"
        )
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
