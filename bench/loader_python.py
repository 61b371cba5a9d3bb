"""Helpers for benchmarks of the Python module: the module's path, CIFAR-10 packed, and alternating programs."""

import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import BIN, PYTHON, REPOSITORY, in_turns

MODULE = BIN.parent / "python"
# torchvision's wheel is built for the CUDA torch and expects these operators, which are not called here.
IMPORT_TORCHVISION = """
import torch
operators = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    operators.define(name + "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
import torchvision
"""


def build() -> None:
    subprocess.run([REPOSITORY / "script/build", "stoker", "stoker_python"], check=True, stdout=subprocess.DEVNULL)


def environment(module: Path = MODULE) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(module), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path}


def run(code: str, *arguments: object) -> list[str]:
    """The words printed by a separate Python program."""
    command = [str(PYTHON), "-c", code, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment())
    return done.stdout.split()


class Program:
    """A Python program that defines epoch() -> samples and runs it on request. Start-up, compilation and cache warm-up are not
    measured, and two programs can alternate."""

    LOOP = """
import time
for _ in sys.stdin:
    started, cpu = time.perf_counter(), time.process_time()
    samples = epoch()
    print("rate", samples / (time.perf_counter() - started), samples / (time.process_time() - cpu), flush=True)
"""

    def __init__(self, code: str, *arguments: object, python: Path = PYTHON, module: Path = MODULE) -> None:
        self.rates_per_cpu_s: list[
            float
        ] = []  # CPU rate of its threads: more stable than wall time on a shared machine
        command = [str(python), "-c", "import sys\n" + code + self.LOOP, *map(str, arguments)]
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = subprocess.Popen(command, text=True, env=environment(module), **pipes)

    def rate(self) -> float:
        """Samples per second of one epoch."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("rate "):
                self.rates_per_cpu_s.append(float(line.split()[2]))
                return float(line.split()[1])
        self._errors.seek(0)
        raise SystemExit(f"a program ended with {self._process.wait()}: {self._errors.read()[-2000:]}")

    def close(self) -> None:
        """Lets it exit normally: some would leave processes and files in /dev/shm."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def beside(theirs: Program, ours: Program, pairs: int) -> list[tuple[float, float]]:
    """Alternating rates of both programs."""
    try:
        return in_turns(theirs.rate, ours.rate, pairs)
    finally:
        theirs.close()
        ours.close()


def tell_cost(theirs: Program, ours: Program) -> None:
    """Rates of both per CPU second. For programs without worker processes."""
    rates = [statistics.median(program.rates_per_cpu_s[1:]) for program in (ours, theirs)]
    print(f"       per CPU second: ours {rates[0]:.0f}, theirs {rates[1]:.0f}, {rates[0] / rates[1]:.2f} times as many")


def can_import(module: str, python: Path = PYTHON) -> bool:
    command = [str(python), "-c", f"import importlib.util as u; assert u.find_spec('{module}')"]
    return subprocess.run(command, capture_output=True, env=environment()).returncode == 0


def cifar10_archive() -> Path:
    """The whole CIFAR-10 if STOKER_TEST_DATA has it, otherwise the shipped tenth."""
    given = os.environ.get("STOKER_TEST_DATA")
    whole = Path(given) / "cifar10.tar" if given else None
    return whole if whole and whole.exists() else REPOSITORY / "examples/cifar10/cifar10-6000.tar"


@contextmanager
def cifar10() -> Iterator[tuple[Path, Path]]:
    """The folder of images, unpacked once for all benchmarks, and a new dataset packed from it."""
    archive = cifar10_archive()
    images = REPOSITORY / "build/bench" / archive.stem
    if not images.exists():
        images.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=images.parent) as unpacked:
            subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True)
            os.rename(unpacked, images)
            os.mkdir(unpacked)  # for the context to remove
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "packed"
        subprocess.run([BIN / "stoker", "data", "pack", images, dataset], check=True, capture_output=True)
        yield images, dataset
