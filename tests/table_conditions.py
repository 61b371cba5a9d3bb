"""Random conditions on table rows, for `--where` and as Arrow expressions."""

import operator
import random
from collections.abc import Callable

import pyarrow.compute

Meant = pyarrow.compute.Expression
COMPARISONS: dict[str, Callable] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def condition(draw: random.Random, leaf: Callable[[random.Random], tuple[str, Meant]], depth: int) -> tuple[str, Meant]:
    """Tests that `leaf` makes, joined by not, and, or."""
    kind = draw.randrange(4) if depth > 0 else 3
    if kind == 3:
        return leaf(draw)
    one, means_one = condition(draw, leaf, depth - 1)
    if kind == 0:
        return f"not ({one})", ~means_one
    two, means_two = condition(draw, leaf, depth - 1)
    if kind == 1:
        return f"({one}) and ({two})", means_one & means_two
    return f"({one}) or ({two})", means_one | means_two
