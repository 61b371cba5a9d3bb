"""CIFAR-10 as a packed dataset of small JPEGs: the whole dataset if STOKER_TEST_DATA has it, otherwise the shipped tenth."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import BIN, REPOSITORY


@contextmanager
def packed_cifar() -> Iterator[Path]:
    test_data = os.environ.get("STOKER_TEST_DATA")
    whole = Path(test_data) / "cifar10.tar" if test_data else None
    archive = whole if whole and whole.exists() else REPOSITORY / "examples/cifar10/cifar10-6000.tar"
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "packed"
        subprocess.run([BIN / "stoker", "data", "pack", archive, dataset], check=True, capture_output=True)
        subprocess.run([REPOSITORY / "script/build", "samples_bench"], check=True, stdout=subprocess.DEVNULL)
        yield dataset
