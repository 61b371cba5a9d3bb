"""`stage: {unpack: …}` of a job on this machine, compared with the usual commands of batch scripts, on the disk of the temporary folder:
`tar x` of many small files, `tar --zstd -x` and Python's zipfile of a few large ones, each with the removal of the unpacked files at
the end of the job. The time of a run without staging is subtracted, as it belongs to the launch. Staging also computes the CRC-32C
of everything it writes."""

import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import partial
from pathlib import Path

from measure import BIN, PYTHON, check_limit, in_turns, ratio_interval, seconds_of

SMALL_FILES, SMALL_BYTES = 10_000, 2_500
LARGE_FILES, LARGE_BYTES = 12, 40 * 10**6
PAIRS = 5


def made(folder: Path, name: str, count: int, size: int) -> Path:
    """A folder of files with half random bytes, in folders of a thousand."""
    for number in range(count):
        path = folder / name / f"{number // 1000:03}" / f"{number:06}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size // 2) + bytes(size - size // 2))
    return folder / name


def staged(box: Path, archive: Path | None) -> float:
    stage = f"stage: {{unpack: [{archive}]}}\n" if archive else ""
    (box / "job.yaml").write_text(f"name: staged\nrun: {{shell: 'true'}}\n{stage}")
    return seconds_of([BIN / "stoker", "run", "job.yaml"], cwd=box, stderr=subprocess.DEVNULL)


def by_hand(box: Path, unpack: str) -> float:
    return seconds_of(["bash", "-ec", f"mkdir by-hand; cd by-hand; {unpack}; cd ..; rm -rf by-hand"], cwd=box)


def main() -> None:
    met = True
    with tempfile.TemporaryDirectory() as name:
        box = Path(name)
        small = made(box, "small", SMALL_FILES, SMALL_BYTES)
        large = made(box, "large", LARGE_FILES, LARGE_BYTES)
        with tarfile.open(box / "small.tar", "w") as tar:
            tar.add(small, "small")
        subprocess.run(["tar", "--zstd", "-cf", box / "large.tar.zst", "-C", box, "large"], check=True)
        with zipfile.ZipFile(box / "large.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for file in sorted(large.rglob("*.bin")):
                archive.write(file, file.relative_to(box))
        launch = statistics.median(staged(box, None) for _ in range(PAIRS))
        print(f"       a run that stages nothing: {launch:.2f} s")
        ways = {
            "small.tar": f"tar -xf {box}/small.tar",
            "large.tar.zst": f"tar --zstd -xf {box}/large.tar.zst",
            "large.zip": f"{PYTHON} -m zipfile -e {box}/large.zip .",
        }
        for file, unpack in ways.items():
            pairs = in_turns(partial(staged, box, box / file), partial(by_hand, box, unpack), PAIRS)
            net = [(max(ours - launch, 1e-3), theirs) for ours, theirs in pairs]
            ours, theirs = (statistics.median(column) for column in zip(*net, strict=True))
            print(f"       {file}: {ours:.2f} s, {unpack.split(' ')[0].rsplit('/', 1)[-1]} {theirs:.2f} s")
            met &= check_limit(f"staging / unpacking by hand, {file}", ratio_interval(net), 1.0)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
