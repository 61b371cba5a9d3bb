"""Holds src/ and include/stoker/ to the table of rooms in cmake/rooms.cmake: which room may include which, which external
library may be included where, that the folders inside a room form no cycle, that a source has its header's name, and that two
types never share a name."""

import re
from collections import defaultdict
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
# Wraps nlohmann's header, compiled once; the same rules apply.
JSON = "base/json/json.h"
PUBLIC_PREFIX = "stoker/"
PUBLIC_FOLDER = Path("include/stoker")
MAX_PUBLIC_HEADERS = 30
MAX_TORCH_SOURCES = 40
MAX_ROOM_LINES = 10_500
MAX_COMMANDS_LINES = 4_000  # of a folder of src/cli
# Rooms that grow with the number of their commands, or of their tables of rules.
MEASURED_BY_FOLDER = frozenset({"cli", "diagnose"})
# The narrow headers that may be included in a header of a room with libtorch (the first includes the rest); any other
# costs seconds per file.
NARROW_TORCH = {"ATen/core/Tensor.h", "ATen/core/Generator.h", "c10/core/Event.h", "c10/util/intrusive_ptr.h"}


@dataclass(frozen=True)
class Room:
    name: str
    may_include: frozenset[str]
    libraries: frozenset[str]
    tests_may_include: frozenset[str] = frozenset()
    public: frozenset[str] = frozenset()
    has_libtorch: bool = False


def parse_table(cmake: str) -> dict[str, Room]:
    """The rooms that cmake/rooms.cmake declares: stoker_room(NAME [COLD] [LIBTORCH] [PUBLIC ...] ROOMS ...
    [TESTS ...] LIBRARIES ...)."""
    code = re.sub(r"#[^\n]*", "", cmake)
    rooms = {}
    for name, rest in re.findall(r"\bstoker_room\((\w+)([^)]*)\)", code):
        if name == "name":
            continue
        before, _, libraries = rest.partition("LIBRARIES")
        external = frozenset(library.rpartition("::")[2] for library in libraries.split())
        head, _, included = before.partition("ROOMS")
        flags, _, public = head.partition("PUBLIC")
        own, _, tests = included.partition("TESTS")
        rooms[name] = Room(
            name,
            frozenset(own.split()),
            external,
            frozenset(tests.split()),
            frozenset(f"{PUBLIC_PREFIX}{header}.h" for header in public.split()),
            has_libtorch="LIBTORCH" in flags.split(),
        )
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
    files = list(files)
    public = [path for path in files if path.parent == PUBLIC_FOLDER]
    yield from check_public(public, rooms, table)
    sources = [path for path in files if path.parts[0] == "src" and path.suffix in (".cc", ".h")] + public
    texts = {path: path.read_text() for path in sources}
    private = private_headers(texts)
    owners = {header: room for room in rooms.values() for header in room.public}
    for path, text in texts.items():
        room = owners.get(f"{PUBLIC_PREFIX}{path.name}") if path.parent == PUBLIC_FOLDER else rooms.get(path.parts[1])
        if room is None:
            yield Finding(path, 1, f"'{path.parts[1]}' is no room of {table}")
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line):
                ours, theirs = match[1], match[2]
                if ours:
                    wrong = wrong_with_own(room, ours, path, owners)
                else:
                    wrong = wrong_with_external(room, theirs, path, private)
                if ours == JSON:
                    wrong = wrong_with_external(room, ours, path, private)
                if wrong:
                    yield Finding(path, number, wrong)
    yield from check_libtorch(rooms, sources)
    own = {path: text for path, text in texts.items() if not is_test(path)}
    inside = {path: text for path, text in own.items() if path.parent != PUBLIC_FOLDER}
    yield from room_sizes(inside)
    yield from folder_cycles(inside)
    yield from sources_without_header(own)
    yield from shared_type_names(own)


def check_public(public: list[Path], rooms: dict[str, Room], table: Path) -> Iterator[Finding]:
    """Each public header is listed in the table, and there are few of them."""
    declared = {header for room in rooms.values() for header in room.public}
    for path in public:
        if f"{PUBLIC_PREFIX}{path.name}" not in declared:
            yield Finding(path, 1, f"is PUBLIC of no room of {table}")
    for missing in sorted(declared - {f"{PUBLIC_PREFIX}{path.name}" for path in public}):
        yield Finding(table, 1, f"include/{missing} does not exist")
    if len(public) > MAX_PUBLIC_HEADERS:
        yield Finding(PUBLIC_FOLDER, 1, f"{len(public)} public headers (at most {MAX_PUBLIC_HEADERS})")


def check_libtorch(rooms: dict[str, Room], sources: list[Path]) -> Iterator[Finding]:
    """Few sources may include libtorch; a check that no longer finds any has lost its subject."""
    known: dict[Path, bool] = {}
    for room in rooms.values():
        units = [path for path in sources if path.suffix == ".cc" and path.parts[1] == room.name and not is_test(path)]
        torch_sources = [path for path in units if includes_libtorch(path, known)]
        if len(torch_sources) > MAX_TORCH_SOURCES:
            text = f"{len(torch_sources)} sources include libtorch (at most {MAX_TORCH_SOURCES})"
            yield Finding(Path("src") / room.name, 1, text)
        if room.has_libtorch and units and not torch_sources:
            yield Finding(Path("src") / room.name, 1, "no source includes libtorch: is this still the room for it?")
    if rooms and not any(room.has_libtorch for room in rooms.values()):
        yield Finding(Path("cmake/rooms.cmake"), 1, "no room is marked LIBTORCH")


def room_sizes(texts: dict[Path, str]) -> Iterator[Finding]:
    """Some rooms grow with the number of their commands or rules: there each folder counts."""
    lines: dict[Path, int] = defaultdict(int)
    for path, text in texts.items():
        room = Path("src") / path.parts[1]
        lines[path.parent if path.parts[1] in MEASURED_BY_FOLDER else room] += text.count("\n")
    for folder, count in lines.items():
        most = MAX_COMMANDS_LINES if folder.is_relative_to("src/cli") else MAX_ROOM_LINES
        if count > most:
            yield Finding(folder, 1, f"has {count} lines beside its tests (at most {most})")


def folder_cycles(texts: dict[Path, str]) -> Iterator[Finding]:
    """Inside each folder: its headers, its sources and each subfolder include each other in one direction only."""
    paths = {path.relative_to("src").as_posix() for path in texts}
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path, text in texts.items():
        name = path.relative_to("src").as_posix()
        for included in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
            if included not in paths:
                continue
            parts, other = name.split("/"), included.split("/")
            depth = 0
            while depth < min(len(parts), len(other)) - 1 and parts[depth] == other[depth]:
                depth += 1
            if depth == 0:
                continue
            start, end = part_of_folder(parts, depth), part_of_folder(other, depth)
            if start != end:
                edges["/".join(parts[:depth])][start].add(end)
    for folder, graph in sorted(edges.items()):
        for cycle in folder_cycle(graph):
            yield Finding(Path("src") / folder, 1, f"parts of the folder include each other: {cycle}")


def part_of_folder(parts: list[str], depth: int) -> str:
    if len(parts) > depth + 1:
        return parts[depth] + "/"
    return "headers" if parts[-1].endswith(".h") else "sources"


def folder_cycle(graph: dict[str, set[str]]) -> Iterator[str]:
    rooms = {name: Room(name, frozenset(graph.get(name, ())), frozenset()) for name in graph}
    yield from cycles(rooms)


# Folders of plug-ins: one header of the folder declares what its sources add.
PLUG_INS = {"rules", "judge", "commands", "kernels", "ops", "cli", "fault", "models"}


# Parts of a public header with separate sources: reading and saving in checkpoint.h, record::MetricLog in metrics.h.
HALVES = {
    Path("src/checkpoint/read/load.cc"),
    Path("src/checkpoint/save/saver.cc"),
    Path("src/record/log/metric_log.cc"),
}


def sources_without_header(texts: dict[Path, str]) -> Iterator[Finding]:
    """A source implements the header of its name (foo.h or foo_internal.h), so that both are found by one name."""
    for path in texts:
        if path.suffix != ".cc" or path.stem.endswith("_main") or PLUG_INS & set(path.parts) or path in HALVES:
            continue
        names = {
            path.with_suffix(".h"),
            path.with_name(f"{path.stem}_internal.h"),
            PUBLIC_FOLDER / f"{path.stem}.h",
        }
        if not names & texts.keys():
            yield Finding(path, 1, f"has no header of its name ({path.stem}.h)")


TYPE = re.compile(
    r"^(?:template\s*<[^>]*>\s*)?(?:struct|class|enum class|enum|union)\s+(?:\[\[\w+\]\]\s*)?(?:STOKER_\w+\([^)]*\)\s*)?"
    r"([A-Z]\w+)\s*(?:final\s*)?(?::[^:{;][^{;]*)?\{",
    re.MULTILINE,
)


def shared_type_names(texts: dict[Path, str]) -> Iterator[Finding]:
    """Two types of a namespace never share a name, so that a name means one thing to whoever searches for it."""
    defined: dict[str, Path] = {}
    for path, text in sorted(texts.items()):
        if "gloo_stub" in path.parts:
            continue
        for name in sorted(set(TYPE.findall(re.sub(r"//[^\n]*", "", text)))):
            first = defined.setdefault(name, path)
            if first != path:
                yield Finding(path, 1, f"type '{name}' is also defined in {first}")


INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def includes_libtorch(path: Path, known: dict[Path, bool]) -> bool:
    """Whether it includes libtorch, itself or through headers of ours: such a source costs seconds to compile."""
    if path not in known:
        known[path] = False  # for headers that include each other
        known[path] = path.exists() and any(
            library_of(theirs) == "libtorch" if theirs else includes_libtorch(header_path(ours), known)
            for ours, theirs in INCLUDE.findall(path.read_text())
        )
    return known[path]


def header_path(included: str) -> Path:
    return Path("include" if included.startswith(PUBLIC_PREFIX) else "src") / included


def wrong_with_own(room: Room, included: str, path: Path, owners: dict[str, Room]) -> str | None:
    if path.parent == PUBLIC_FOLDER and not included.startswith(PUBLIC_PREFIX):
        return f"a public header may not include the private '{included}'"
    other, slash, _ = included.partition("/")
    if included.startswith(PUBLIC_PREFIX):
        if included not in owners:
            return f"no room has the public header '{included}'"
        other = owners[included].name
    if not slash or included.startswith("."):
        return f'include "{included}" by its full path from src/'
    if other in {room.name, "base"} | room.may_include:
        return None
    if is_test(path) and other in room.tests_may_include:
        return None
    allowed = ", ".join(sorted(room.may_include)) or "nothing else"
    return f"room '{room.name}' may not include '{included}' (beside base: {allowed})"


def private_headers(sources: dict[Path, str]) -> frozenset[Path]:
    """Headers that only .cc files of the same room include: their includes stay private."""
    public = set()
    headers = {path for path in sources if path.suffix == ".h"}
    for path, text in sources.items():
        for included in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
            header = header_path(included)
            if path.suffix == ".h" or path.parts[:2] != header.parts[:2]:
                public.add(header)
    return frozenset(headers - public)


def wrong_with_external(room: Room, included: str, path: Path, private: frozenset[Path]) -> str | None:
    library = library_of(included)
    if library is None or (library == "tests" and is_test(path)):
        return None
    if library == "tests":
        return f"<{included}> belongs in tests"
    if library == "libtorch" and room.has_libtorch:
        narrow = path.suffix != ".h" or included in NARROW_TORCH or path.stem.endswith("_internal")
        return None if narrow else f"<{included}> in a header costs every file that includes it seconds"
    if library == "fmt" and path != Path("src/base/text.cc"):
        return "fmt is used in src/base/text.cc alone: use base's format()"
    if included == "nlohmann/json.hpp" and path != Path("src") / JSON:
        return f'<{included}> is compiled once, behind "{JSON}": include that'
    if path.suffix == ".h" and path not in private and path != Path("src") / JSON and not is_test(path):
        shown = f'"{included}"' if included == JSON else f"<{included}>"
        return f"{shown} may not be included in a public header: keep '{library}' in the .cc file"
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
