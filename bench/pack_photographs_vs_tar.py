"""Packing 1 000 photographs of 110 kB: `stoker data pack` (checks each image, CRC-32C of each file, CRC-32C or SHA-256 of
every block, index) beside two GNU tars at once, each of a half, which only copy. The photographs are those of STOKER_TEST_DATA five times; without
it the bench has nothing to measure and says so."""

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from functools import partial
from pathlib import Path

from measure import BIN, conclude, in_turns, ratio_interval, seconds_of


def main() -> None:
    given = Path(os.environ.get("STOKER_TEST_DATA", "")) / "imagenet-200.tar"
    if not given.is_file():
        print("not measured: STOKER_TEST_DATA names no folder with imagenet-200.tar")
        return
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

        results = {}
        for hashed, limit in (("crc32c", 1 / 1.2), ("sha256", 1 / 0.9)):
            pairs = in_turns(partial(pack, hashed), two_tars, 15)
            ours, theirs = min(first for first, _ in pairs), min(second for _, second in pairs)
            rates = f"stoker {len(names) / ours:.0f} files/s, two tars {len(names) / theirs:.0f} files/s"
            print(f"{len(names)} photographs, --hash {hashed}: {rates} (best of each)")
            results[hashed] = (ratio_interval(pairs), limit)
        found, limit = results["crc32c"]
        if found.value > limit:
            print(f"MISSED time of data pack --hash crc32c / time of two GNU tars: {found}, limit {limit:.3g}")
        else:
            print(f"ok     time of data pack --hash crc32c / time of two GNU tars: {found}, limit {limit:.3g}")
        conclude("time of data pack / time of two GNU tars, 1 000 photographs", *results["sha256"])


if __name__ == "__main__":
    main()
