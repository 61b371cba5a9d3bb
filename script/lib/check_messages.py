"""The texts that people read, gathered from the sources for the catalogues po/*.po, and the catalogues held against them.

python3 script/lib/check_messages.py lists missing and unused texts of a catalogue; with --update it updates the catalogues: new
texts are added empty, removed texts are deleted, and each entry names its source.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from findings import Finding

CATALOGUES = Path("po")
# Literals of translating calls, and the translated fields of table entries.
CALL = re.compile(r"([.>_]localize|\bmessage|\bfail_at|\bfact)\((?:[\w.]+,)?\s*$|\.question = $")
TABLES = {
    "FailureRule": (4, 5),
    "WaitingRule": (1,),
    "Rule": (2,),
    "DebugSetting": (3,),
    "ShellLimit": (4,),
    "Reason": (1,),
    "PendingRule": (1,),
    "CureVariants": (0, 1, 2, 3),
    "ExceptionCure": (1,),
    "Phrase": (0,),
}
TABLE = re.compile(r"\bconstexpr (\w+) k\w+\[\] = $")

TOKEN = re.compile(
    r"""
      (?P<comment> //[^\n]* )
    | (?P<raw> R"\((?P<inside>.*?)\)" )
    | (?P<literal> "(?:[^"\\\n]|\\.)*" )
    | (?P<character> '(?:[^'\\\n]|\\.)+' )
    """,
    re.VERBOSE | re.DOTALL,
)
# Placeholders: some texts consist only of them and need no translation.
FILLED = re.compile(r"\{[^{} ]*\}")
# Not translated: commands in backticks, options, names of variables.
KEPT = re.compile(r"`[^`]+`|--[a-z][\w-]*\w|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass
class Text:
    english: str
    places: list[str] = field(default_factory=list)


@dataclass
class Entry:
    english: str = ""
    translated: str = ""
    line: int = 0
    comments: list[str] = field(default_factory=list)


def unescaped(text: str) -> str:
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), text)


@dataclass
class Literal:
    begin: int
    end: int
    text: str


def literals_of(source: str) -> list[Literal]:
    """All literals; adjacent literals are joined."""
    found: list[Literal] = []
    for token in TOKEN.finditer(source):
        if token["comment"] or token["character"]:
            continue
        text = token["inside"] if token["raw"] else unescaped(token["literal"][1:-1])
        if found and not source[found[-1].end : token.start()].strip():
            found[-1] = Literal(found[-1].begin, token.end(), found[-1].text + text)
        else:
            found.append(Literal(token.start(), token.end(), text))
    return found


def output(source: str) -> Iterator[Literal]:
    """Texts of calls and tables in the source, in order."""
    literals = literals_of(source)
    fields: tuple[int, ...] = ()
    depth = at = field_number = 0
    for literal in literals:
        between = source[at : literal.begin]
        at = literal.end
        if CALL.search(between[-40:]):
            yield literal
        for number, character in enumerate(between):
            if character == "{":
                if depth == 0 and (table := TABLE.search(between[max(0, number - 60) : number])):
                    fields, depth = TABLES.get(table[1], ()), 1
                elif depth:
                    depth += 1
                    field_number = 0
            elif character == "}" and depth:
                depth -= 1
            elif character == "," and depth == 2:
                field_number += 1
        if depth == 2 and field_number in fields and literal.text:
            yield literal


def texts_of(files: Iterable[Path]) -> dict[str, Text]:
    texts: dict[str, Text] = {}
    for path in files:
        if path.suffix not in {".cc", ".h"} or path.stem.endswith("_test") or path.parts[0] != "src":
            continue
        for literal in output(path.read_text()):
            if not re.search("[A-Za-z]", FILLED.sub("", literal.text)):
                continue
            text = texts.setdefault(literal.text, Text(literal.text))
            if path.as_posix() not in text.places:
                text.places.append(path.as_posix())
    return texts


def entries_of(path: Path) -> list[Entry]:
    """Of a catalogue as --update writes it; its header is the entry without English."""
    entries = [Entry()]
    comments: list[str] = []
    part = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            comments.append(line)
        elif match := re.match(r'(msgid|msgstr) (".*")$|(".*")$', line):
            if match[1] == "msgid":
                entries.append(Entry(line=number, comments=comments))
                comments = []
            part = match[1] or part
            text = unescaped((match[2] or match[3])[1:-1])
            if part == "msgid":
                entries[-1].english += text
            else:
                entries[-1].translated += text
    return entries[1:]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def update(path: Path, texts: dict[str, Text]) -> None:
    entries = {entry.english: entry for entry in entries_of(path)}
    header = entries[""]
    lines = [*header.comments, 'msgid ""', 'msgstr ""']
    lines += [quoted(line) for line in header.translated.splitlines(keepends=True)]
    for text in texts.values():
        entry = entries.get(text.english, Entry())
        own = [comment for comment in entry.comments if not comment.startswith("#:")]
        lines += [
            "",
            *own,
            f"#: {' '.join(text.places)}",
            f"msgid {quoted(text.english)}",
            f"msgstr {quoted(entry.translated)}",
        ]
    path.write_text("\n".join(lines) + "\n")


def check(files: Iterable[Path]) -> Iterator[Finding]:
    files = list(files)
    texts = texts_of(files)
    for path in files:
        if path.parent != CATALOGUES or path.suffix != ".po":
            continue
        entries = {entry.english: entry for entry in entries_of(path)}
        for text in texts.values():
            entry = entries.get(text.english)
            if entry is None or not entry.translated or any("fuzzy" in comment for comment in entry.comments):
                yield Finding(
                    path, entry.line if entry else 1, f"no text for {quoted(text.english)} of {text.places[0]}"
                )
        for entry in entries.values():
            for word in KEPT.findall(entry.english) if entry.translated else ():
                if word not in entry.translated:
                    yield Finding(path, entry.line, f"{word} must be in {quoted(entry.translated)}")
            if entry.english and entry.english not in texts:
                yield Finding(
                    path,
                    entry.line,
                    f"{quoted(entry.english)} is no longer used: script/lib/check_messages.py --update",
                )


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/lib/check_messages.py", description=__doc__)
    parser.add_argument("--update", action="store_true", help="put the catalogues in order")
    options = parser.parse_args()
    sources = sorted(Path("src").rglob("*.cc")) + sorted(Path("src").rglob("*.h"))
    catalogues = sorted(CATALOGUES.glob("*.po"))
    if options.update:
        for path in catalogues:
            update(path, texts_of(sources))
    findings = list(check(sources + catalogues))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
