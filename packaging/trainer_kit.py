"""The trainer kit, from which `stoker build-trainer` builds stoker-train for a torch (src/trainers/build.h), and the trainers that are
shipped. Both come from the same sources and the same steps."""

import itertools
import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from building import REPOSITORY, Build, PackageError, compile_targets, run
from libraries import IN_CPP, LIBRARIES

UNIT_BYTES = 44 * 1024  # of sources compiled together, as in cmake/rooms.cmake


def sources_of(room: str) -> list[Path]:
    """Of a room, without its tests, relative to src/."""
    folder = REPOSITORY / "src"
    found = sorted((folder / room).rglob("*.cc"))
    return [path.relative_to(folder) for path in found if not path.name.endswith(("_test.cc", "_main.cc"))]


def library_rooms() -> list[str]:
    """The rooms in libstoker.a, and the one that is built for each torch."""
    found = re.search(r"set\(STOKER_LIBRARY_ROOMS ([^)]*)\)", (REPOSITORY / "cmake/install.cmake").read_text())
    if not found:
        raise PackageError("cmake/install.cmake: no STOKER_LIBRARY_ROOMS")
    return [*found[1].split(), "train"]


def headers_of(rooms: Sequence[str]) -> list[Path]:
    """Without those for tests, relative to src/."""
    folder = REPOSITORY / "src"
    found = sorted(path for room in rooms for path in (folder / room).rglob("*.h"))
    return [
        path.relative_to(folder)
        for path in found
        if not path.name.startswith("test_") and not path.name.endswith("_test.h")
    ]


def units(room: str) -> dict[str, list[Path]]:
    """Sources of one folder that are compiled together, as CMake does: the headers of torch are read once for them."""
    grouped: dict[str, list[Path]] = {}
    for folder, members in itertools.groupby(sources_of(room), key=lambda path: path.parent):
        size, number = 0, 0
        for path in members:
            size += (REPOSITORY / "src" / path).stat().st_size
            number, size = (number + 1, 0) if size > UNIT_BYTES else (number, size)
            grouped.setdefault(f"{'_'.join(folder.parts)}_{number}", []).append(path)
    return grouped


def write_units(kit: Path) -> None:
    """The sources that `stoker build-trainer` compiles, and their list."""
    (kit / "units").mkdir()
    listed = []
    for name, members in {**units("train"), "train_main": [Path("train/train_main.cc")]}.items():
        (kit / f"units/{name}.cc").write_text("".join(f'#include "{path}"\n' for path in members))
        entry: dict[str, str | bool] = {"source": f"units/{name}.cc"}
        if any(path.name == "gloo_backend.cc" for path in members):
            entry["include"] = "src/train/gloo_stub"  # torch's wheel has gloo, but not its headers
        if members[0].parts[:2] == ("train", "cuda"):
            entry["cuda"] = True
        listed.append(entry)
    (kit / "kit.json").write_text(json.dumps({"units": listed}, indent=1) + "\n")


def merge_archives(target: Path, archives: Sequence[Path]) -> None:
    script = "".join(f"ADDLIB {archive}\n" for archive in archives)
    run(["ar", "-M"], input=f"CREATE {target}\n{script}SAVE\nEND\n", text=True)
    # Without local symbols, among them nasm's names of source files.
    run(["strip", "--strip-unneeded", "--enable-deterministic-archives", target])
    run(["ranlib", "-D", target])


def make_kit(build: Build) -> Path:
    """What a trainer is built from, in a folder."""
    folder, kit = build.portable / "trainer-library", build.portable / "trainer-kit"
    compile_targets(build, folder, ["stoker_library"], STOKER_GNU="ON")
    shutil.rmtree(kit, ignore_errors=True)
    (kit / "lib").mkdir(parents=True)
    shutil.copytree(REPOSITORY / "include", kit / "include")
    for path in [*headers_of(library_rooms()), *sources_of("train"), Path("train/train_main.cc")]:
        target = kit / "src" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / "src" / path, target)
    for name in ("fmt", "nlohmann"):
        shutil.copytree(build.portable / "include" / name, kit / "libraries" / name)
    write_units(kit)
    found = [build.portable / ("gnu" if name in IN_CPP else "") / "lib" / LIBRARIES[name].file for name in LIBRARIES]
    own = folder / "lib/public/libstoker.a"
    merge_archives(kit / "lib/libstoker.a", [own, *found])
    return kit


def minor_version(torch: Path) -> str:
    found = re.search(r"__version__ = '(\d+\.\d+)", (torch / "version.py").read_text())
    if not found:
        raise PackageError(f"--torch {torch}: no version in version.py")
    return found[1]


def build_trainers(build: Build, kit: Path, torches: Sequence[Path]) -> dict[str, Path]:
    """A folder with the trainer and its GPU part for each torch, by its minor version."""
    trainers = {}
    for torch in torches:
        minor = minor_version(torch)
        headers = build.portable / "cuda-headers" / minor
        run([sys.executable, REPOSITORY / "script/lib/cuda_headers.py", headers, "--torch", minor], stdout=sys.stderr)
        folder = build.portable / f"trainers/torch-{minor}"
        shutil.rmtree(folder, ignore_errors=True)
        words = [build.command, "build-trainer", "--torch", torch, "--kit", kit, "--out", folder / "stoker-train"]
        words += ["--relocatable", "--cuda-headers", headers / "include", "--jobs", str(build.jobs)]
        run([*words, "--compiler", build.portable / "tools/g++"], stdout=sys.stderr)
        trainers[minor] = folder
    return trainers
