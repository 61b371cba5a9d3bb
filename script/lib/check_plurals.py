"""Counts in messages: "{} images" reads "1 images", so the count and its noun come from counted() of base/language/counted.h.

python3 script/lib/check_plurals.py [PATH...]   lists such messages in src/, or in these files
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from findings import Finding

ALLOWED = Path(__file__).with_name("plurals_allowed.tsv")

# Nouns that users see with a count. Sizes in bytes are not among them.
NOUNS = (
    "archives|attempts|batches|checkpoints|classes|columns|cores|epochs|files|findings|folders|GPUs|hosts|images|jobs|"
    "links|lines|logs|mistakes|nodes|packages|partitions|processes|ranks|rows|samples|shards|steps|tasks|tensors|"
    "threads|trials|workers"
)
# Not flagged: a total ("3 of {} files", "all {} ranks"), a limit ("at most {} files"), and a rate ("{} samples/s").
COUNT = re.compile(rf"(?<!of )(?<!all )(?<!the )(?<!most )(?<!over )(?<!than )\{{[^{{}}]*\}} ({NOUNS})\b(?!/)")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# The plural is correct next to a message for exactly one, after a comparison with 1, or with a comment "... several ...".
LINES_AROUND = 3
SEVERAL = re.compile(r"// .*\bseveral\b|[=!]= 1\b(?!\d)|> 1\b(?!\d)")


def singular(plural: str) -> str:
    return {"classes": "class", "processes": "process", "batches": "batch"}.get(plural, plural.removesuffix("s"))


def plurals(source: str) -> Iterator[tuple[int, str]]:
    """Line numbers and nouns of messages that can read "1 images"."""
    lines = source.splitlines()
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("//"):
            continue
        around = "\n".join(lines[max(0, number - 1 - LINES_AROUND) : number + LINES_AROUND])
        for literal in LITERAL.finditer(line):
            for match in COUNT.finditer(literal[1]):
                if f"1 {singular(match[1])}" not in around and not SEVERAL.search(around):
                    yield number, match[1]


def allowed() -> dict[str, int]:
    """Files that still have such messages, with their number: it only shrinks."""
    rows = [line.split("\t") for line in ALLOWED.read_text().splitlines() if line] if ALLOWED.exists() else []
    return {path: int(count) for path, count in rows}


def check(files: Iterable[Path], budget: dict[str, int] | None = None) -> Iterator[Finding]:
    budget = dict(allowed() if budget is None else budget)
    for path in files:
        if path.suffix not in {".cc", ".h"} or path.stem.endswith("_test") or path.parts[0] != "src":
            continue
        found = list(plurals(path.read_text()))
        limit = budget.pop(path.as_posix(), 0)
        if len(found) > limit:
            for number, noun in found:
                yield Finding(path, number, f"can read '1 {noun}': use counted(n, \"{singular(noun)}\")")
        elif len(found) < limit:
            yield Finding(ALLOWED, 1, f"{path} has {len(found)} plurals now, not {limit}: lower its line")
    for path in budget:
        yield Finding(ALLOWED, 1, f"{path} no longer exists: remove its line")


def main() -> int:
    listed = [Path(name) for name in sys.argv[1:]] or sorted(Path("src").rglob("*.*"))
    findings = list(check(listed, budget={}))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
