"""Finds the functions of a C++ file without a compiler: enough for sizes, on code that clang-format has laid out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LITERALS = re.compile(
    r"""
      //[^\n]*                                   # comments
    | /\*.*?\*/
    | R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"   # raw strings
    | "(?:\\.|[^"\\\n])*"
    | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'        # not the digit separator of 1'000
    | ^[ \t]*\#(?:\\\n|[^\n])*                   # preprocessor lines
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Function:
    name: str
    first_line: int
    last_line: int
    parameters: int

    @property
    def lines(self) -> int:
        return self.last_line - self.first_line + 1


def without_text(source: str) -> str:
    """The source with comments, literals and preprocessor lines blanked; lines keep their numbers."""

    def blank(match: re.Match) -> str:
        text = re.sub(r"[^\n]", " ", match[0])
        # A literal stays one word, so that f("") has the parameter it has.
        return "0" + text[1:] if match[0][0] in "\"'R" else text

    return _LITERALS.sub(blank, source)


def functions(source: str) -> Iterator[Function]:
    """Every function defined outside a function, in the order in which they end. Lambdas belong to their function."""
    code = without_text(source)
    stack: list[tuple[str, int]] = []  # (kind of the open brace, where its head begins)
    head = 0
    for match in re.finditer(r"[{};]", code):
        at, character = match.start(), match[0]
        inside_body = any(kind in ("function", "value") for kind, _ in stack)
        if character == "{":
            kind = "block" if inside_body else _kind_of_brace(code[head:at])
            stack.append((kind, head))
            if kind != "value":
                head = at + 1
        elif character == "}" and stack:
            kind, begin = stack.pop()
            if kind == "function":
                yield _describe(code, begin, at)
            if kind != "value":
                head = at + 1
        elif character == ";" and not inside_body:
            head = at + 1


def _kind_of_brace(head: str) -> str:
    """What `{` opens after this text: 'scope' (namespace, class), 'function', or 'value' (an initializer)."""
    words = re.sub(r"\s+", " ", re.sub(r"\b(public|private|protected) *:(?!:)", " ", head)).strip()
    if not words or re.search(r"\bnamespace\b|^extern 0", words):
        return "scope"
    outside = _outside_parentheses(words)
    if re.search(r"\)( noexcept)? :(?!:)", outside):  # a constructor with an initializer list: a_(1), b_{2} {
        return "function" if outside[-1] in ")}" else "value"
    if re.search(r"\) ?(const|noexcept|override|final|mutable|&&?|->.*|requires.*| |try)*$", outside):
        return "function"
    if re.search(r"\b(class|struct|union|enum)\b", outside) and "=" not in outside:
        return "scope"
    return "value"


def _outside_parentheses(text: str) -> str:
    """The text with what stands between parentheses taken out: f(int a) const -> f() const."""
    depth, kept = 0, []
    for character in text:
        if character == "(":
            depth += 1
            kept += "(" if depth == 1 else ""
        elif character == ")":
            depth -= 1
            kept += ")" if depth == 0 else ""
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def _describe(code: str, begin: int, end: int) -> Function:
    begin += len(code[begin:]) - len(code[begin:].lstrip())
    head = code[begin : code.index("{", begin)]
    match = re.search(r"(operator\s*\S{1,3}|~?\w[\w:~]*(?:<[^()]*>)?)\s*\(", head)
    name, opening = (match[1], match.end()) if match else ("(unnamed)", len(head))
    parameters = _list_between(head, opening)
    if re.fullmatch(r"(TYPED_)?TEST(_F|_P)?", name):
        return Function(".".join(parameters), _line(code, begin), _line(code, end), 0)
    return Function(name, _line(code, begin), _line(code, end), len(parameters))


def _list_between(text: str, at: int) -> list[str]:
    """The comma-separated pieces from `at`, just behind an opening parenthesis, to its closing one."""
    depth, pieces = 1, [""]
    for character in text[at:]:
        depth += (character in "([{<") - (character in ")]}>")
        if depth == 0:
            break
        if character == "," and depth == 1:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces if piece.strip()]


def _line(code: str, at: int) -> int:
    return code.count("\n", 0, at) + 1
