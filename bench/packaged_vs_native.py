"""The wheel for glibc 2.28 compared with the build for this machine: packing CIFAR-10 to memory, comparing the result with its
hashes, an epoch of the Python loader with decoding, and saving and loading a checkpoint of 300 MB in memory. Both alternate in one
process tree; the lower end of the interval of packaged/native speed must reach 0.95. Takes the wheel of script/package or
script/release in dist/, or the one that it is given:

python bench/packaged_vs_native.py [WHEEL, or the folder that it was installed in] [--pairs N]"""

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from loader_python import Program, build, cifar10
from measure import BIN, PYTHON, REPOSITORY, Interval, in_turns, ratio_interval, seconds_of

LOWEST = 0.95

EPOCH = """
import stoker
loader = stoker.Loader(sys.argv[1], batch_size=256, transform="cifar-train", tensors="dlpack", num_workers=2)
def epoch():
    return sum(len(memoryview(batch["label"])) for batch in loader)
"""
CHECKPOINT = """
import numpy, stoker.checkpoint
folder = sys.argv[1]
state = {f"layer{i}": numpy.random.default_rng(i).random((1000, 1250), numpy.float32) for i in range(60)}
step = 0
def save():
    global step
    step += 1
    stoker.checkpoint.save(state, folder, step=step, keep_last=1)
    return 1
def load():
    stoker.checkpoint.load(folder)
    return 1
save()
epoch = {"save": save, "load": load}[sys.argv[2]]
"""


def wheel_of_this_python() -> Path:
    digits = "".join(platform.python_version_tuple()[:2])
    found = sorted((REPOSITORY / "dist").glob(f"stoker-*-cp{digits}-*.whl"))
    if not found:
        sys.exit(f"dist/: no wheel for Python {platform.python_version()}; try: script/package")
    return found[-1]


def passes(what: str, pairs: list[tuple[float, float]]) -> bool:
    """`pairs`: speeds of the packaged and the native one."""
    found: Interval = ratio_interval(pairs)
    is_met = found.low >= LOWEST
    print(
        f"{'ok' if is_met else 'MISSED':7}{what}: packaged/native speed {found}, lower end at least {LOWEST}",
        flush=True,
    )
    return is_met


def speeds(what: str, packaged: Program, native: Program, pairs: int) -> bool:
    try:
        return passes(what, in_turns(packaged.rate, native.rate, pairs))
    finally:
        packaged.close()
        native.close()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("wheel", nargs="?", type=Path)
    arguments.add_argument("--pairs", type=int, default=15)
    given = arguments.parse_args()
    build()
    wheel = given.wheel or wheel_of_this_python()
    print(wheel.name)
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory() as box,
        tempfile.TemporaryDirectory(dir=memory) as fast,
        cifar10() as (images, dataset),
    ):
        packaged = wheel if wheel.is_dir() else Path(box) / "packaged"
        if not wheel.is_dir():
            install = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packaged, wheel]
            subprocess.run(install, check=True)

        def pack(command: Path) -> float:
            shutil.rmtree(f"{fast}/packed", ignore_errors=True)
            return 1 / seconds_of([command, "data", "pack", images, f"{fast}/packed"], stderr=subprocess.DEVNULL)

        def verify(command: Path) -> float:
            return 1 / seconds_of([command, "data", "verify", f"{fast}/packed"], stderr=subprocess.DEVNULL)

        met = True
        for what, measure in (("data pack", pack), ("data verify", verify)):
            commands = (partial(measure, command) for command in (packaged / "bin/stoker", BIN / "stoker"))
            met &= passes(what, in_turns(*commands, given.pairs))

        loaders = Program(EPOCH, dataset, module=packaged), Program(EPOCH, dataset)
        met &= speeds("loader, decoding", *loaders, given.pairs)
        for action in ("save", "load"):
            savers = (
                Program(CHECKPOINT, f"{fast}/{action}-packaged", action, module=packaged),
                Program(CHECKPOINT, f"{fast}/{action}-native", action),
            )
            met &= speeds(f"checkpoint {action}, 300 MB", *savers, given.pairs)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
