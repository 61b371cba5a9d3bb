"""Reads the examples of a documentation page, compares them with the output of the commands, and corrects them.

A page's ```console blocks are run from top to bottom in one folder: lines that begin with "$ " are commands, the lines
below are standard output and standard error together. "…" means any text within a line, and alone on a
line for any lines. A ```yaml or ```python block that begins with "# <name>.yaml" or "# <name>.py" is that file. `<!-- setup: a, b -->` anywhere on the
page names what is in the folder before (tests/test_docs.py). Examples that are not run are ```text or ```sh.

A ```sh block that begins with "#!/bin/bash" and "# <name>.sh" is that file, too. On a page with `<!-- session: lab -->` all
commands go to one shell, so that what one exports the next one has (tests/lab/test_lab_page.py), and
`<!-- until: COMMAND -->` between two blocks waits until that command succeeds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLOCK = re.compile(r"^```(console|yaml|sh|python)\n(.*?)^```$|^<!-- (until): ([^\n]*) -->$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#!/bin/bash\n)?# ([\w.-]+\.(?:yaml|sh|py))\n")
_SETUP = re.compile(r"<!-- setup: ([\w, -]+) -->")


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    command: str
    expected: str
    line: int


@dataclass(frozen=True)
class Until:
    command: str


def session(page: str) -> str | None:
    """In what the page is one session, or None."""
    match = re.search(r"<!-- session: (\w+) -->", page)
    return match and match[1]


def setups(page: str) -> list[str]:
    return [name for match in _SETUP.finditer(page) for name in re.split(r"[, ]+", match[1]) if name]


def examples(page: str) -> Iterator[File | Command | Until]:
    """Files, commands and waits in the order of the page."""
    for block in _BLOCK.finditer(page):
        if block[3]:
            yield Until(block[4])
            continue
        if block[1] in ("yaml", "sh", "python"):
            if match := _FILE.match(block[2]):
                yield File(match[1], block[2])
            continue
        line = page.count("\n", 0, block.start()) + 2
        for part in re.split(r"^(?=\$ )", block[2], flags=re.MULTILINE):
            if part.startswith("$ "):
                command, _, expected = part[2:].partition("\n")
                yield Command(command, expected, line)
            line += part.count("\n")


def matches(expected: str, actual: str) -> bool:
    """Whether `actual` is `expected`, with "…" for any text and blanks at the ends of lines left aside."""

    def lines(text: str) -> list[str]:
        return [line.rstrip() for line in text.strip("\n").split("\n")]

    pattern = ""
    for line in lines(expected):
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += r"[^\n]*?".join(re.escape(piece) for piece in line.split("…")) + r"\n"
    return re.fullmatch(pattern, "\n".join(lines(actual)) + "\n") is not None


def with_output(page: str, example: Command, actual: str) -> str:
    """The page with this example's output replaced by the command's present output."""
    before = f"$ {example.command}\n"
    assert page.count(before + example.expected) == 1, f"'{example.command}' occurs twice with the same output"
    return page.replace(before + example.expected, before + actual.strip("\n") + ("\n" if actual.strip() else ""))
