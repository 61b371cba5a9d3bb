"""Parquet columns of any type, encoding, codec and nesting: what pyarrow writes is read as pyarrow reads it."""

import datetime
import decimal
import itertools
import math
import random
import struct

import numpy
import pyarrow
import pyarrow.parquet
import pytest
from parquet_tables import EPOCH, compare, leaves, number, rows

ROWS = 700


def missing(values: list, share: float = 0.2) -> list:
    chosen = random.Random(7)
    return [None if chosen.random() < share else value for value in values]


def integers(bits: int, signed: bool) -> list[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return [low, high, 0] + [random.Random(bits).randint(low, high) for _ in range(ROWS - 3)]


def columns() -> dict[str, pyarrow.Array]:
    chosen = random.Random(3)
    found: dict[str, pyarrow.Array] = {"boolean": pyarrow.array([chosen.random() < 0.3 for _ in range(ROWS)])}
    for bits, signed in itertools.product((8, 16, 32, 64), (True, False)):
        kind = getattr(pyarrow, f"{'' if signed else 'u'}int{bits}")()
        found[str(kind)] = pyarrow.array(integers(bits, signed), kind)
    near = [struct.unpack("<e", struct.pack("<e", chosen.gauss(0, 9)))[0] for _ in range(ROWS)]
    found["float16"] = pyarrow.array(near, pyarrow.float16())
    found["float32"] = pyarrow.array(near, pyarrow.float32())
    found["float64"] = pyarrow.array([chosen.gauss(0, 1e9) for _ in range(ROWS)], pyarrow.float64())
    texts = [f"path/to/{i // 7}/é{i}" for i in range(ROWS)]
    found["string"] = pyarrow.array(texts)
    found["large_string"] = pyarrow.array(texts, pyarrow.large_string())
    found["binary"] = pyarrow.array([chosen.randbytes(chosen.randrange(40)) for _ in range(ROWS)])
    found["fixed"] = pyarrow.array([chosen.randbytes(5) for _ in range(ROWS)], pyarrow.binary(5))
    found["few"] = pyarrow.array([("red", "green", "blue")[i % 3] for i in range(ROWS)])
    found["same"] = pyarrow.array([5] * ROWS, pyarrow.int32())
    found["date"] = pyarrow.array([EPOCH.date() + datetime.timedelta(days=i * 9 - 999) for i in range(ROWS)])
    found["time"] = pyarrow.array([i * 1009 for i in range(ROWS)], pyarrow.time64("us"))
    for unit in ("ms", "us", "ns"):
        found[f"at_{unit}"] = pyarrow.array([i * 10**9 - 10**11 for i in range(ROWS)], pyarrow.timestamp(unit))
    found["utc"] = pyarrow.array([i * 10**9 for i in range(ROWS)], pyarrow.timestamp("us", "UTC"))
    for digits in (5, 15, 30, 60):
        kind = pyarrow.decimal128(digits, 3) if digits < 39 else pyarrow.decimal256(digits, 3)
        top = 10**digits - 1
        values = [decimal.Decimal(chosen.randint(-top, top)).scaleb(-3, decimal.Context(prec=99)) for _ in range(ROWS)]
        found[f"decimal{digits}"] = pyarrow.array(values, kind)
    return found


def nested() -> dict[str, pyarrow.Array]:
    chosen = random.Random(5)

    def some(make, most=5):
        return [make() for _ in range(chosen.randrange(most))]

    def maybe(value):
        return None if chosen.random() < 0.15 else value

    tokens = [maybe(some(lambda: chosen.randrange(50000), 90)) for _ in range(ROWS)]
    deep = [maybe(some(lambda: maybe(some(lambda: maybe(some(lambda: maybe(chosen.random()))))))) for _ in range(ROWS)]
    boxes = [
        maybe(some(lambda: maybe({"label": maybe("x" * chosen.randrange(4)), "at": maybe(some(chosen.random))})))
        for _ in range(ROWS)
    ]
    box = pyarrow.struct([("label", pyarrow.string()), ("at", pyarrow.list_(pyarrow.float32()))])
    inner = pyarrow.struct([("a", pyarrow.int16()), ("b", pyarrow.struct([("c", pyarrow.string())]))])
    pairs = pyarrow.map_(pyarrow.string(), pyarrow.list_(pyarrow.int32()))
    return {
        "tokens": pyarrow.array(tokens, pyarrow.list_(pyarrow.int32())),
        "deep": pyarrow.array(deep, pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.float64())))),
        "boxes": pyarrow.array(boxes, pyarrow.list_(box)),
        "inner": pyarrow.array([maybe({"a": maybe(i), "b": maybe({"c": maybe(str(i))})}) for i in range(ROWS)], inner),
        "pairs": pyarrow.array(
            [maybe([(k, maybe([1, 2])) for k in "abc"[: chosen.randrange(4)]]) for _ in range(ROWS)], pairs
        ),
        "filled": pyarrow.array([[i % 250, i % 100] for i in range(ROWS)], pyarrow.list_(pyarrow.uint8())),
        "empty": pyarrow.array([[] for _ in range(ROWS)], pyarrow.list_(pyarrow.string())),
    }


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_values_of_every_type(tmp_path, has_missing, version, dictionary):
    table = columns()
    if has_missing:
        table = {name: pyarrow.array(missing(array.to_pylist()), array.type) for name, array in table.items()}
        table["none"] = pyarrow.nulls(ROWS)
    fields = [pyarrow.field(name, array.type, nullable=has_missing) for name, array in table.items()]
    pyarrow.parquet.write_table(
        pyarrow.table(list(table.values()), pyarrow.schema(fields)),
        tmp_path / "t.parquet",
        use_dictionary=dictionary,
        data_page_version=version,
        row_group_size=300,
        data_page_size=500,
        version="2.6",
    )
    found = {leaf["name"]: leaf for leaf in compare(tmp_path / "t.parquet")}
    for name in ("boolean", "int8", "uint8", "int16", "uint16", "uint32", "uint64", "float16", "float32", "float64"):
        assert found[{"float16": "float16"}.get(name, name)]["type"] in (name, name.replace("halffloat", "float16"))
    assert all(leaf["may_be_missing"] == has_missing for leaf in found.values())
    logical = {name: leaf["logical"] for name, leaf in found.items()}
    assert logical["string"] == "text" and logical["binary"] == "" and logical["decimal15"] == "decimal(15, 3)"
    assert logical["at_ns"] == "timestamp[ns]" and logical["utc"] == "timestamp[us, tz=UTC]"
    assert logical["date"] == "date" and logical["time"] == "time[us]"


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("two_level", [False, True])
def test_lists_structures_and_maps_to_any_depth(tmp_path, version, dictionary, two_level):
    pyarrow.parquet.write_table(
        pyarrow.table(nested()),
        tmp_path / "t.parquet",
        use_dictionary=dictionary,
        data_page_version=version,
        row_group_size=333,
        data_page_size=400,
        use_compliant_nested_type=not two_level,
    )
    found = compare(tmp_path / "t.parquet")
    assert [(leaf["name"], leaf["lists"]) for leaf in found] == [
        ("tokens", 1),
        ("deep", 3),
        ("boxes.label", 1),
        ("boxes.at", 2),
        ("inner.a", 0),
        ("inner.b.c", 0),
        ("pairs.key", 1),
        ("pairs.value", 2),
        ("filled", 1),
        ("empty", 1),
    ]


DELTA = {
    "DELTA_BINARY_PACKED": [
        "int8",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "same",
        "date",
        "at_ns",
        "decimal5",
    ],
    "DELTA_LENGTH_BYTE_ARRAY": ["string", "binary", "few"],
    "DELTA_BYTE_ARRAY": ["string", "binary", "few", "fixed", "decimal30"],
    "BYTE_STREAM_SPLIT": ["float16", "float32", "float64", "int32", "int64", "uint64", "fixed", "decimal30"],
    "RLE": ["boolean"],
    "PLAIN": ["boolean", "int32", "string"],
}


@pytest.mark.parametrize("encoding", DELTA)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_encodings(tmp_path, encoding, version, share):
    found = columns()
    table = {name: pyarrow.array(missing(found[name].to_pylist(), share), found[name].type) for name in DELTA[encoding]}
    if "int32" in table:
        lists = [None if i % 9 == 0 else [i * j for j in range(i % 5)] for i in range(ROWS)]
        table["list"] = pyarrow.array(lists, pyarrow.list_(pyarrow.int32()))
    pyarrow.parquet.write_table(
        pyarrow.table(table),
        tmp_path / "t.parquet",
        use_dictionary=False,
        column_encoding={
            **dict.fromkeys(table, encoding),
            **({"list.list.element": encoding} if "list" in table else {}),
        },
        data_page_version=version,
        row_group_size=433,
        data_page_size=300,
        store_decimal_as_integer=True,
        compression="none",
    )
    compare(tmp_path / "t.parquet")
    statistics = str(pyarrow.parquet.read_metadata(tmp_path / "t.parquet").row_group(0).column(0).encodings)
    assert encoding in statistics


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_codecs(tmp_path, codec, version, dictionary):
    found = {**{name: columns()[name] for name in ("int32", "string", "few", "float64")}, **nested()}
    pyarrow.parquet.write_table(
        pyarrow.table(found),
        tmp_path / "t.parquet",
        compression=codec,
        data_page_version=version,
        use_dictionary=dictionary,
        data_page_size=4000,
    )
    compare(tmp_path / "t.parquet")


def test_missing_brotli_library_is_an_error_with_its_cure(tmp_path, monkeypatch):
    pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2]}), tmp_path / "t.parquet", compression="brotli")
    monkeypatch.setenv("STOKER_BROTLI_LIBRARY", "/nowhere/libbrotlidec.so")
    (leaf,) = leaves(tmp_path / "t.parquet")
    assert leaf["groups"][0]["error"].startswith("file: column 'x': Brotli: libbrotlidec is missing (/nowhere/")
    assert leaf["groups"][0]["error"].endswith(
        "\n  try: apt-get install libbrotli1, or STOKER_BROTLI_LIBRARY=/path/libbrotlidec.so"
    )


def test_ranges_match_the_values(tmp_path):
    table = columns()
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "t.parquet", row_group_size=200, version="2.6")
    for leaf in compare(tmp_path / "t.parquet"):
        at = 0
        for group in leaf["groups"]:
            values = [value for value in rows({**leaf, "groups": [group]}) if value is not None]
            at += group["rows"]
            if leaf["name"].startswith("decimal") and "range" not in group:
                continue
            statistics = group["range"]
            assert statistics["missing"] == 0, leaf["name"]
            if leaf["type"] == "bytes":
                low, high = bytes.fromhex(statistics["least"]), bytes.fromhex(statistics["most"])
            else:
                low, high = number(leaf["type"], statistics["least"]), number(leaf["type"], statistics["most"])
            assert (low, high) == (min(values), max(values)), leaf["name"]


def test_ranges_ignore_nan_and_count_nulls(tmp_path):
    table = pyarrow.table(
        {
            "some": pyarrow.array([1.0, math.nan, 3.0, None]),
            "none": pyarrow.array([None, None, None, None], pyarrow.float64()),
            "nan": pyarrow.array([math.nan] * 4),
            "list": pyarrow.array([[1], [2], None, [3]]),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    found = {leaf["name"]: leaf["groups"][0].get("range", {}) for leaf in leaves(tmp_path / "t.parquet")}
    assert (number("float64", found["some"]["least"]), number("float64", found["some"]["most"])) == (1.0, 3.0)
    assert found["some"]["missing"] == 1 and found["none"] == {"missing": 4} and found["nan"] == {"missing": 0}
    assert number("int64", found["list"]["most"]) == 3 and "missing" not in found["list"]


def test_old_timestamps_are_microseconds(tmp_path):
    times = pyarrow.array([0, -1_000_001, 10**15 + 7, None], pyarrow.timestamp("us"))
    pyarrow.parquet.write_table(
        pyarrow.table({"at": times}), tmp_path / "t.parquet", use_deprecated_int96_timestamps=True
    )
    (leaf,) = leaves(tmp_path / "t.parquet")
    assert (leaf["type"], leaf["logical"]) == ("int64", "timestamp[us]")
    assert rows(leaf) == [0, -1_000_001, 10**15 + 7, None]
    assert "range" not in leaf["groups"][0] or "least" not in leaf["groups"][0]["range"]


def test_two_columns_of_one_name_are_distinguished(tmp_path):
    table = pyarrow.table([[1, 2], ["a", "b"], [3, 4]], names=["x", "x", "y"])
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert [(leaf["name"], rows(leaf)) for leaf in leaves(tmp_path / "t.parquet")] == [
        ("x", [1, 2]),
        ("x#2", [b"a", b"b"]),
        ("y", [3, 4]),
    ]


MANY = 60_000  # several pages of each column, and more of a page than is read at once


def many() -> dict[str, tuple[pyarrow.Array, str]]:
    """Columns by their names, each with its encoding; "" is a dictionary."""
    chance = numpy.random.default_rng(2)
    mask = chance.random(MANY) < 0.1
    mask[:25_000] = False  # a page without one
    whole = chance.integers(-(2**40), 2**40, MANY)
    texts = [f"{number:x}"[: number % 50] * (1 + (number % 1009 == 0) * 40) for number in whole.tolist()]
    lists = pyarrow.array(numpy.minimum(numpy.cumsum(chance.integers(0, 9, MANY // 4 + 1)), MANY).astype(numpy.int32))
    found: dict[str, tuple[pyarrow.Array, str]] = {
        "float": (pyarrow.array(whole.astype(numpy.float32), mask=mask), "BYTE_STREAM_SPLIT"),
        "double": (pyarrow.array(whole.astype(float)), "BYTE_STREAM_SPLIT"),
        "short": (pyarrow.array((whole % 30_000).astype(numpy.int16), mask=mask), "DELTA_BINARY_PACKED"),
        "int": (pyarrow.array((whole % 2**31).astype(numpy.int32)), "DELTA_BINARY_PACKED"),
        "long": (pyarrow.array(numpy.cumsum(whole)), "DELTA_BINARY_PACKED"),
        "truth": (pyarrow.array(whole % 2 == 0, mask=mask), "PLAIN"),
        "runs": (pyarrow.array(numpy.arange(MANY) // 1000 % 3), ""),
        "few": (pyarrow.array(whole % 300, mask=mask), ""),
        "words": (pyarrow.array([text[:2] for text in texts], mask=mask), ""),
        "list": (pyarrow.ListArray.from_arrays(lists, pyarrow.array((whole % 5).astype(numpy.int32))), "PLAIN"),
        "holes": (pyarrow.ListArray.from_arrays(lists, pyarrow.array(whole % 5, mask=mask)), ""),
        "long lists": (
            pyarrow.ListArray.from_arrays(pyarrow.array([0, 30_000, MANY - 1, MANY], pyarrow.int32()), whole),
            "",
        ),
    }
    for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
        found[f"text {encoding}"] = (pyarrow.array(texts, mask=mask), encoding)
    return found


@pytest.mark.parametrize("name", list(many()))
@pytest.mark.parametrize(("page", "compression"), [(4 << 20, "none"), (100_000, "snappy"), (100_000, "zstd")])
def test_columns_of_many_pages(tmp_path, name, page, compression):
    array, encoding = many()[name]
    how = {"use_dictionary": False, "column_encoding": encoding} if encoding else {}
    if array.type == pyarrow.bool_() or pyarrow.types.is_list(array.type):
        how.pop("column_encoding", None)
    pyarrow.parquet.write_table(
        pyarrow.table({"x": array}),
        tmp_path / "t.parquet",
        compression=compression,
        data_page_size=page,
        max_rows_per_page=MANY,
        row_group_size=2 * len(array) // 3,
        **how,
    )
    compare(tmp_path / "t.parquet")
