"""Builds the third-party libraries of a portable Stoker from Debian's source packages: static, position-independent, for an old
glibc. The compiler is clang with libc++ from the PyPI wheel `ziglang`, which has glibc's headers and the names of its symbols for
each version, so the result does not depend on the machine.

    python packaging/libraries.py FOLDER [--arch x86_64|aarch64] [--jobs N]

FOLDER then has tools/ (cc, c++, ar, ranlib: the compiler with its target), include/, lib/ and libraries.txt (what was built, with
versions). What is there already is not built again. script/package runs it."""

import argparse
import hashlib
import inspect
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

GLIBC = "2.28"  # RHEL 8; the oldest that supported distributions of clusters have
DEBIAN = "bookworm"
# Headers without a library, which do not depend on the architecture: from the packages installed for the native build.
HEADERS = ("fmt", "nlohmann", "CLI", "hwy", "xxhash.h")
# The names of files in an object would differ between two folders that it is built in.
FLAGS = "-O2 -fPIC -g0 -fvisibility=default"


class BuildError(Exception):
    """A step that failed, with the end of its output."""


@dataclass(frozen=True)
class Place:
    """Where and for what the libraries are built."""

    folder: Path
    arch: str
    jobs: int
    is_gnu: bool = False  # by g++ with libstdc++ (packaging/sysroot.py) instead of clang with libc++

    @property
    def prefix(self) -> Path:
        return self.folder / "gnu" if self.is_gnu else self.folder

    @property
    def tools(self) -> Path:
        return self.folder / "tools"

    @property
    def triple(self) -> str:
        return f"{self.arch}-linux-gnu"

    def environment(self) -> dict[str, str]:
        tools = self.tools
        return os.environ | {
            "CC": f"{tools}/{'gcc' if self.is_gnu else 'cc'}",
            "CXX": f"{tools}/{'g++' if self.is_gnu else 'c++'}",
            "AR": f"{tools}/ar",
            "RANLIB": f"{tools}/ranlib",
            "CFLAGS": FLAGS,
            "CXXFLAGS": FLAGS,
            "LC_ALL": "C",
            "SOURCE_DATE_EPOCH": "0",
            "ZIG_GLOBAL_CACHE_DIR": str(self.folder / "zig-cache"),
            "ZIG_LOCAL_CACHE_DIR": str(self.folder / "zig-cache"),
        }


def run(place: Place, source: Path, command: Sequence[str | Path]) -> str:
    """Runs one step in the folder of a source and returns its output; raises BuildError with the last lines of it."""
    words = [str(word) for word in command]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(
            words, cwd=source, env=place.environment(), text=True, errors="replace", check=False, **piped
        )
    except FileNotFoundError:
        raise BuildError(f"{words[0]}: not found (in {source})\n  try: script/bootstrap --for package") from None
    if done.returncode:
        raise BuildError(f"{shlex.join(words)} (in {source}): exit {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def cmake(place: Place, source: Path, *options: str) -> None:
    system = [
        f"-DCMAKE_TOOLCHAIN_FILE={Path(__file__).resolve().parent / 'toolchain.cmake'}",
        f"-DSTOKER_PORTABLE={place.folder}",
        f"-DSTOKER_ARCH={place.arch}",
        f"-DSTOKER_GNU={'ON' if place.is_gnu else 'OFF'}",
        f"-DCMAKE_INSTALL_PREFIX={place.prefix}",
        f"-DCMAKE_INSTALL_LIBDIR={place.prefix}/lib",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DBUILD_SHARED_LIBS=OFF",
        "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",  # CMake 4 refuses the older ones that some of them ask for
        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        f"-DCMAKE_C_FLAGS={FLAGS}",
        f"-DCMAKE_CXX_FLAGS={FLAGS}",
    ]
    run(place, source, ["cmake", "-G", "Ninja", "-S", source, "-B", source / "build-portable", *system, *options])
    run(place, source, ["cmake", "--build", source / "build-portable", "-j", str(place.jobs)])
    run(place, source, ["cmake", "--install", source / "build-portable"])


def autotools(place: Place, source: Path, *options: str) -> None:
    if not (source / "configure").is_file():
        run(place, source, ["autoreconf", "--install", "--force"])
    folders = (f"--host={place.triple}", f"--prefix={place.folder}", f"--libdir={place.folder}/lib")
    # hwloc has the path of its running daemon's files in the library.
    folders += ("--localstatedir=/var", "--sysconfdir=/etc")
    kind = ("--disable-shared", "--enable-static", "--with-pic")
    run(place, source, ["./configure", *folders, *kind, *options])
    run(place, source, ["make", f"-j{place.jobs}"])
    run(place, source, ["make", "install"])


def install(place: Place, files: Sequence[Path], folder: str) -> None:
    (place.prefix / folder).mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, place.prefix / folder / file.name)


def make(place: Place, source: Path, library: str, headers: Sequence[str], *words: str) -> None:
    """A plain makefile whose variables name the tools."""
    tools = [
        f"{name}={value}" for name, value in place.environment().items() if name in ("CC", "AR", "RANLIB", "CFLAGS")
    ]
    run(place, source, ["make", f"-j{place.jobs}", *words, *tools])
    install(place, [source / library], "lib")
    install(place, [source / header for header in headers], "include")


def zlib(place: Place, source: Path) -> None:
    run(place, source, ["./configure", "--static", f"--prefix={place.folder}"])
    make(place, source, "libz.a", ["zlib.h", "zconf.h"], "libz.a")


def zstd(place: Place, source: Path) -> None:
    headers = ["lib/zstd.h", "lib/zstd_errors.h", "lib/zdict.h"]
    options = ("ZSTD_LEGACY_SUPPORT=0", "CPPFLAGS=-DZSTD_MULTITHREAD")
    make(place, source, "lib/libzstd.a", headers, "-C", "lib", "libzstd.a", *options)


def lz4(place: Place, source: Path) -> None:
    make(place, source, "lib/liblz4.a", ["lib/lz4.h", "lib/lz4hc.h", "lib/lz4frame.h"], "-C", "lib", "liblz4.a")


def deflate(place: Place, source: Path) -> None:
    make(place, source, "libdeflate.a", ["libdeflate.h"], "libdeflate.a")


def snappy(place: Place, source: Path) -> None:
    # Debian's sources build the static one beside the shared one.
    cmake(place, source, "-DSNAPPY_BUILD_TESTS=OFF", "-DSNAPPY_BUILD_BENCHMARKS=OFF", "-DBUILD_SHARED_LIBS=ON")
    for shared in (place.prefix / "lib").glob("libsnappy.so*"):
        shared.unlink()


def blosc(place: Place, source: Path) -> None:
    external = [f"-DPREFER_EXTERNAL_{name}=ON" for name in ("LZ4", "SNAPPY", "ZLIB", "ZSTD")]
    parts = [f"-DBUILD_{name}=OFF" for name in ("SHARED", "TESTS", "FUZZERS", "BENCHMARKS")]
    cmake(place, source, "-DDEACTIVATE_SNAPPY=OFF", *external, *parts)


def crypto(place: Place, source: Path) -> None:
    """Only SHA-256 is used: most of the rest is left out, which halves the time."""
    without = "shared tests dso engine async legacy module sock srp ct cms ocsp ts cmp rfc3779 ssl tls dtls comp"
    without += (
        " aria bf blake2 camellia cast des idea md4 mdc2 rc2 rc4 rmd160 scrypt seed siphash siv sm2 sm3 sm4 whirlpool"
    )
    options = ["--prefix=/usr", "--openssldir=/etc/ssl", *(f"no-{name}" for name in without.split())]
    run(place, source, ["perl", "Configure", f"linux-{place.arch}", *options])
    run(place, source, ["make", f"-j{place.jobs}", "build_generated"])
    # What the generated one has instead: the time, and the compiler's command line with this machine's folders.
    (source / "crypto/buildinf.h").write_text(
        f'#define PLATFORM "platform: linux-{place.arch}"\n#define DATE "built on: unknown"\n'
        'static const char compiler_flags[] = "compiler: clang";\n'
    )
    run(place, source, ["make", f"-j{place.jobs}", "libcrypto.a"])
    install(place, [source / "libcrypto.a"], "lib")
    install(place, sorted((source / "include/openssl").glob("*.h")), "include/openssl")


def jpeg(place: Place, source: Path) -> None:
    cmake(place, source, "-DENABLE_SHARED=OFF", "-DENABLE_STATIC=ON", "-DWITH_TURBOJPEG=OFF", "-DREQUIRE_SIMD=ON")


def png(place: Place, source: Path) -> None:
    cmake(place, source, "-DPNG_SHARED=OFF", "-DPNG_TESTS=OFF", "-DPNG_EXECUTABLES=OFF")
    (place.folder / "lib/libpng.a").unlink(missing_ok=True)
    (place.folder / "lib/libpng16.a").replace(place.folder / "lib/libpng.a")


def webp(place: Place, source: Path) -> None:
    programs = "ANIM_UTILS CWEBP DWEBP GIF2WEBP IMG2WEBP VWEBP WEBPINFO WEBPMUX EXTRAS LIBWEBPMUX"
    cmake(place, source, *(f"-DWEBP_BUILD_{name}=OFF" for name in programs.split()))


def yaml(place: Place, source: Path) -> None:
    cmake(place, source, "-DBUILD_TESTING=OFF")


def hwloc(place: Place, source: Path) -> None:
    parts = "libxml2 pci libudev opencl cuda nvml rsmi levelzero gl cairo plugins readme doxygen"
    autotools(place, source, *(f"--disable-{name}" for name in parts.split()))


def re2(place: Place, source: Path) -> None:
    """Debian's sources have the programs that write its Unicode tables instead of the tables."""
    for name, program in {"perl_groups": "pl", "unicode_casefold": "py", "unicode_groups": "py"}.items():
        words = ["perl" if program == "pl" else "/usr/bin/python3", f"re2/make_{name}.{program}"]
        (source / f"re2/{name}.cc").write_text(run(place, source, words))
    # Its messages name the source file.
    cmake(place, source, "-DRE2_BUILD_TESTING=OFF", f"-DCMAKE_CXX_FLAGS={FLAGS} -ffile-prefix-map={source}=re2")


@dataclass(frozen=True)
class Library:
    source: str  # Debian's source package
    build: Callable[[Place, Path], None]
    file: str  # in lib/


# A library comes after its dependencies.
LIBRARIES = {
    "zlib": Library("zlib", zlib, "libz.a"),
    "zstd": Library("libzstd", zstd, "libzstd.a"),
    "lz4": Library("lz4", lz4, "liblz4.a"),
    "deflate": Library("libdeflate", deflate, "libdeflate.a"),
    "snappy": Library("snappy", snappy, "libsnappy.a"),
    "blosc": Library("c-blosc", blosc, "libblosc.a"),
    "isal": Library("libisal", autotools, "libisal.a"),
    "sodium": Library("libsodium", autotools, "libsodium.a"),
    "crypto": Library("openssl", crypto, "libcrypto.a"),
    "jpeg": Library("libjpeg-turbo", jpeg, "libjpeg.a"),
    "png": Library("libpng1.6", png, "libpng.a"),
    "webp": Library("libwebp", webp, "libwebp.a"),
    "yaml": Library("libyaml", yaml, "libyaml.a"),
    "hwloc": Library("hwloc", hwloc, "libhwloc.a"),
    "re2": Library("re2", re2, "libre2.a"),
}
# Also built by g++. The remaining libraries are C, which both can link.
IN_CPP = ("snappy", "re2")


def zig() -> Path:
    program = Path(sysconfig.get_path("purelib")) / "ziglang/zig"
    if not program.is_file():
        raise BuildError(f"{program}: not found (the PyPI package ziglang)\n  try: script/bootstrap --for package")
    return program


def compiler_library(place: Place) -> str:
    """GCC's library of missing instructions, for links; "" without GCC for that processor.

    zig's own is one object: a program that needs one function of it gets its memcpy and exp, too, instead of glibc's, which has
    faster ones for each processor."""
    gcc = shutil.which(f"{place.triple}-gcc")
    if gcc is None:
        return ""
    found = subprocess.run([gcc, "-print-libgcc-file-name"], text=True, stdout=subprocess.PIPE, check=True)
    return found.stdout.strip()


def write_tools(place: Place) -> None:
    """cc, c++, ar and ranlib for the target. The compiler's checks of undefined behaviour, its default without -O, are off."""
    target = f"-target {place.triple}.{GLIBC} -fno-sanitize=undefined"
    if place.arch == "x86_64":
        target += " -mcpu=x86_64"  # every processor of that architecture; faster paths are chosen at run time
    place.tools.mkdir(parents=True, exist_ok=True)
    cache = shlex.quote(str(place.folder / "zig-cache"))
    library = shlex.quote(compiler_library(place))
    for name, words in {"cc": f"cc {target}", "c++": f"c++ {target}", "ar": "ar", "ranlib": "ranlib"}.items():
        is_linker = name in ("cc", "c++") and library != "''"
        link = (
            f"case \" $* \" in *' -c '*|*' -S '*|*' -E '*) ;; *' -o '*) set -- \"$@\" {library} ;; esac"
            if is_linker
            else ":"
        )
        text = textwrap.dedent(f"""\
            #!/bin/sh
            export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}
            {link}
            exec {shlex.quote(str(zig()))} {words} "$@"
            """)
        tool = place.tools / name
        if not tool.is_file() or tool.read_text() != text:
            tool.write_text(text)
            tool.chmod(0o755)


def apt(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    """apt-get over a separate list of source packages: the system's configuration is unchanged."""
    lists = place.folder / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::Etc::sourcelist": place.folder / "sources.list",
        "Dir::Etc::sourceparts": "/nonexistent",
        "Dir::State::lists": lists,
        "APT::Sandbox::User": "root",
    }
    words = (*(word for name, value in options.items() for word in ("-o", f"{name}={value}")), *words)
    return subprocess.run(
        ["apt-get", "-q", *words],
        cwd=place.folder / "sources",
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def sources(place: Place) -> dict[str, Path]:
    """Fetches the source packages that are not here and returns their descriptions (*.dsc), by library."""
    folder = place.folder / "sources"
    folder.mkdir(parents=True, exist_ok=True)

    def find() -> dict[str, Path]:
        found = {name: sorted(folder.glob(f"{library.source}_*.dsc")) for name, library in LIBRARIES.items()}
        return {name: paths[-1] for name, paths in found.items() if paths}

    if len(find()) == len(LIBRARIES):
        return find()
    (place.folder / "sources.list").write_text(f"deb-src http://deb.debian.org/debian {DEBIAN} main\n")
    for words in (["update"], ["source", "--download-only", *(library.source for library in LIBRARIES.values())]):
        done = apt(place, *words)
        if done.returncode:
            raise BuildError(f"apt-get {' '.join(words)}: exit {done.returncode}\n{done.stdout[-2000:]}")
    missing = sorted(set(LIBRARIES) - set(find()))
    if missing:
        raise BuildError(f"apt-get source fetched nothing for {', '.join(missing)}")
    return find()


def unpack(place: Place, dsc: Path) -> Path:
    folder = place.folder / "build" / dsc.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # apt-get has compared what it fetched with Debian's signed lists.
    run(place, folder.parent, ["dpkg-source", "--no-check", "-x", dsc, folder])
    return folder


def recipe(place: Place, library: Library) -> str:
    """What decides over the result besides the source: its steps, the compiler and the target."""
    steps = "".join(
        inspect.getsource(step) for step in (library.build, cmake, autotools, make, write_tools, Place.environment)
    )
    return f"{hashlib.sha256((FLAGS + GLIBC + steps).encode()).hexdigest()} {place.arch} {zig().stat().st_size}"


def build(place: Place, name: str, dsc: Path) -> str:
    """Builds a library unless it is there. Returns a line for libraries.txt."""
    version = dsc.stem.split("_", 1)[1]
    line = f"{name} {LIBRARIES[name].source} {version}"
    stamp = place.prefix / "done" / name
    wanted = f"{line} {recipe(place, LIBRARIES[name])}\n"
    if not stamp.is_file() or stamp.read_text() != wanted:
        began = time.monotonic()
        source = unpack(place, dsc)
        LIBRARIES[name].build(place, source)
        file = LIBRARIES[name].file
        if not (place.prefix / "lib" / file).is_file():
            raise BuildError(f"{line}: built, but there is no lib/{file} in {place.prefix}")
        notice = source / "debian/copyright"
        (place.folder / "notices").mkdir(exist_ok=True)
        shutil.copy(notice, place.folder / "notices" / name)
        shutil.rmtree(source)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(wanted)
        print(f"{line}: built in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return line


def copy_headers(place: Place) -> None:
    for name in HEADERS:
        source, target = Path("/usr/include") / name, place.folder / "include" / name
        if not source.exists():
            raise BuildError(f"{source}: not found\n  try: script/bootstrap --for package")
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", choices=("x86_64", "aarch64"), default="x86_64")
    parser.add_argument("--gnu", action="store_true", help="also a g++ for the trainer, and the libraries in C++ by it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    place = Place(given.folder.resolve(), given.arch, given.jobs)
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        write_tools(place)
        copy_headers(place)
        found = sources(place)
        lines = [build(place, name, found[name]) for name in LIBRARIES]
        if given.gnu:
            program = Path(__file__).resolve().parent / "sysroot.py"
            run(place, place.folder, [sys.executable, program, place.folder, "--arch", place.arch])
            for name in IN_CPP:
                build(replace(place, is_gnu=True), name, found[name])
    except BuildError as error:
        print(f"packaging/libraries.py: {error}", file=sys.stderr)
        return 1
    (place.folder / "libraries.txt").write_text("".join(line + "\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
