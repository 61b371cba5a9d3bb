"""What a Parquet file's columns hold as Python values, read by the library (tests/programs/tables.cc) and by pyarrow."""

import datetime
import decimal
import json
import math
import struct
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from conftest import BIN

EPOCH = datetime.datetime(1970, 1, 1)
LETTERS = {
    "boolean": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


def leaves(file: Path) -> list[dict]:
    """As tests/programs/tables.cc prints them."""
    done = subprocess.run([BIN / "tables", file], capture_output=True, timeout=120, text=True)
    assert done.returncode in (0, 1), done.stderr
    if done.returncode == 1:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


def number(kind: str, text: str) -> Any:
    return struct.unpack("<" + LETTERS[kind], bytes.fromhex(text))[0]


def slots(leaf: dict, group: dict) -> list:
    if leaf["type"] == "bytes":
        found: list[Any] = [bytes.fromhex(text) for text in group["texts"]]
    else:
        found = [value for (value,) in struct.iter_unpack("<" + LETTERS[leaf["type"]], bytes.fromhex(group["numbers"]))]
    assert len(found) == group["slots"]
    present = group["present"] or [1] * len(found)
    assert len(present) == len(found)
    return [value if there else None for value, there in zip(found, present, strict=True)]


def rows(leaf: dict) -> list:
    """The values of each row, nested as its lists are."""
    found: list = []
    for group in leaf["groups"]:
        if "error" in group:
            raise ValueError(group["error"])
        values = slots(leaf, group)
        assert len(group["lists"]) == leaf["lists"]
        for level in reversed(group["lists"]):
            offsets, present = level["offsets"], level["present"] or [1] * (len(level["offsets"]) - 1)
            assert offsets[0] == 0 and offsets[-1] == len(values) and len(present) == len(offsets) - 1
            values = [
                values[begin:end] if there else None
                for begin, end, there in zip(offsets, offsets[1:], present, strict=False)
            ]
        assert len(values) == group["rows"]
        found += values
    return found


def flat(array: pyarrow.Array, name: str = "") -> dict[str, list]:
    """A pyarrow column taken apart into leaves: {path: rows}."""
    kind = array.type
    if pyarrow.types.is_timestamp(kind):
        return {name: array.cast(pyarrow.int64()).to_pylist()}
    if pyarrow.types.is_struct(kind):
        found = {}
        for i in range(kind.num_fields):
            child = pyarrow.compute.struct_field(array, [i])
            found.update(flat(child, f"{name}.{kind.field(i).name}"))
        return found
    if not pyarrow.types.is_map(kind) and not pyarrow.types.is_list(kind) and not pyarrow.types.is_large_list(kind):
        return {name: array.to_pylist()}
    found = {}
    lists = array.to_pylist()
    if pyarrow.types.is_map(kind):
        items: dict[str, pyarrow.Array] = {
            "key": pyarrow.array([p[0] for row in lists if row is not None for p in row], kind.key_type),
            "value": pyarrow.array([p[1] for row in lists if row is not None for p in row], kind.item_type),
        }
        below = {k: v for part, values in items.items() for k, v in flat(values, f"{name}.{part}").items()}
    else:
        below = flat(pyarrow.array([v for row in lists if row is not None for v in row], kind.value_type), name)
    for path, values in below.items():
        at, nested = 0, []
        for row in lists:
            size = 0 if row is None else len(row)
            nested.append(None if row is None else values[at : at + size])
            at += size
        found[path] = nested
    return found


def by_pyarrow(file: Path) -> dict[str, list]:
    """{leaf: rows}, with pyarrow's own values."""
    table = pyarrow.parquet.read_table(file, coerce_int96_timestamp_unit="us")
    found: dict[str, list] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        found.update(flat(column.combine_chunks(), name))
    return found


def plain(value):
    """pyarrow's value as the library has it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    return value


def same(found, expected) -> bool:
    if isinstance(found, float) and isinstance(expected, float) and math.isnan(found):
        return math.isnan(expected)
    return found == expected


def compare(file) -> list[dict]:
    expected = by_pyarrow(file)
    found = leaves(file)
    assert [leaf["name"] for leaf in found] == list(expected)
    for leaf in found:
        want = [plain(value) for value in expected[leaf["name"]]]
        got = rows(leaf)
        assert len(got) == len(want)
        for i, (one, other) in enumerate(zip(got, want, strict=True)):
            assert same(one, other), (leaf["name"], i)
    return found
