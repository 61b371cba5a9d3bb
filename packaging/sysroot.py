"""Writes a g++ for an old glibc and an old libstdc++, for what is linked with libtorch: the trainer.

    python packaging/sysroot.py FOLDER [--arch x86_64]

FOLDER then has sysroot/ and, in tools/, gcc and g++ that use it: this machine's compiler with other headers and libraries.
libtorch's interface is libstdc++'s, so the trainer shares the system's libstdc++ with it, where the rest of Stoker contains libc++.
glibc's headers, start files and names of symbols come from the PyPI wheel `ziglang`. libstdc++.so names the symbols that RHEL 8's
has (GCC 8); newer ones come from libstdc++.a. packaging/libraries.py runs it."""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from check_shipped import NEWEST, version_of
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection
from libraries import GLIBC, BuildError, zig

HIDDEN = 0x8000  # bit of a symbol's version: not the default one
# What Debian's libstdc++.a requires of newer versions of glibc.
NEWER_THAN_GLIBC = """\
#include <sys/random.h>
char __libc_single_threaded = 0;
unsigned arc4random(void) {
  unsigned number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {}
  return number;
}
"""


@dataclass(frozen=True)
class Symbol:
    name: str
    version: str
    kind: str  # STT_FUNC, STT_OBJECT or STT_TLS
    binding: str
    size: int


def version_key(name: str) -> tuple[int, ...]:
    return version_of(name.rpartition("_")[2])


def is_old(version: str) -> bool:
    family, _, number = version.rpartition("_")
    return family in NEWEST and number.replace(".", "").isdigit() and version_of(number) <= NEWEST[family]


def exported(library: Path) -> Iterator[Symbol]:
    with library.open("rb") as file:
        elf = ELFFile(file)
        definitions = next(section for section in elf.iter_sections() if isinstance(section, GNUVerDefSection))
        names = {entry.entry["vd_ndx"]: next(iter(aux)).name for entry, aux in definitions.iter_versions()}
        versions = elf.get_section_by_name(".gnu.version")
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            number = versions.get_symbol(index).entry["ndx"]
            # SHN_ABS: the name of a version itself.
            is_defined = symbol.entry.st_shndx not in ("SHN_UNDEF", "SHN_ABS")
            if is_defined and isinstance(number, int) and number & ~HIDDEN in names:
                info = symbol.entry.st_info
                yield Symbol(symbol.name, names[number & ~HIDDEN], info.type, info.bind, symbol.entry.st_size)


def newest_old(symbols: Iterator[Symbol]) -> list[Symbol]:
    """Each name once, with the newest version that is old enough."""
    found: dict[str, Symbol] = {}
    for symbol in symbols:
        if is_old(symbol.version) and (
            symbol.name not in found or version_key(symbol.version) > version_key(found[symbol.name].version)
        ):
            found[symbol.name] = symbol
    return sorted(found.values(), key=lambda symbol: symbol.name)


def assembly(symbols: list[Symbol]) -> str:
    """Each symbol in a section of its kind: the linker reads kinds and sizes, never the content."""
    kinds = {
        "STT_FUNC": ("function", '.text,"ax",@progbits'),
        "STT_OBJECT": ("object", '.data,"aw",@progbits'),
        "STT_TLS": ("tls_object", '.tdata,"awT",@progbits'),
    }
    lines = []
    for symbol in symbols:
        if symbol.kind in kinds:
            kind, section = kinds[symbol.kind]
            binding = "weak" if symbol.binding == "STB_WEAK" else "globl"
            size = max(symbol.size, 1)
            lines.append(
                f".section {section}\n.{binding} {symbol.name}\n.type {symbol.name}, @{kind}\n"
                f".size {symbol.name}, {size}\n{symbol.name}: .zero {size}\n"
            )
    return "".join(lines) + '.section .note.GNU-stack,"",@progbits\n'


def version_script(symbols: list[Symbol]) -> str:
    by_version: dict[str, list[str]] = {}
    for symbol in symbols:
        by_version.setdefault(symbol.version, []).append(symbol.name)
    return "".join(
        f"{version} {{ {' '.join(f'{name};' for name in by_version[version])} }};\n"
        for version in sorted(by_version, key=lambda name: (name.rpartition("_")[0], version_key(name)))
    )


def run(words: list[str | Path], **options) -> subprocess.CompletedProcess[str]:  # type: ignore[no-untyped-def]
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True, **options)
    if done.returncode:
        raise BuildError(f"{words[0]}: exit {done.returncode}\n{done.stderr[-4000:]}")
    return done


def ask_gcc(question: str) -> Path:
    return Path(run(["g++", question]).stdout.strip()).resolve()


def write_glibc(target: Path, arch: str) -> None:
    """Headers, start files and libraries to link with, as zig itself links with them."""
    scratch = target / "scratch"
    scratch.mkdir()
    (scratch / "empty.c").write_text("int main(void) { return 0; }\n")
    folders = {f"ZIG_{kind}_CACHE_DIR": str(scratch / "cache") for kind in ("GLOBAL", "LOCAL")}
    words = [zig(), "cc", "-target", f"{arch}-linux-gnu.{GLIBC}", "-fPIE", "-pie", "empty.c", "-o", "empty"]
    linked = run(words, cwd=scratch, env=os.environ | folders | {"ZIG_VERBOSE_LINK": "1"}).stderr
    files = {Path(word).name: scratch / word for word in linked.splitlines()[-1].split()}
    libraries = target / f"usr/lib/{arch}-linux-gnu"
    libraries.mkdir(parents=True)
    for name, file in files.items():
        if re.fullmatch(r"S?crt1\.o|lib\w+\.so\.\d|libc_nonshared\.a", name):
            shutil.copy(file, libraries / name)
    if not (libraries / "Scrt1.o").is_file() or not (libraries / "libc.so.6").is_file():
        raise BuildError(f"ziglang names no start file and no C library when it links:\n{linked[-2000:]}")
    (libraries / "libc.so").write_text("GROUP ( libc.so.6 libc_nonshared.a )\n")
    for name in ("m", "pthread", "dl", "rt", "util"):
        (file,) = libraries.glob(f"lib{name}.so.*")
        (libraries / f"lib{name}.so").symlink_to(file.name)
    for name in ("crti.o", "crtn.o"):  # the same in each glibc: the frame of _init and _fini
        shutil.copy(ask_gcc(f"-print-file-name={name}"), libraries / name)
    include = zig().parent / "lib/libc/include"
    short = {"x86_64": "x86", "aarch64": "aarch64"}[arch]
    for folder in ("any-linux-any", f"{short}-linux-any", "generic-glibc", f"{short}-linux-gnu"):
        if (include / folder).is_dir():
            shutil.copytree(include / folder, target / "usr/include", dirs_exist_ok=True)
    # libstdc++'s headers use it where it is; zig's refuses to compile for this glibc.
    (target / "usr/include/sys/single_threaded.h").write_text("static const char __libc_single_threaded = 0;\n")
    shutil.rmtree(scratch)


def write_libstdcxx(target: Path, arch: str) -> None:
    libraries = target / f"usr/lib/{arch}-linux-gnu"
    symbols = newest_old(exported(ask_gcc("-print-file-name=libstdc++.so.6")))
    source, script, library = (libraries / name for name in ("old.s", "old.map", "libstdc++.so.6"))
    source.write_text(assembly(symbols))
    script.write_text(version_script(symbols))
    words: list[str | Path] = ["gcc", "-shared", "-nostdlib", "-Wl,-soname,libstdc++.so.6"]
    run([*words, f"-Wl,--version-script={script}", "-o", library, source])
    more = libraries / "more.c"
    more.write_text(NEWER_THAN_GLIBC)
    run(
        [
            "gcc",
            "-O2",
            "-fPIC",
            f"--sysroot={target}",
            f"-D__GLIBC_MINOR__={GLIBC.split('.')[1]}",
            "-c",
            more,
            "-o",
            more.with_suffix(".o"),
        ]
    )
    newer = libraries / "libstdc++-newer.a"
    shutil.copy(ask_gcc("-print-file-name=libstdc++.a"), newer)
    run(["ar", "q", newer, more.with_suffix(".o")])
    (libraries / "libstdc++.so").write_text("INPUT ( libstdc++.so.6 libstdc++-newer.a )\n")
    for file in (source, script, more, more.with_suffix(".o")):
        file.unlink()
    # Its headers.
    version = run(["g++", "-dumpversion"]).stdout.strip()
    for folder in (f"c++/{version}", f"{arch}-linux-gnu/c++/{version}"):
        shutil.copytree(Path("/usr/include") / folder, target / "usr/include" / folder, symlinks=True)
    # What configuring libstdc++ found in this machine's glibc: functions of 2.30.
    configuration = target / f"usr/include/{arch}-linux-gnu/c++/{version}/bits/c++config.h"
    newer = ("COND_CLOCKWAIT", "MUTEX_CLOCKLOCK", "RWLOCK_CLOCKLOCK")
    lines = "".join(f"#undef _GLIBCXX_USE_PTHREAD_{name}\n" for name in newer)
    configuration.write_text(configuration.read_text() + lines)


def write_tools(folder: Path, target: Path, arch: str) -> None:
    """Compilers that search the sysroot before their own folders."""
    libraries = target / f"usr/lib/{arch}-linux-gnu"
    words = f"--sysroot={target} -B{libraries} -L{libraries} -D__GLIBC_MINOR__={GLIBC.split('.')[1]}"
    (folder / "tools").mkdir(exist_ok=True)
    version = run(["g++", "-dumpversion"]).stdout.strip()
    headers = (f"c++/{version}", f"{arch}-linux-gnu/c++/{version}", f"c++/{version}/backward")
    # --sysroot does not move g++'s own headers.
    own = "".join(f" -isystem {target}/usr/include/{folder}" for folder in headers)
    for name, more in {"gcc": "", "g++": f" -nostdinc++{own}"}.items():
        tool = folder / "tools" / name
        tool.write_text(f'#!/bin/sh\nexec {name} {words}{more} "$@"\n')
        tool.chmod(0o755)


def recipe(arch: str) -> str:
    """What decides over the result."""
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    compiler = run(["g++", "--version"]).stdout.splitlines()[0]
    return f"{own} {arch} {GLIBC} {compiler} {zig().stat().st_size}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", choices=("x86_64", "aarch64"), default="x86_64")
    given = parser.parse_args()
    folder = given.folder.resolve()
    target, stamp = folder / "sysroot", folder / "done/sysroot"
    try:
        if stamp.is_file() and stamp.read_text() == recipe(given.arch):
            return 0
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        write_glibc(target, given.arch)
        write_libstdcxx(target, given.arch)
        write_tools(folder, target, given.arch)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(recipe(given.arch))
    except (OSError, BuildError) as error:
        print(f"packaging/sysroot.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
