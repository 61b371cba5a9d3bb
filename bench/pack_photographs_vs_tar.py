"""Packing 1 000 photographs of 110 kB: `stoker data pack` (checks each image, CRC-32C of each file, CRC-32C or SHA-256 of every block,
index) compared with two parallel GNU tars, each for one half, which only copy. Also compared with two lower bounds: two threads that
read and write each file with one call (and hash it), and two threads that also query sizes, compute CRCs and check the images.
Uses the photographs of STOKER_TEST_DATA five times; without them nothing is measured."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from measure import BIN, REPOSITORY, check_limit, in_turns, ratio_interval, seconds_of


def main() -> None:
    given = Path(os.environ.get("STOKER_TEST_DATA", "")) / "imagenet-200.tar"
    if not given.is_file():
        print("not measured: STOKER_TEST_DATA names no folder with imagenet-200.tar")
        return
    subprocess.run(
        [REPOSITORY / "script/build", "pack_photographs_vs_tar_bench"], check=True, stdout=subprocess.DEVNULL
    )
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as box:
        folder = Path(box)
        for copy in range(5):
            (folder / f"photos/{copy}").mkdir(parents=True)
            with tarfile.open(given) as archive:
                archive.extractall(folder / f"photos/{copy}")  # our own archive
        names = sorted(str(path.relative_to(folder / "photos")) for path in (folder / "photos").rglob("*.JPEG"))
        for half in (0, 1):
            (folder / f"half{half}").write_text("\n".join(names[half::2]))
        (folder / "list").write_text("".join(f"{folder}/photos/{name}\n" for name in names))

        def pack(hashed: str) -> float:
            shutil.rmtree(folder / "packed", ignore_errors=True)
            words = ["data", "pack", folder / "photos", folder / "packed", "--hash", hashed]
            return seconds_of([BIN / "stoker", *words])

        def two_tars() -> float:
            for half in (0, 1):
                (folder / f"{half}.tar").unlink(missing_ok=True)
            begin = time.perf_counter()
            tars = [
                subprocess.Popen(
                    [
                        "tar",
                        "--format=ustar",
                        "-C",
                        folder / "photos",
                        "-T",
                        folder / f"half{half}",
                        "-cf",
                        folder / f"{half}.tar",
                    ]
                )
                for half in (0, 1)
            ]
            if any(process.wait() for process in tars):
                raise SystemExit("tar failed")
            return time.perf_counter() - begin

        def bound(work: str) -> float:
            words = [BIN / "pack_photographs_vs_tar_bench", folder / "list", folder / "bound", work, "2"]
            return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

        at_least = ratio_interval(in_turns(lambda: bound("checks"), two_tars, 15))
        print(f"two threads that copy, look and sum / time of two GNU tars: {at_least}, to compare with the limits")
        met = True
        for hashed, work, limit in (("crc32c", "copy", 1 / 1.2), ("sha256", "sha256", 1 / 0.9)):
            least: list[float] = []

            def both(hashed: str = hashed, work: str = work, least: list[float] = least) -> float:
                least.append(bound(work))
                return pack(hashed)

            pairs = in_turns(both, two_tars, 15)
            ours, theirs = min(first for first, _ in pairs), min(second for _, second in pairs)
            rates = f"stoker {len(names) / ours:.0f} files/s, two tars {len(names) / theirs:.0f} files/s"
            print(
                f"{len(names)} photographs, --hash {hashed}: {rates}, bound {len(names) / min(least):.0f} (best of each)"
            )
            of_bound = ratio_interval([(first, own) for (first, _), own in zip(pairs, least[1:], strict=True)])
            print(f"       time of data pack --hash {hashed} / bound ({work}): {of_bound}")
            at_best = ratio_interval([(own, second) for (_, second), own in zip(pairs, least[1:], strict=True)])
            print(f"       bound / time of two GNU tars: {at_best}, to compare with the limit")
            met &= check_limit(
                f"time of data pack --hash {hashed} / time of two GNU tars", ratio_interval(pairs), limit
            )
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
