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


def wrong_with(text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and findings, line by line."""
    lines = KEPT.sub("", text).replace("_", " ").splitlines()
    for number, line in enumerate(lines, 1):
        if not any_phrase().search(line):
            continue
        for phrase in phrases():
            for match in phrase.pattern.finditer(line):
                yield number, f"'{match[0]}': {phrase.instead}"


def check(files: Iterable[Path]) -> Iterator[Finding]:
    for path in files:
        if path.suffix not in SUFFIXES or LEFT_OUT.search(path.as_posix()):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        yield from (Finding(path, number, wrong) for number, wrong in wrong_with(text))


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *sys.argv[1:]],
        check=True,
        capture_output=True,
        text=True,
    )
    findings = list(check(path for name in listed.stdout.split("\0") if name and (path := Path(name)).is_file()))
    for finding in findings:
        print(finding)
    print(f"{len(findings)} phrases in {len({finding.path for finding in findings})} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
