"""Checks what is shipped: tarballs, wheels and programs.

    python packaging/check_shipped.py FILE... [--path FOLDER]...

Each program and shared library in FILE asks for symbols of RHEL 8 at most, needs only libraries that every system has, and contains
no path of the machine that built it (`--path`, this repository and the home folder). A wheel or tarball stays below its size.
Findings go to standard output, one a line; the exit code is 1 if there are any."""

import argparse
import io
import re
import stat
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

REPOSITORY = Path(__file__).resolve().parent.parent
# RHEL 8: glibc 2.28 and GCC 8's libstdc++ (which only the trainer uses).
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
SYSTEM = re.compile(r"^(lib(c|m|pthread|dl|rt)\.so\.\d|ld-linux-[\w-]+\.so\.\d)$")
TRAINER = re.compile(r"^(lib(stdc\+\+|gcc_s|gomp)\.so\.\d|lib(torch|torch_cpu|c10)\.so)$")
MEBIBYTE = 1 << 20
FIRST_YEAR = 1980  # of a zip: the date of all files
LARGEST = {"stoker": 25 * MEBIBYTE, ".whl": 40 * MEBIBYTE, ".tar.gz": 40 * MEBIBYTE}


@dataclass(frozen=True)
class Entry:
    """A file in a tarball or wheel, or a file alone."""

    name: str
    content: bytes


def version_of(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def check_symbols(elf: ELFFile, name: str) -> Iterator[str]:
    for section in elf.iter_sections():
        if not isinstance(section, GNUVerNeedSection):
            continue
        for library, needs in section.iter_versions():
            for need in needs:
                kind, _, number = need.name.partition("_")
                newest = NEWEST.get(kind)
                if newest is None or not re.fullmatch(r"[\d.]+", number):
                    yield f"{name}: needs {need.name} of {library.name}, which is not for programs"
                elif version_of(number) > newest:
                    limit = ".".join(str(part) for part in newest)
                    yield f"{name}: needs {need.name} of {library.name}; RHEL 8 has {kind}_{limit} at most"


def check_libraries(elf: ELFFile, name: str) -> Iterator[str]:
    is_trainer = Path(name).name.startswith("stoker-train")
    for section in elf.iter_sections():
        if not isinstance(section, DynamicSection):
            continue
        for tag in section.iter_tags():
            if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                paths = getattr(tag, "runpath", "") or getattr(tag, "rpath", "")
                yield from (
                    f"{name}: looks for libraries in {path}"
                    for path in paths.split(":")
                    if not path.startswith("$ORIGIN")
                )
            if (
                tag.entry.d_tag == "DT_NEEDED"
                and not SYSTEM.match(tag.needed)
                and not (is_trainer and TRAINER.match(tag.needed))
            ):
                yield f"{name}: needs {tag.needed}, which a system may not have"


def check_undefined(elf: ELFFile, name: str) -> Iterator[str]:
    """A module leaves Python's own names to the interpreter, a trainer torch's; any other name without a version is an error."""
    table, versions = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
    if table is None:
        return
    if Path(name).name.startswith("stoker-train"):
        for symbol in table.iter_symbols():
            if symbol.entry.st_shndx == "SHN_UNDEF" and "6stoker" in symbol.name:
                yield f"{name}: {symbol.name} is defined nowhere"
        return
    for index, symbol in enumerate(table.iter_symbols()):
        is_missing = symbol.entry.st_shndx == "SHN_UNDEF" and symbol.entry.st_info.bind == "STB_GLOBAL"
        if not is_missing or re.match(r"_?Py", symbol.name):
            continue
        has_version = versions is not None and versions.get_symbol(index).entry["ndx"] not in (
            "VER_NDX_LOCAL",
            "VER_NDX_GLOBAL",
        )
        if not has_version:
            yield f"{name}: {symbol.name} is defined nowhere"


def check_copying(elf: ELFFile, name: str) -> Iterator[str]:
    """memcpy comes from glibc, which has one for each processor, and not from a compiler's library. Small programs need none."""
    table = elf.get_section_by_name(".dynsym")
    is_own = Path(name).name.startswith(("stoker", "_core")) and elf.stream.seek(0, io.SEEK_END) > MEBIBYTE
    if not is_own or table is None or elf["e_machine"] != "EM_X86_64":
        return
    missing = {symbol.name for symbol in table.iter_symbols() if symbol.entry.st_shndx == "SHN_UNDEF"}
    if not missing & {"memcpy", "memmove"}:
        yield f"{name}: contains its own memcpy, which is slower than glibc's"


def check_program(entry: Entry) -> Iterator[str]:
    try:
        elf = ELFFile(io.BytesIO(entry.content))
        for check in (check_symbols, check_libraries, check_undefined, check_copying):
            yield from check(elf, entry.name)
    except ELFError as error:
        yield f"{entry.name}: not a valid ELF file: {error}"
    limit = LARGEST.get(Path(entry.name).name)
    if limit is not None and len(entry.content) > limit:
        yield f"{entry.name}: {len(entry.content) / MEBIBYTE:.1f} MiB, at most {limit // MEBIBYTE} MiB"


def check_paths(entry: Entry, paths: list[str]) -> Iterator[str]:
    for path in paths:
        at = entry.content.find(path.encode())
        if at >= 0:
            end = re.compile(rb"[^ -~]").search(entry.content, at)
            found = entry.content[at : end.start() if end else None][:120].decode("ascii", "replace")
            yield f"{entry.name}: contains a path of the machine that built it: {found}"


def check_member(name: str, is_link: bool, mode: int, year: int) -> Iterator[str]:
    if name.startswith("/") or ".." in Path(name).parts:
        yield f"{name}: leaves the folder it is unpacked in"
    if is_link:
        yield f"{name}: is a link, which some archives' readers refuse"
    if year != FIRST_YEAR:
        yield f"{name}: has the time of the build, which differs between two builds"
    # The package `wheel` writes RECORD with that mode; installers set their own.
    if name.endswith(".dist-info/RECORD"):
        mode &= ~stat.S_IWGRP
    if mode & (stat.S_IWGRP | stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID):
        yield f"{name}: has mode {stat.S_IMODE(mode):o}"


def read(file: Path) -> tuple[list[Entry], list[str]]:
    """The files of an archive, or the one file, and what is wrong with the archive's list."""
    entries, findings = [], []
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            for item in archive.infolist():
                findings += check_member(item.filename, False, item.external_attr >> 16, item.date_time[0])
                entries.append(Entry(item.filename, archive.read(item)))
    elif file.name.endswith(".tar.gz"):
        with tarfile.open(file) as tar:
            for member in tar:
                is_link = member.issym() or member.islnk()
                findings += check_member(member.name, is_link, member.mode, time.gmtime(member.mtime).tm_year)
                content = tar.extractfile(member) if member.isfile() else None
                if content is not None:
                    entries.append(Entry(member.name, content.read()))
    else:
        entries.append(Entry(file.name, file.read_bytes()))
    return entries, findings


def check(file: Path, paths: list[str]) -> list[str]:
    """What is wrong with one file, each finding with the file's name."""
    entries, findings = read(file)
    size = file.stat().st_size
    for ending, limit in LARGEST.items():
        if file.name.endswith(ending) and ending.startswith(".") and size > limit:
            findings.append(f"{size / MEBIBYTE:.1f} MiB, at most {limit // MEBIBYTE} MiB")
    programs = [entry for entry in entries if entry.content.startswith(b"\x7fELF")]
    if not programs:
        findings.append("contains no program and no library")
    for entry in programs:
        findings += check_program(entry)
    for entry in entries:
        findings += check_paths(entry, paths)
    return [f"{file.name}: {finding}" for finding in findings]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--path", action="append", default=[], help="a folder whose name must not be inside")
    given = parser.parse_args()
    home = Path.home()
    paths = [str(REPOSITORY), *given.path, *([f"{home}/"] if home != Path("/") else [])]
    findings = []
    for file in given.file:
        try:
            findings += check(file, paths)
        except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
            findings.append(f"{file}: cannot be read: {str(error).splitlines()[0]}")
    print("".join(f"{finding}\n" for finding in findings), end="")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
