"""What the steps of script/package share: where things are, and one configuration and build with the portable compilers."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

OWN = Path(__file__).resolve().parent
REPOSITORY = OWN.parent


class PackageError(Exception):
    """Why nothing was packaged, with a cure."""


@dataclass(frozen=True)
class Build:
    arch: str
    jobs: int
    version: str
    has_trainers: bool

    @property
    def portable(self) -> Path:
        return REPOSITORY / "build/portable" / self.arch

    @property
    def folder(self) -> Path:
        return self.portable / "stoker"

    @property
    def command(self) -> Path:
        return self.folder / "bin/stoker"


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(words: Sequence[str | Path], **options) -> None:  # type: ignore[no-untyped-def]
    done = subprocess.run([str(word) for word in words], check=False, **options)
    if done.returncode:
        raise PackageError(f"{words[0]}: exit {done.returncode}")


def compile_targets(build: Build, folder: Path, targets: Sequence[str], **more: object) -> None:
    options = {
        "CMAKE_TOOLCHAIN_FILE": OWN / "toolchain.cmake",
        "CMAKE_BUILD_TYPE": "Release",
        "STOKER_PORTABLE": build.portable,
        "STOKER_ARCH": build.arch,
        "STOKER_TORCH": "OFF",
        "STOKER_TESTS": "OFF",
        "STOKER_BENCH": "OFF",
        "STOKER_PYTHON": "OFF",
        **more,
    }
    words = [f"-D{name}={value}" for name, value in options.items()]
    # Fresh: the flags of the toolchain file only count in a first configuration.
    run(["cmake", "--fresh", "-S", REPOSITORY, "-B", folder, "-G", "Ninja", *words], stdout=subprocess.DEVNULL)
    run(["cmake", "--build", folder, "-j", str(build.jobs), "--target", *targets], stdout=sys.stderr)
