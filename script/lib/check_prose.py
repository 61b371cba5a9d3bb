"""How long the sentences of README and docs are: on average at most 20 words in each page, and none above 35.

python3 script/lib/check_prose.py [PAGE...]   shows the figures of each page, the longest first
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from findings import Finding

MEAN_WORDS = 20
MOST_WORDS = 35

# Blocks that are not prose: fenced and indented code, tables, headings, comments, images.
FENCE = re.compile(r"^\s*(```|~~~)")
NO_PROSE = re.compile(r"^(?:\||#|!\[|    \S|<!--|\s*$)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# A sentence ends at a full stop, question mark or exclamation mark before a blank; not behind "e.g." or a number.
END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)[.!?][)\"']*(?=\s+[A-Z`(\"'\d]|\s*$)")
WORD = re.compile(r"[^\s]*\w[^\s]*")


@dataclass(frozen=True)
class Sentence:
    line: int
    words: int
    text: str


def paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each paragraph or list item."""
    lines: list[str] = []
    first = 0
    fenced = False
    commented = False
    for number, line in enumerate([*markdown.splitlines(), ""], 1):
        if FENCE.match(line):
            fenced = not fenced
        if "<!--" in line and "-->" not in line:
            commented = True
        ends = fenced or commented or FENCE.match(line) or NO_PROSE.match(line) or ITEM.match(line)
        if ends and lines:
            yield first, " ".join(lines)
            lines = []
        if "-->" in line:
            commented = False
            continue
        if fenced or commented or FENCE.match(line) or NO_PROSE.match(line):
            continue
        if not lines:
            first = number
        lines.append(ITEM.sub("", line).strip())


def sentences(markdown: str) -> Iterator[Sentence]:
    for line, paragraph in paragraphs(markdown):
        # Inline code counts as one word.
        text = LINK.sub(r"\1", CODE.sub("CODE", paragraph))
        start = 0
        for end in [*(match.end() for match in END.finditer(text)), len(text)]:
            sentence = text[start:end].strip()
            start = end
            if words := len(WORD.findall(sentence)):
                yield Sentence(line, words, sentence)


def is_prose(path: Path) -> bool:
    return path.suffix == ".md" and path.parts[0] not in ("tests", "bench")


def check(files: Iterable[Path]) -> Iterator[Finding]:
    for path in files:
        if not is_prose(path):
            continue
        found = list(sentences(path.read_text()))
        for sentence in found:
            if sentence.words > MOST_WORDS:
                yield Finding(path, sentence.line, f"sentence of {sentence.words} words: {sentence.text[:60]} ...")
        if found and (mean := sum(sentence.words for sentence in found) / len(found)) > MEAN_WORDS:
            yield Finding(path, 1, f"sentences have {mean:.1f} words on average (at most {MEAN_WORDS})")


def main() -> int:
    pages = [Path(name) for name in sys.argv[1:]] or sorted([Path("README.md"), *Path("docs").rglob("*.md")])
    rows = []
    for page in pages:
        counts = [sentence.words for sentence in sentences(page.read_text())]
        if counts:
            rows.append((sum(counts) / len(counts), max(counts), len(counts), page))
    for mean, most, count, page in sorted(rows, reverse=True):
        print(f"{mean:5.1f} mean  {most:3} longest  {count:4} sentences  {page}")
    findings = list(check(pages))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
