"""clang-tidy over every source of the rooms and of the Python module, as the libcxx preset would compile it. It reports what
the compiler would: a room that does not compile with clang and libc++, or with a warning, fails here, so that nothing need be
compiled again to know it. Tests are not in that preset. A clean source is not checked again until it, a header of
ours that it includes, or the list of checks changes."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from findings import Finding

# Of the virtual environment: newer than Debian's, which reads system headers with every check.
TIDY = str(Path(sys.executable).parent / "clang-tidy")
PRESET = "libcxx"
# Where our sources are, and what their #includes are relative to.
ROOTS = (Path("src"), Path("python"))
# One for all checkouts of a person, as ccache has it.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stoker/tidy"


@cache
def included(path: Path) -> frozenset[Path]:
    """Our own headers that this file includes, directly or not."""
    found: set[Path] = set()
    for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
        for header in (root / name for root in ROOTS):
            if header.exists() and header != path:
                found |= {header} | included(header)
    return frozenset(found)


@cache
def version() -> bytes:
    return subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout


def key(path: Path) -> str:
    """Changes when the findings of clang-tidy for the file could change."""
    digest = hashlib.sha256(version())
    for part in [Path(".clang-tidy"), path, *sorted(included(path))]:
        digest.update(str(part).encode() + b"\0" + part.read_bytes() + b"\0")
    return digest.hexdigest()


def configure(build: Path) -> None:
    """Creates compile_commands.json, or updates it for added and removed sources."""
    if (build / "build.ninja").exists():
        subprocess.run(["ninja", "-C", str(build), "build.ninja"], check=True, capture_output=True)
    else:
        subprocess.run(["cmake", "--preset", PRESET], check=True, capture_output=True)


def compiled_sources(build: Path) -> Iterator[Path]:
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.exists() and any(path.is_relative_to(root.absolute()) for root in ROOTS):
            yield path.relative_to(Path.cwd())


def tidy(path: Path, build: Path) -> list[Finding]:
    command = ["nice", TIDY, "-p", str(build), "--quiet", "--warnings-as-errors=*", str(path)]
    if path.parts[0] == "python":
        command.insert(-1, r"--header-filter=/(src|python/core)/")
    done = subprocess.run(command, capture_output=True, text=True)
    findings = []
    for line in done.stdout.splitlines():
        if match := re.match(r"(.+?):(\d+):\d+: (?:warning|error): (.*)", line):
            findings.append(Finding(Path(os.path.relpath(match[1])), int(match[2]), match[3]))
    if done.returncode != 0 and not findings:
        findings.append(Finding(path, 1, f"{TIDY} exits with {done.returncode}: {done.stderr.strip()[-300:]}"))
    return findings


def check() -> Iterator[Finding]:
    build = Path("build") / PRESET
    configure(build)
    CACHE.mkdir(parents=True, exist_ok=True)
    stale = {path: CACHE / key(path) for path in sorted(set(compiled_sources(build)))}
    stale = {path: mark for path, mark in stale.items() if not mark.exists()}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for mark, findings in zip(stale.values(), pool.map(lambda path: tidy(path, build), stale), strict=True):
            if not findings:
                mark.touch()
            yield from findings
