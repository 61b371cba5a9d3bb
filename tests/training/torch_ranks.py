"""Helpers for tests and benchmarks of training. Requires only Python."""

import csv
import random
import struct
from array import array
from pathlib import Path

# The reference program in Python.
REFERENCE = Path(__file__).with_name("reference.py")


def write_batches(path: Path, seed: int, batch: int, size: int, steps: int = 5, classes: int = 10) -> Path:
    source = random.Random(seed)
    with open(path, "wb") as out:
        out.write(struct.pack("<3q", steps, batch, size))
        for _ in range(steps):
            out.write(array("f", (source.gauss(0, 1) for _ in range(batch * 3 * size * size))).tobytes())
            out.write(array("q", (source.randrange(classes) for _ in range(batch))).tobytes())
    return path


def rows(file: Path) -> list[dict[str, float]]:
    """Complete lines of a metrics file."""
    if not file.exists():
        return []
    lines = file.read_text().split("\n")[:-1]
    return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]
