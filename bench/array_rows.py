"""Helpers for benchmarks of arrays: CIFAR-10's images as one array, ways to read its rows, and pairs of measurements.

Both sides read the same file with the same number of threads, with a cache of 4 MiB for decoded chunks if they have one. This is
a fifth of the array, so shuffled rows are decompressed repeatedly, as in a dataset larger than memory."""

import io
import itertools
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from measure import BIN, REPOSITORY, check_limit, in_turns, ratio_interval
from PIL import Image

BATCH = 128
CACHE_MIB = 4
CHUNK_ROWS = 64
SECONDS = 0.2


@dataclass(frozen=True)
class Way:
    """A way to read rows. `theirs` takes a slice of rows, one row number or, shuffled, a list of them."""

    name: str
    theirs: Callable[[object], object]
    limit: float  # maximum ratio to their time per row
    rows: int = BATCH
    is_shuffled: bool = False

    def parts(self, count: int) -> list[object]:
        if self.rows == 1:
            return list(range(count))
        begins = range(0, count, self.rows)
        order = numpy.random.default_rng(1).permutation(count)
        return [order[at : at + self.rows] if self.is_shuffled else slice(at, at + self.rows) for at in begins]


def pictures() -> numpy.ndarray:
    with tarfile.open(REPOSITORY / "examples/cifar10/cifar10-6000.tar") as archive:
        files = [archive.extractfile(member) for member in archive if member.name.endswith(".jpg")]
        return numpy.stack([numpy.asarray(Image.open(io.BytesIO(file.read()))) for file in files if file])


def ours(kind: str, store: Path, name: str, way: Way, threads: int, expected: int) -> float:
    """Seconds per row; the sum of all rows must be `expected`."""
    order = "shuffled" if way.is_shuffled else "ordered"
    words = [BIN / "arrays_bench", kind, store, name, order, way.rows, CACHE_MIB, threads]
    rate, found = subprocess.run(map(str, words), check=True, capture_output=True, text=True).stdout.split()
    if int(found) != expected:
        sys.exit(f"{store}: the elements add up to {found}, expected {expected}")
    return 1 / float(rate)


def theirs(read: Callable[[object], object], parts: Sequence[object], rows_each: int) -> float:
    """Seconds per row, for parts read during a fifth of a second."""
    rows, begin = 0, time.perf_counter()
    for part in itertools.cycle(parts):
        read(part)
        rows += rows_each
        if time.perf_counter() - begin > SECONDS:
            break
    return (time.perf_counter() - begin) / rows


def compare(them: str, array: numpy.ndarray, store: tuple[str, Path, str], threads: int, ways: Sequence[Way]) -> None:
    """Alternates each way with theirs for a store's kind, path and array; ends the benchmark."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    subprocess.run([REPOSITORY / "script/build", "arrays_bench"], check=True, stdout=subprocess.DEVNULL)
    expected = int(array.sum(dtype=numpy.uint64))
    met = True
    for way in ways:
        parts = way.parts(len(array))
        found = in_turns(
            lambda way=way: ours(*store, way, threads, expected),
            lambda way=way, parts=parts: theirs(way.theirs, parts, way.rows),
            pairs,
        )
        best = [1e6 * min(times) for times in zip(*found, strict=True)]
        print(f"       {way.name}: {best[0]:.1f} us a row at best, {them} {best[1]:.1f} us")
        met &= check_limit(f"time per row, {way.name}, ratio to {them}", ratio_interval(found), way.limit)
    sys.exit(0 if met else 1)
