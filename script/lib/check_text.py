"""Checks that a compiler does not do: disabled tests, machine-specific paths, TODO notes without a condition."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from findings import Finding

SOURCES = {".cc", ".h", ".py", ".cmake", ".txt", ""}
BINARY = {".tar", ".png", ".jpg", ".jpeg", ".bin", ".safetensors", ".parquet", ".mds", ".zstd", ".gz", ".br"}

DISABLED_TEST = re.compile(
    r"""
      ^\s*//\s*(TYPED_)?TEST(_F|_P)?\s*\(          # commented out in C++
    | ^\s*\#\s*def\ test_                          # in Python
    | ^\s*\#\s*add_test\(                          # in CMake
    | \bTEST(_F|_P)?\s*\([^)]*\bDISABLED_          # switched off
    | @pytest\.mark\.(skip|xfail)\b(?!if)
    """,
    re.VERBOSE,
)
MACHINE_PATH = re.compile(
    r"(?<![\w.~/}-])/(?:home|root|Users|work|mnt)/(?!user\b|you\b|me\b|ana\b|alice\b|bob\b)\w[\w.-]*"
)
LATER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?! when )")


def check(files: Iterable[Path]) -> Iterator[Finding]:
    for path in files:
        if path.suffix in BINARY or path.name == "LICENSE":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield from (Finding(path, number, text) for text in wrong_with(path, line))


def wrong_with(path: Path, line: str) -> Iterator[str]:
    is_source = path.suffix in SOURCES
    # The checker's own patterns and their tests have to spell out what they look for.
    if "house" in path.parts or path.name == "check_text.py":
        return
    if is_source and DISABLED_TEST.search(line):
        yield "a test is taken out: delete it, or skip it with its reason (tests/needs.py)"
    if match := MACHINE_PATH.search(line):
        yield f"'{match[0]}' looks like a path of one machine"
    if is_source and LATER.search(line):
        yield "a note for later needs its condition ('... when Slurm < 23 is dropped')"
