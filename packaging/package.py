"""Builds what Stoker ships: a tarball with the command, and a wheel for each Python. script/package runs it.

    python packaging/package.py [--python P]... [--arch x86_64|aarch64] [--out FOLDER] [--jobs N]

The libraries come from packaging/libraries.py. A --python is a program (python3.12), whose headers the module is compiled with."""

import argparse
import functools
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
from wheel.wheelfile import WheelFile

REPOSITORY = Path(__file__).resolve().parent.parent
# Every Python that the module is written for; 3.12's stable ABI serves the later ones.
PYTHONS = ((3, 10), (3, 11), (3, 12))
MANYLINUX = "manylinux_2_28"
# What the wheel's and tarball's files are dated: a date of the build would differ between two builds. Zip begins in 1980.
DATED = 315532800
QUERY = """
import json, platform, sys, sysconfig
print(json.dumps({"version": sys.version_info[:2], "implementation": platform.python_implementation(),
                  "headers": sysconfig.get_path("include"), "configuration": sysconfig.get_config_h_filename(), "threaded": not sysconfig.get_config_var("Py_GIL_DISABLED")}))
"""


class PackageError(Exception):
    """Why nothing was packaged, with a cure."""


@dataclass(frozen=True)
class Python:
    """An interpreter to build a module for."""

    version: tuple[int, int]
    headers: Path
    configuration: Path  # pyconfig.h; Debian's is not among the headers, which have a file that includes it

    @property
    def digits(self) -> str:
        return f"{self.version[0]}{self.version[1]}"

    @property
    def tag(self) -> str:
        """Interpreter and ABI of the wheel's name (PEP 425)."""
        return f"cp{self.digits}-abi3" if self.version >= (3, 12) else f"cp{self.digits}-cp{self.digits}"


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(words: Sequence[str | Path], **options) -> None:  # type: ignore[no-untyped-def]
    done = subprocess.run([str(word) for word in words], check=False, **options)
    if done.returncode:
        raise PackageError(f"{words[0]}: exit {done.returncode}")


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
    return Python(version, headers, Path(found["configuration"]))


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


@dataclass(frozen=True)
class Build:
    arch: str
    jobs: int
    version: str

    @property
    def portable(self) -> Path:
        return REPOSITORY / "build/portable" / self.arch

    @property
    def folder(self) -> Path:
        return self.portable / "stoker"

    @property
    def command(self) -> Path:
        return self.folder / "bin/stoker"


def copy_headers(build: Build, python: Python) -> Path:
    """A folder with the headers of an interpreter and nothing else of this machine."""
    target = build.portable / "python" / python.digits
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(python.headers, target)
    shutil.copy(python.configuration, target / "pyconfig.h")
    return target


def compile_all(build: Build, pythons: Sequence[Python]) -> None:
    own = Path(__file__).resolve().parent
    run([sys.executable, own / "libraries.py", build.portable, "--arch", build.arch, "--jobs", str(build.jobs)])
    headers = ";".join(f"{python.digits}={copy_headers(build, python)}" for python in pythons)
    options = {
        "CMAKE_TOOLCHAIN_FILE": own / "toolchain.cmake",
        "CMAKE_BUILD_TYPE": "Release",
        "STOKER_PORTABLE": build.portable,
        "STOKER_ARCH": build.arch,
        "STOKER_TORCH": "OFF",
        "STOKER_TESTS": "OFF",
        "STOKER_BENCH": "OFF",
        "STOKER_PYTHON": "OFF",
        "STOKER_PYTHONS": headers,
        "STOKER_NANOBIND": Path(nanobind.__file__).parent,
    }
    words = [f"-D{name}={value}" for name, value in options.items()]
    run(["cmake", "-S", REPOSITORY, "-B", build.folder, "-G", "Ninja", *words], stdout=subprocess.DEVNULL)
    targets = ["stoker", *(f"stoker_python_{python.digits}" for python in pythons)]
    run(["cmake", "--build", build.folder, "-j", str(build.jobs), "--target", *targets], stdout=sys.stderr)


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


@functools.cache
def share(build: Build) -> dict[str, bytes]:
    """The files beside the command, by their path under the prefix."""
    files = described(build)
    files |= {f"share/stoker/sites/{path.name}": path.read_bytes() for path in sorted((REPOSITORY / "sites").iterdir())}
    modules, own = "share/stoker/modulefiles", Path(__file__).resolve().parent / "modulefiles"
    files[f"{modules}/lmod/stoker/{build.version}.lua"] = (own / "stoker.lua").read_bytes()
    files[f"{modules}/tcl/stoker/{build.version}"] = (own / "stoker.tcl").read_bytes()
    files["share/stoker/smoke.py"] = (REPOSITORY / "python/stoker/smoke.py").read_bytes()
    notices = "".join(
        f"{line}\n\n{(build.portable / 'notices' / line.split()[0]).read_text()}\n\n"
        for line in (build.portable / "libraries.txt").read_text().splitlines()
    )
    files["share/doc/stoker/LICENSE"] = (REPOSITORY / "LICENSE").read_bytes()
    files["share/doc/stoker/libraries.txt"] = (build.portable / "libraries.txt").read_bytes()
    files["share/doc/stoker/notices.txt"] = notices.encode()
    return files


def write_tarball(build: Build, out: Path) -> Path:
    name = f"stoker-{build.version}-linux-{build.arch}"
    target = out / f"{name}.tar.gz"
    members = {f"{name}/bin/stoker": (build.command.read_bytes(), 0o755)}
    members |= {f"{name}/{path}": (content, 0o644) for path, content in share(build).items()}
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path, (content, mode) in sorted(members.items()):
            info = tarfile.TarInfo(path)
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


def wheel_files(build: Build, python: Python) -> Iterator[tuple[str, bytes, int]]:
    """Path in the wheel, content and mode of each file."""
    for path in sorted((REPOSITORY / "python/stoker").iterdir()):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield f"stoker/{path.name}", path.read_bytes(), 0o644
    suffix = "abi3" if python.version >= (3, 12) else f"cpython-{python.digits}-{build.arch}-linux-gnu"
    yield f"stoker/_core.{suffix}.so", (build.folder / f"modules/_core.{suffix}.so").read_bytes(), 0o755
    data = f"stoker-{build.version}.data"
    yield f"{data}/scripts/stoker", build.command.read_bytes(), 0o755
    for name, content in share(build).items():
        yield f"{data}/data/{name}", content, 0o644
    information = f"stoker-{build.version}.dist-info"
    platform = f"{MANYLINUX}_{build.arch}"
    tags = f"Wheel-Version: 1.0\nGenerator: stoker\nRoot-Is-Purelib: false\nTag: {python.tag}-{platform}\n"
    yield f"{information}/METADATA", metadata(build).encode(), 0o644
    yield f"{information}/WHEEL", tags.encode(), 0o644


def write_wheel(build: Build, python: Python, out: Path) -> Path:
    target = out / f"stoker-{build.version}-{python.tag}-{MANYLINUX}_{build.arch}.whl"
    target.unlink(missing_ok=True)
    moment = time.gmtime(DATED)[:6]
    with WheelFile(str(target), "w") as wheel:
        for name, content, mode in wheel_files(build, python):
            info = zipfile.ZipInfo(name, moment)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            wheel.writestr(info, content)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", action="append", help="build a wheel for this Python (may be repeated; default: the one of .venv)"
    )
    parser.add_argument("--arch", choices=("x86_64", "aarch64"), default="x86_64")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dist")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    try:
        pythons = chosen(given.python or [str(REPOSITORY / ".venv/bin/python")])
        version = (REPOSITORY / "VERSION").read_text().split()[0]
        build = Build(given.arch, given.jobs, version)
        compile_all(build, pythons)
        given.out.mkdir(parents=True, exist_ok=True)
        files = [write_tarball(build, given.out), *(write_wheel(build, python, given.out) for python in pythons)]
    except PackageError as error:
        log(f"script/package: {error}")
        return 1
    for file in files:
        print(file)
    missing = not_built(pythons)
    if missing:
        log(f"not built: wheels for Python {', '.join(missing)} (--python)")
    checker = Path(__file__).resolve().parent / "check_shipped.py"
    return subprocess.run([sys.executable, checker, *files, "--path", str(build.portable)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
