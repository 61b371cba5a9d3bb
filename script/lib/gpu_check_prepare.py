"""script/gpu-check --prepare: builds what the check needs into one folder, to be copied to a machine with a GPU."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build/gpu"
PROGRAMS = ("stoker", "stoker-train", "gpu-steps", "train_test", "loader_test")
# Parts of glibc, and of GCC's runtime: the machine with the GPU has its own.
SYSTEM = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s))\.so")
OF_TORCH = re.compile(r"lib(torch|c10|gomp|nccl|nv|cu(blas|da|dnn|fft|file|pti|rand|solver|sparse))")


@dataclass(frozen=True)
class Options:
    """What to build with; None: of the build machine."""

    folder: Path
    torch: Path | None = None
    include: Path | None = None
    python: str = "python3.12"
    photographs: Path | None = None
    cifar10: Path | None = None


def prepare(options: Options) -> None:
    """Raises CalledProcessError if a command fails; its output was printed."""
    build(options)
    for name in ("bin", "lib", "python"):
        shutil.rmtree(options.folder / name, ignore_errors=True)
    copy_programs(options.folder)
    copy_module(options.folder)
    copy_libraries(options.folder)
    copy_data(options)
    print_sizes(options.folder)


def build(options: Options) -> None:
    interpreter, nanobind = python_headers(options.python)
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "STOKER_TORCH_PREFIX": options.torch or "",
        "STOKER_CUDA_INCLUDE": options.include or "",
        "STOKER_PYTHONS": interpreter,
        "STOKER_NANOBIND": nanobind,
        # RPATH rather than RUNPATH: libraries of libraries are found too.
        "CMAKE_BUILD_RPATH": "$ORIGIN/../lib;$ORIGIN/../../lib",
        "CMAKE_EXE_LINKER_FLAGS": "-Wl,--disable-new-dtags",
        "CMAKE_MODULE_LINKER_FLAGS": "-Wl,--disable-new-dtags",
    }
    run(
        [
            "cmake",
            "-S",
            REPOSITORY,
            "-B",
            BUILD,
            "-G",
            "Ninja",
            *(f"-D{key}={value}" for key, value in settings.items()),
        ]
    )
    version = interpreter.partition("=")[0]
    run(["cmake", "--build", BUILD, "--target", *PROGRAMS, *([f"stoker_python_{version}"] if version else [])])


def python_headers(python: str) -> tuple[str, str]:
    """VERSION=HEADERS of the interpreter, and the folder of nanobind: see cmake/python.cmake."""
    code = "import sys, sysconfig; print('%d%d=%s' % (*sys.version_info[:2], sysconfig.get_path('include')))"
    interpreter = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    code = "import os, nanobind; print(os.path.dirname(nanobind.__file__))"
    tools = REPOSITORY / ".venv/bin/python"
    found = subprocess.run(
        [tools if tools.exists() else python, "-c", code], check=True, capture_output=True, text=True
    )
    return interpreter, found.stdout.strip()


def run(words: list[object]) -> None:
    subprocess.run([str(word) for word in words], check=True)


def copy_stripped(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    run(["strip", "-o", target, source])


def copy_programs(folder: Path) -> None:
    for name in PROGRAMS:
        copy_stripped(BUILD / "bin" / name, folder / "bin" / name)


def copy_module(folder: Path) -> None:
    package = folder / "python/stoker"
    shutil.copytree(REPOSITORY / "python/stoker", package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (BUILD / "modules").glob("_core*.so"):
        copy_stripped(module, package / module.name)


def copy_libraries(folder: Path) -> None:
    (folder / "lib").mkdir()
    files = [*(folder / "bin").iterdir(), *(folder / "python/stoker").glob("*.so")]
    for name, path in sorted(needed_libraries(files).items()):
        shutil.copy(path.resolve(), folder / "lib" / name)


def needed_libraries(files: list[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in files:
        listed = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
        found |= libraries_to_copy(listed)
    return found


def libraries_to_copy(listed: str) -> dict[str, Path]:
    """Name and path of the libraries in ldd's output that are neither the system's nor torch's."""
    found = {}
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE):
        if not SYSTEM.match(name) and not OF_TORCH.match(name):
            found[name] = Path(path)
    return found


def copy_data(options: Options) -> None:
    data = options.folder / "data"
    if options.photographs:
        shutil.rmtree(data / "photographs", ignore_errors=True)
        (data / "photographs").mkdir(parents=True)
        copy_photographs(options.photographs, data / "photographs")
    if options.cifar10:
        shutil.rmtree(data / "cifar10", ignore_errors=True)
        data.mkdir(exist_ok=True)
        # Parquet adds 12 bytes to an image of 900, tar 770. Small shards can be copied one by one.
        pack = [options.folder / "bin/stoker", "data", "pack", options.cifar10, data / "cifar10"]
        environment = os.environ | {"LD_LIBRARY_PATH": str(options.folder / "lib")}
        words = [*pack, "--format", "parquet", "--shard-size", "20MB"]
        subprocess.run([str(word) for word in words], check=True, env=environment)


def copy_photographs(source: Path, target: Path) -> None:
    if source.is_dir():
        for file in sorted(source.rglob("*")):
            if file.suffix.lower() in (".jpg", ".jpeg"):
                shutil.copy(file, target / file.name)
        return
    with tarfile.open(source) as archive:
        for member in archive:
            if content := archive.extractfile(member):
                (target / Path(member.name).name).write_bytes(content.read())


def print_sizes(folder: Path) -> None:
    for part in sorted(path for parent in (folder, folder / "data") for path in parent.glob("*") if path.is_dir()):
        files = [path for path in part.rglob("*") if path.is_file()]
        largest = max((path.stat().st_size for path in files), default=0)
        total = sum(path.stat().st_size for path in files)
        print(f"{part}: {len(files)} files, {total / 1e6:.1f} MB, largest {largest / 1e6:.1f} MB", file=sys.stderr)
