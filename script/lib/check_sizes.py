"""Sizes of files, functions and parameter lists. The first number warns, the second fails."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from cpp_functions import functions
from findings import Finding

FILE_LINES = (600, 1200)
FUNCTION_LINES = (40, 80)
PARAMETERS = (5, 5)

CPP = {".cc", ".h"}


def check(files: Iterable[Path]) -> Iterator[Finding]:
    files = list(files)
    for path in files:
        if path.suffix in CPP | {".py"} or path.parent.name == "script":
            source = path.read_text()
            yield from over(FILE_LINES, source.count("\n"), path, 1, "file has {} lines")
            yield from check_functions(path, source)


def check_functions(path: Path, source: str) -> Iterator[Finding]:
    if path.suffix in CPP:
        for function in functions(source):
            text = f"function '{function.name}' has"
            yield from over(FUNCTION_LINES, function.lines, path, function.first_line, text + " {} lines")
            yield from over(PARAMETERS, function.parameters, path, function.first_line, text + " {} parameters")
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                lines = node.end_lineno - node.lineno + 1
                yield from over(FUNCTION_LINES, lines, path, node.lineno, f"function '{node.name}' has {{}} lines")


def over(limits: tuple[int, int], value: int, path: Path, line: int, text: str) -> Iterator[Finding]:
    warn, fail = limits
    if value > warn:
        limit = fail if value > fail else warn
        yield Finding(path, line, f"{text.format(value)} (at most {limit})", is_warning=value <= fail)
