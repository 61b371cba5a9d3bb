"""compare: two scripts side by side."""

import os
import subprocess
from collections.abc import Iterator
from difflib import SequenceMatcher
from html import escape
from itertools import zip_longest
from pathlib import Path

from stoker import command
from stoker.errors import InvalidError, NotFoundError
from stoker.notebook_logs import displays, read_lines

_PAGE = Path("compare.html")
_STYLE = """<style>
table.diff {font-family: monospace; white-space: pre; color: black; background: white; border-collapse: collapse}
table.diff td, table.diff th {text-align: left; padding: 0 0.5em; vertical-align: top}
table.diff .number {color: gray; text-align: right}
table.diff .changed {background: #ffffbb}
table.diff .changed b {background: #ffdd44}
table.diff .added {background: #ccffcc}
table.diff .removed {background: #ffcccc}
</style>"""
# Of equal lines around a change, in the notebook.
_CONTEXT = 5
# The characters of longer lines are not compared.
_MAX_COMPARED = 500
# Below this share of equal characters, two lines have nothing in common.
_ALIKE = 0.5

Row = tuple[int | None, int | None]  # numbers of the lines


def compare(script1: str | os.PathLike[str], script2: str | os.PathLike[str]) -> None:
    """Shows the differences between two scripts side by side, and writes them with all lines to compare.html. For two runs of
    Stoker, prints `stoker compare`."""
    names = [os.fspath(script1), os.fspath(script2)]
    missing = [name for name in names if not Path(name).is_file()]
    if len(missing) == 2 and not any(name.endswith(".py") for name in names):
        _compare_runs(names)
        return
    if missing:
        raise NotFoundError(f"compare: {missing[0]}: no such file")
    first, second = (list(read_lines(Path(name))) for name in names)
    rows = list(_rows(first, second))
    changes = sum(_kind(row, first, second) != "" for row in rows)
    page = (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>compare</title></head><body>\n{}\n</body></html>\n'
    )
    _PAGE.write_text(page.format(_table(names, first, second, rows)), encoding="utf-8")
    print(
        f"{names[0]} and {names[1]}: {changes or 'no'} {'line differs' if changes == 1 else 'lines differ'} ({_PAGE})"
    )
    if changes and (display := displays()) is not None:
        places = [place for place, row in enumerate(rows) if _kind(row, first, second)]
        near = {place + offset for place in places for offset in range(-_CONTEXT, _CONTEXT + 1)}
        shown = [row for place, row in enumerate(rows) if place in near]
        display.display(display.HTML(_table(names, first, second, shown)))


def _compare_runs(names: list[str]) -> None:
    done = subprocess.run([command.find(), "compare", *names], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode > 1 or not done.stdout:
        raise InvalidError(f"compare: {done.stderr.strip()}")
    print(done.stdout, end="")


def _rows(first: list[str], second: list[str]) -> Iterator[Row]:
    """Lines next to each other; None where one script has no line."""
    for _, begin1, end1, begin2, end2 in SequenceMatcher(None, first, second).get_opcodes():
        yield from zip_longest(range(begin1, end1), range(begin2, end2))


def _kind(row: Row, first: list[str], second: list[str]) -> str:
    left, right = row
    if left is None or right is None:
        return "added" if left is None else "removed"
    return "" if first[left] == second[right] else "changed"


def _table(names: list[str], first: list[str], second: list[str], rows: list[Row]) -> str:
    parts = [_STYLE, '<table class="diff">', "".join(f'<th colspan="2">{escape(name)}</th>' for name in names)]
    expected: Row = (0, 0)
    for row in rows:
        left, right = row
        if left not in (None, expected[0]) or right not in (None, expected[1]):
            parts.append('<tr><td colspan="4" class="number">...</td></tr>')
        expected = (expected[0] if left is None else left + 1, expected[1] if right is None else right + 1)
        kind = _kind(row, first, second)
        texts = (
            _marked(first[left], second[right])
            if kind == "changed" and left is not None and right is not None
            else None
        )
        cells = ((left, first), (right, second))
        parts.append("<tr>")
        for side, (number, lines) in enumerate(cells):
            text = "" if number is None else texts[side] if texts else escape(lines[number])
            style = f' class="{kind}"' if kind and number is not None else ""
            parts.append(f'<td class="number">{"" if number is None else number + 1}</td><td{style}>{text}</td>')
        parts.append("</tr>")
    return "\n".join([*parts, "</table>"])


def _marked(left: str, right: str) -> tuple[str, str]:
    """Both lines, with their different parts in bold."""
    matcher = SequenceMatcher(None, left[:_MAX_COMPARED], right[:_MAX_COMPARED], autojunk=False)
    if max(len(left), len(right)) > _MAX_COMPARED or matcher.ratio() < _ALIKE:
        return escape(left), escape(right)
    texts: tuple[list[str], list[str]] = ([], [])
    for tag, *ends in matcher.get_opcodes():
        for side, part in enumerate((left[ends[0] : ends[1]], right[ends[2] : ends[3]])):
            texts[side].append(escape(part) if tag == "equal" or not part else f"<b>{escape(part)}</b>")
    return "".join(texts[0]), "".join(texts[1])
