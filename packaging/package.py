"""Builds what Stoker ships: a tarball with the command, and a wheel for each Python. script/package runs it.

    python packaging/package.py [--python P]... [--torch FOLDER]... [--arch x86_64|aarch64] [--out FOLDER] [--jobs N]

The libraries come from packaging/libraries.py. A --python is a program (python3.12), whose headers the module is compiled with."""

import argparse
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nanobind
from building import OWN, REPOSITORY, Build, PackageError, compile_targets, log, run
from trainer_kit import build_trainers, make_kit
from wheel.wheelfile import WheelFile

# Every Python that the module is written for; 3.12's stable ABI serves the later ones.
PYTHONS = ((3, 10), (3, 11), (3, 12))
MANYLINUX = "manylinux_2_28"
# What the wheel's and tarball's files are dated: a date of the build would differ between two builds. Zip begins in 1980.
DATED = 315532800
QUERY = """
import json, platform, sys, sysconfig
print(json.dumps({
    "version": sys.version_info[:2],
    "implementation": platform.python_implementation(),
    "headers": sysconfig.get_path("include"),
    "configuration": sysconfig.get_config_h_filename(),
    "multiarch": sysconfig.get_config_var("MULTIARCH") or "",
    "threaded": not sysconfig.get_config_var("Py_GIL_DISABLED"),
}))
"""


@dataclass(frozen=True)
class Python:
    """An interpreter to build a module for."""

    version: tuple[int, int]
    headers: Path
    configuration: Path  # pyconfig.h

    @property
    def digits(self) -> str:
        return f"{self.version[0]}{self.version[1]}"

    @property
    def tag(self) -> str:
        """Interpreter and ABI of the wheel's name (PEP 425)."""
        return f"cp{self.digits}-abi3" if self.version >= (3, 12) else f"cp{self.digits}-cp{self.digits}"


def examine(program: str) -> Python:
    try:
        answer = subprocess.run([program, "-c", QUERY], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise PackageError(f"--python {program}: cannot be run: {error}\n  try: --python /usr/bin/python3.11") from None
    found = json.loads(answer)
    version = (int(found["version"][0]), int(found["version"][1]))
    headers = Path(found["headers"])
    if found["implementation"] != "CPython" or not found["threaded"] or version < PYTHONS[0]:
        raise PackageError(
            f"--python {program}: {found['implementation']} {version[0]}.{version[1]}: expected CPython 3.10 or later"
        )
    if not (headers / "Python.h").is_file():
        raise PackageError(f"--python {program}: no {headers}/Python.h\n  try: apt-get install python3-dev")
    # Debian's is a file that includes the one of the architecture, in a separate folder.
    own = headers.parent / found["multiarch"] / headers.name / "pyconfig.h"
    return Python(version, headers, own if own.is_file() else Path(found["configuration"]))


def chosen(programs: Sequence[str]) -> list[Python]:
    """One interpreter for each module: of several with the stable ABI, the oldest."""
    by_tag: dict[str, Python] = {}
    for python in sorted((examine(program) for program in programs), key=lambda python: python.version):
        by_tag.setdefault("abi3" if python.version >= (3, 12) else python.tag, python)
    return list(by_tag.values())


def not_built(pythons: Sequence[Python]) -> list[str]:
    """The Pythons that none of the wheels is for."""
    have = {python.version for python in pythons}
    missing = [f"{major}.{minor}" for major, minor in PYTHONS[:-1] if (major, minor) not in have]
    oldest_stable = min((version for version in have if version >= PYTHONS[-1]), default=None)
    if oldest_stable is None:
        missing.append("3.12 and later")
    return missing


def copy_headers(build: Build, python: Python) -> Path:
    """A folder with the headers of an interpreter and nothing else of this machine."""
    target = build.portable / "python" / python.digits
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(python.headers, target)
    shutil.copy(python.configuration, target / "pyconfig.h")
    return target


def compile_libraries(build: Build) -> None:
    words = [sys.executable, OWN / "libraries.py", build.portable, "--arch", build.arch, "--jobs", str(build.jobs)]
    run([*words, *(["--gnu"] if build.has_trainers else [])])


def compile_command(build: Build, pythons: Sequence[Python]) -> None:
    headers = ";".join(f"{python.digits}={copy_headers(build, python)}" for python in pythons)
    targets = ["stoker", *(f"stoker_python_{python.digits}" for python in pythons)]
    options = {"STOKER_PYTHONS": headers, "STOKER_NANOBIND": Path(nanobind.__file__).parent}
    compile_targets(build, build.folder, targets, **options)


COMPLETIONS = {
    "bash": "share/bash-completion/completions/stoker",
    "zsh": "share/zsh/site-functions/_stoker",
    "fish": "share/fish/vendor_completions.d/stoker.fish",
}


def described(build: Build) -> dict[str, bytes]:
    """What the command prints about itself: completions, man pages and the schema of job files."""
    program = build.command if build.arch == os.uname().machine else REPOSITORY / "build/release/bin/stoker"

    def output(*words: str | Path) -> bytes:
        try:
            return subprocess.run([program, *words], capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise PackageError(f"{program} {' '.join(map(str, words))}: {error}\n  try: script/build stoker") from None

    files = {path: output("completion", shell) for shell, path in COMPLETIONS.items()}
    files["share/stoker/job.schema.json"] = output("schema", "job")
    with tempfile.TemporaryDirectory() as folder:
        output("manual", "--all", folder)
        files |= {f"share/man/man1/{path.name}": path.read_bytes() for path in sorted(Path(folder).iterdir())}
    return files


Files = dict[str, tuple[bytes, int]]  # path: content and mode


def in_folder(prefix: str, folder: Path) -> Files:
    """All files of a folder, below `prefix`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{prefix}/{path.relative_to(folder)}": (path.read_bytes(), 0o644) for path in paths}


def share(build: Build) -> Files:
    """The files beside the command, by their path under the prefix."""
    files = {path: (content, 0o644) for path, content in described(build).items()}
    files |= in_folder("share/stoker/sites", REPOSITORY / "sites")
    modules, own = "share/stoker/modulefiles", OWN / "modulefiles"
    notices = "".join(
        f"{line}\n\n{(build.portable / 'notices' / line.split()[0]).read_text()}\n\n"
        for line in (build.portable / "libraries.txt").read_text().splitlines()
    )
    files["share/doc/stoker/notices.txt"] = (notices.encode(), 0o644)
    copied = {
        f"{modules}/lmod/stoker/{build.version}.lua": own / "stoker.lua",
        f"{modules}/tcl/stoker/{build.version}": own / "stoker.tcl",
        "share/stoker/smoke.py": REPOSITORY / "python/stoker/smoke.py",
        "share/doc/stoker/LICENSE": REPOSITORY / "LICENSE",
        "share/doc/stoker/libraries.txt": build.portable / "libraries.txt",
    }
    return files | {path: (source.read_bytes(), 0o644) for path, source in copied.items()}


def prefix(build: Build, kit: Path | None, trainers: dict[str, Path]) -> Files:
    """All files but the command, by their path under the prefix."""
    files = share(build)
    if kit:
        files |= in_folder("share/stoker/trainer", kit)
    for version, trainer in trainers.items():
        for file in ("stoker-train", "stoker-train-cuda.so"):
            files[f"libexec/stoker/torch-{version}/{file}"] = ((trainer / file).read_bytes(), 0o755)
    return files


def write_tarball(build: Build, files: Files, out: Path) -> Path:
    name = f"stoker-{build.version}-linux-{build.arch}"
    target = out / f"{name}.tar.gz"
    members = files | {"bin/stoker": (build.command.read_bytes(), 0o755)}
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path, (content, mode) in sorted(members.items()):
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size, info.mode, info.mtime = len(content), mode, DATED
            tar.addfile(info, io.BytesIO(content))
    return target


def metadata(build: Build) -> str:
    readme = (REPOSITORY / "docs/python.md").read_text()
    lines = [
        "Metadata-Version: 2.1",
        "Name: stoker",
        f"Version: {build.version}",
        "Summary: Feeds a training from sharded datasets: decoded, shuffled, exactly resumable, without worker processes",
        "Requires-Python: >=3.10",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*lines, "", readme])


def wheel_files(build: Build, python: Python, files: Files) -> Iterator[tuple[str, bytes, int]]:
    """Path in the wheel, content and mode of each file."""
    for path in sorted((REPOSITORY / "python/stoker").iterdir()):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield f"stoker/{path.name}", path.read_bytes(), 0o644
    for path in sorted((REPOSITORY / "python/hydra_plugins").glob("*.py")):
        yield f"hydra_plugins/{path.name}", path.read_bytes(), 0o644
    suffix = "abi3" if python.version >= (3, 12) else f"cpython-{python.digits}-{build.arch}-linux-gnu"
    yield f"stoker/_core.{suffix}.so", (build.folder / f"modules/_core.{suffix}.so").read_bytes(), 0o755
    data = f"stoker-{build.version}.data"
    yield f"{data}/scripts/stoker", build.command.read_bytes(), 0o755
    for name, (content, mode) in files.items():
        yield f"{data}/data/{name}", content, mode
    information = f"stoker-{build.version}.dist-info"
    platform = f"{MANYLINUX}_{build.arch}"
    tags = f"Wheel-Version: 1.0\nGenerator: stoker\nRoot-Is-Purelib: false\nTag: {python.tag}-{platform}\n"
    for name in ("LICENSE", "notices.txt"):
        yield f"{information}/licenses/{name}", *files[f"share/doc/stoker/{name}"]
    yield f"{information}/METADATA", metadata(build).encode(), 0o644
    yield f"{information}/WHEEL", tags.encode(), 0o644


def write_wheel(build: Build, python: Python, files: Files, out: Path) -> Path:
    target = out / f"stoker-{build.version}-{python.tag}-{MANYLINUX}_{build.arch}.whl"
    target.unlink(missing_ok=True)
    moment = time.gmtime(DATED)[:6]
    os.environ["SOURCE_DATE_EPOCH"] = str(DATED)  # for RECORD, which the package `wheel` writes itself
    with WheelFile(str(target), "w") as wheel:
        for name, content, mode in wheel_files(build, python, files):
            info = zipfile.ZipInfo(name, moment)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            wheel.writestr(info, content)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", action="append", help="build a wheel for this Python (may be repeated; default: the one of .venv)"
    )
    parser.add_argument("--torch", action="append", type=Path, help="ship a trainer for the torch in this folder")
    parser.add_argument("--arch", choices=("x86_64", "aarch64"), default="x86_64")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dist")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    try:
        pythons = chosen(given.python or [str(REPOSITORY / ".venv/bin/python")])
        version = (REPOSITORY / "VERSION").read_text().split()[0]
        build = Build(given.arch, given.jobs, version, has_trainers=bool(given.torch))
        compile_libraries(build)
        compile_command(build, pythons)
        kit = make_kit(build) if build.has_trainers else None
        trainers = build_trainers(build, kit, given.torch) if kit else {}
        files = prefix(build, kit, trainers)
        given.out.mkdir(parents=True, exist_ok=True)
        written = [write_tarball(build, files, given.out)]
        written += [write_wheel(build, python, files, given.out) for python in pythons]
    except PackageError as error:
        log(f"script/package: {error}")
        return 1
    for file in written:
        print(file)
    if not trainers:
        log("not built: trainers (--torch), and the sources that stoker build-trainer needs")
    if missing := not_built(pythons):
        log(f"not built: wheels for Python {', '.join(missing)} (--python)")
    checker = OWN / "check_shipped.py"
    return subprocess.run([sys.executable, checker, *written, "--path", str(build.portable)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
