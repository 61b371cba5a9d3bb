"""Holds src/ to the table of rooms in cmake/rooms.cmake: which room may include which, and which external library
may be seen where."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from findings import Finding

# Where each external library's headers begin.
EXTERNAL = {
    "fmt": ("fmt/",),
    "json": ("nlohmann/", "base/json/json.h"),
    "cli11": ("CLI/",),
    "yaml": ("yaml.h",),
    "crypto": ("openssl/",),
    "isal": ("isa-l",),
    "xxhash": ("xxhash.h",),
    "blosc": ("blosc.h",),
    "deflate": ("libdeflate.h",),
    "lz4": ("lz4.h",),
    "zlib": ("zlib.h",),
    "zstd": ("zstd",),
    "sodium": ("sodium",),
    "jpeg": ("jpeglib.h", "jerror.h"),
    "png": ("png.h",),
    "webp": ("webp/",),
    "hwloc": ("hwloc",),
    "re2": ("re2/",),
    "libtorch": ("torch/", "ATen/", "c10/"),
    "tests": ("gtest/", "gmock/"),
}
# What brings in nlohmann's, compiled once: a header is bound by the same rules as by that.
JSON = "base/json/json.h"
MOST_TORCH_UNITS = 25
# The narrow headers that may stand in a header of the torch room (the first includes the others); everything else there
# costs seconds per file.
NARROW_TORCH = {"ATen/core/Tensor.h", "ATen/core/Generator.h", "c10/util/intrusive_ptr.h"}


@dataclass(frozen=True)
class Room:
    name: str
    may_include: frozenset[str]
    libraries: frozenset[str]


def parse_table(cmake: str) -> dict[str, Room]:
    """The rooms that cmake/rooms.cmake declares: stoker_room(NAME [COLD] ROOMS ... LIBRARIES ...)."""
    code = re.sub(r"#[^\n]*", "", cmake)
    rooms = {}
    for name, rest in re.findall(r"\bstoker_room\((\w+)([^)]*)\)", code):
        if name == "name":
            continue
        before, _, libraries = rest.partition("LIBRARIES")
        external = frozenset(library.rpartition("::")[2] for library in libraries.split())
        rooms[name] = Room(name, frozenset(before.partition("ROOMS")[2].split()), external)
    return rooms


def cycles(rooms: dict[str, Room]) -> Iterator[str]:
    """'a -> b -> a' for each room that can reach itself."""

    def walk(path: list[str]) -> Iterator[str]:
        for other in sorted(rooms[path[-1]].may_include & rooms.keys()):
            if other == path[0]:
                yield " -> ".join([*path, other])
            elif other not in path:
                yield from walk([*path, other])

    for name in sorted(rooms):
        yield from (cycle for cycle in walk([name]) if name == min(cycle.split(" -> ")))


def check(files: Iterable[Path], table: Path) -> Iterator[Finding]:
    rooms = parse_table(table.read_text())
    for cycle in cycles(rooms):
        yield Finding(table, 1, f"rooms include each other: {cycle}")
    sources = [path for path in files if path.parts[0] == "src" and path.suffix in (".cc", ".h")]
    private = private_headers(sources)
    for path in sources:
        room = rooms.get(path.parts[1])
        if room is None:
            yield Finding(path, 1, f"'{path.parts[1]}' is no room of {table}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line):
                ours, theirs = match[1], match[2]
                wrong = wrong_with_own(room, ours) if ours else wrong_with_external(room, theirs, path, private)
                if ours == JSON:
                    wrong = wrong_with_external(room, ours, path, private)
                if wrong:
                    yield Finding(path, number, wrong)
    known: dict[Path, bool] = {}
    units = (path for path in sources if path.suffix == ".cc" and not is_test(path))
    torch_units = [path for path in units if sees_libtorch(path, known)]
    if len(torch_units) > MOST_TORCH_UNITS:
        yield Finding(Path("src/torch"), 1, f"{len(torch_units)} sources see libtorch (at most {MOST_TORCH_UNITS})")


INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def sees_libtorch(path: Path, known: dict[Path, bool]) -> bool:
    """Whether it includes libtorch, itself or through headers of ours: such a source costs seconds to compile."""
    if path not in known:
        known[path] = False  # for headers that include each other
        known[path] = path.exists() and any(
            library_of(theirs) == "libtorch" if theirs else sees_libtorch(Path("src") / ours, known)
            for ours, theirs in INCLUDE.findall(path.read_text())
        )
    return known[path]


def wrong_with_own(room: Room, included: str) -> str | None:
    other, slash, _ = included.partition("/")
    if not slash or included.startswith("."):
        return f'include "{included}" by its full path from src/'
    if other in {room.name, "base"} | room.may_include:
        return None
    allowed = ", ".join(sorted(room.may_include)) or "nothing else"
    return f"room '{room.name}' may not include '{included}' (beside base: {allowed})"


def private_headers(sources: Iterable[Path]) -> frozenset[Path]:
    """Headers that only .cc files of their own room include: what they include stays behind them."""
    public = set()
    headers = {path for path in sources if path.suffix == ".h"}
    for path in sources:
        for included in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
            header = Path("src") / included
            if path.suffix == ".h" or path.parts[:2] != header.parts[:2]:
                public.add(header)
    return frozenset(headers - public)


def wrong_with_external(room: Room, included: str, path: Path, private: frozenset[Path]) -> str | None:
    library = library_of(included)
    if library is None or (library == "tests" and is_test(path)):
        return None
    if library == "tests":
        return f"<{included}> belongs in tests"
    if library == "libtorch" and room.name == "torch":
        narrow = path.suffix != ".h" or included in NARROW_TORCH or path.stem.endswith("_internal")
        return None if narrow else f"<{included}> in a header costs every file that includes it seconds"
    if library == "fmt" and path != Path("src/base/text.cc"):
        return "fmt is used in src/base/text.cc alone: use base's format()"
    if included == "nlohmann/json.hpp" and path != Path("src") / JSON:
        return f'<{included}> is compiled once, behind "{JSON}": include that'
    if path.suffix == ".h" and path not in private and path != Path("src") / JSON:
        shown = f'"{included}"' if included == JSON else f"<{included}>"
        return f"{shown} may not stand in a header that others include: keep '{library}' in the .cc file"
    if library not in room.libraries:
        return f"room '{room.name}' does not link '{library}' (<{included}>; see cmake/rooms.cmake)"
    return None


def is_test(path: Path) -> bool:
    """Tests and what only tests include: contract suites and sandboxes."""
    return bool(re.search(r"(^|_)(test|contract|sandbox|fixture)$|^test_", path.stem)) or "testing" in path.parts


def library_of(included: str) -> str | None:
    for library, beginnings in EXTERNAL.items():
        if included.startswith(beginnings):
            return library
    return None
