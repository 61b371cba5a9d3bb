"""Phrases that hide the field's own words: script/lib/phrases.tsv lists them with what to write instead.

python3 script/lib/check_phrases.py [PATH...]   counts and shows them, in the whole tree or below these paths
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from findings import Finding

TABLE = Path(__file__).with_name("phrases.tsv")
# Files in which a phrase may still occur, with the number of times: it only shrinks.
ALLOWED = Path(__file__).with_name("phrases_allowed.tsv")
SUFFIXES = {".cc", ".h", ".py", ".pyi", ".md", ".cmake", ".txt", ".yaml", ".yml", ".apt", ".toml", ".in", ""}
# A field of a format on disk, and a text from RFC 3174.
KEPT = re.compile(r"\bgoes_on\b|Nobody inspects the spammish repetition")
# Other people's texts, and the tests of this check.
LEFT_OUT = re.compile(r"^(?:LICENSE$|tests/golden/|tests/house/test_check_phrases\.py$|script/lib/phrases)")


@dataclass(frozen=True)
class Phrase:
    pattern: re.Pattern[str]
    instead: str


@cache
def phrases() -> tuple[Phrase, ...]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return tuple(Phrase(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in rows)


@cache
def any_phrase() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase.pattern.pattern})" for phrase in phrases()), re.IGNORECASE)


def allowed() -> dict[str, int]:
    if not ALLOWED.exists():
        return {}
    rows = [line.split("\t") for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    return {path: int(count) for path, count in rows}


def wrong_with(text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and findings. A phrase may be broken over two lines of a comment or paragraph."""
    lines = KEPT.sub("", text).replace("_", " ").splitlines()
    for number, line in enumerate(lines, 1):
        if not any_phrase().search(line):
            continue
        for phrase in phrases():
            for match in phrase.pattern.finditer(line):
                if match[0].endswith("None"):  # Python's `is None`
                    continue
                yield number, f"'{match[0]}': {phrase.instead}"


def check(files: Iterable[Path]) -> Iterator[Finding]:
    budget = allowed()
    for path in files:
        if path.suffix not in SUFFIXES or LEFT_OUT.search(path.as_posix()):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = list(wrong_with(text))
        may = budget.pop(path.as_posix(), 0)
        if len(found) > may:
            yield from (Finding(path, number, text) for number, text in found)
        elif len(found) < may:
            yield Finding(ALLOWED, 1, f"{path} has {len(found)} phrases now, not {may}: lower its line")
    for path in budget:
        yield Finding(ALLOWED, 1, f"{path} is gone: remove its line")


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *sys.argv[1:]],
        check=True,
        capture_output=True,
        text=True,
    )
    files = [path for name in listed.stdout.split("\0") if name and (path := Path(name)).is_file()]
    counts = {}
    total = 0
    for path in files:
        if path.suffix not in SUFFIXES or LEFT_OUT.search(path.as_posix()):
            continue
        try:
            found = list(wrong_with(path.read_text()))
        except UnicodeDecodeError:
            continue
        total += len(found)
        counts[path] = len(found)
        for number, text in found:
            print(Finding(path, number, text))
    print(f"{total} phrases in {sum(count > 0 for count in counts.values())} files")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
