"""Tables of numbers as datasets in place: the same samples as in a copy."""

import decimal
import json
import random
import re

import numpy
import packing
import pyarrow
import pyarrow.parquet
import pytest
from table_files import ROWS, flowers

TAR = ("--format", "tar")
COLUMNS = "petal_length,petal_width,sepal,grown,count,number,day,grid,place"


def same_as_copy(stoker, *options: str) -> None:
    """Checks that `hub`, indexed with these options, has the same samples as a converted copy."""
    stoker("data", "convert", "hub", "copy", *TAR, *options, code=0)
    stoker("data", "index", "hub", *options, code=0)
    stoker("data", "verify", "hub", "--full", code=0)
    found = json.loads(stoker("data", "diff", "copy", "hub", "--json").out)  # a copy may mix the order
    shown = json.loads(stoker("data", "info", "hub", "--json", code=0).out)
    assert found["same"] == shown["samples"] > 0 and found["samples"] == found["schema"] == [], found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0", "data_page_size": 20},
        {
            "use_dictionary": False,
            "column_encoding": {"sepal": "DELTA_BINARY_PACKED", "petal_width": "BYTE_STREAM_SPLIT"},
        },
    ],
)
@pytest.mark.parametrize(
    "chosen",
    [
        ("--columns", COLUMNS),
        ("--tensor", "features=petal_*,sepal,place:float32", "--label", "species"),
        ("--tensor", "all=petal_*,sepal,count,age", "--missing", "-1", "--label", "number", "--key", "name"),
        ("--tensor", "x=age,height", "--missing", "drop", "--where", "part = 'train' and sepal > 20"),
        ("--tensor", "one=height", "--missing", "nan", "--columns", "grid,count", "--label", "number"),
    ],
)
def test_samples_equal_a_copy(stoker, tmp_path, options, chosen):
    flowers(tmp_path / "hub", **options)
    same_as_copy(stoker, *chosen)


def test_row_groups_may_have_any_number_of_rows(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    for name, groups in (("train", (7, 7, 3, 7, 1, 50)), ("val", (4,))):
        schema = pyarrow.schema([("a", pyarrow.int32()), ("b", pyarrow.float64()), ("label", pyarrow.int8())])
        with pyarrow.parquet.ParquetWriter(tmp_path / f"hub/{name}.parquet", schema) as file:
            row = 0
            for rows in groups:
                count = range(row, row + rows)
                part = {"a": count, "b": [i / 3 for i in count], "label": [i % 9 for i in count]}
                file.write_table(pyarrow.table(part, schema))
                row += rows
    same_as_copy(stoker, "--tensor", "x=a,b")


def test_numbers_convert_to_every_type_that_can_represent_them(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    chance = random.Random(4)
    kinds = ("bool_", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
    columns = {
        kind: pyarrow.array([i % 2 for i in range(50)], pyarrow.int8()).cast(getattr(pyarrow, kind)()) for kind in kinds
    }
    columns["half"] = pyarrow.array([numpy.float16(i) for i in range(50)])
    columns["money"] = pyarrow.array(
        [decimal.Decimal(chance.randrange(10**9)) / 100 for _ in range(50)], pyarrow.decimal128(30, 2)
    )
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "hub/train.parquet", row_group_size=20)
    names = ",".join(columns)
    same_as_copy(
        stoker,
        "--tensor",
        f"wide={names}:float64",
        "--tensor",
        f"narrow={names}:float32",
        "--columns",
        "half,money,bool_",
    )
    for dataset in ("copy", "hub"):
        (tmp_path / dataset).rename(tmp_path / f"{dataset}-before")
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub-before/train.parquet").rename(tmp_path / "hub/train.parquet")
    whole = ",".join(kinds)
    same_as_copy(
        stoker,
        *(word for kind in ("int16", "uint64", "int64", "bool") for word in ("--tensor", f"x{kind}={whole}:{kind}")),
    )


def test_table_of_numbers_is_used_whole(stoker, python, tmp_path):
    (tmp_path / "hub").mkdir()
    embedding = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(numpy.arange(40, dtype="f4")), 4)
    table = pyarrow.table({"age": range(10), "label": [i % 3 for i in range(10)], "embedding": embedding})
    pyarrow.parquet.write_table(table, tmp_path / "hub/train.parquet", row_group_size=4)
    done = stoker("data", "index", "hub", code=0)
    assert done.out.startswith("hub: 10 samples, 1 shard, ")
    shown = stoker("data", "info", "hub", code=0).out
    assert "files    age.npy, embedding.npy in parquet" in shown
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=10, shuffle=False, component="embedding.npy", array=True, tensors="numpy"):
    print(batch["array"].dtype, batch["array"].ravel().tolist() == list(range(40)), batch["label"].tolist())
"""
    assert python(code, "hub") == "float32 True [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]\n"
    before = (tmp_path / "hub/index.bin").read_bytes()
    (tmp_path / "hub/index.bin").unlink()
    stoker("data", "index", "hub", code=0)
    assert (tmp_path / "hub/index.bin").read_bytes() == before


def test_selected_and_dropped_rows_are_reported(stoker, tmp_path):
    flowers(tmp_path / "hub")
    options = ("--tensor", "x=age,height", "--missing", "drop", "--where", "sepal >= 0 and part = 'train'")
    lines = stoker("data", "index", "hub", *options, code=0).out.splitlines()
    assert any(re.fullmatch(r"  skipped: sepal \([1-9]\d* samples\)", line) for line in lines)
    assert lines[-2] == "  40 of 60 rows selected, 4 of 6 row groups read (--where)"
    assert lines[-1].endswith(" rows dropped: missing value (--missing drop)")
    assert "or has data that is not in the shards" not in stoker("data", "verify", "hub", code=0).out


def test_selected_rows_are_part_of_the_version(stoker, tmp_path):
    (tmp_path / "one").mkdir()
    table = pyarrow.table({"a": numpy.arange(20, dtype="f4"), "b": [i % 10 for i in range(20)]})
    pyarrow.parquet.write_table(table, tmp_path / "one/train.parquet")
    versions = []
    for name, words in (("two", ()), ("three", ("--where", "b < 5")), ("four", ("--where", "b < 5"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.parquet").write_bytes((tmp_path / "one/train.parquet").read_bytes())
        done = stoker("data", "index", name, "--columns", "a", "--label", "b", *words, "--json", code=0)
        versions.append((json.loads(done.out)["samples"], json.loads(done.out)["version"]))
    assert [samples for samples, _ in versions] == [20, 10, 10]
    assert versions[0] != versions[1] == versions[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "curve"), "hub/train.parquet: column 'curve': its lists have different lengths, "),
        (("--columns", "sepal,name"), "hub/train.parquet: column 'name' has bytes, which these options "),
        (("--label", "species"), "hub/train.parquet: column 'name' has bytes, which these options "),
        (("--tensor", "x=age"), "hub/train.parquet: row 3, column 'age': has no value (--missing)"),
        (
            ("--tensor", "x=count:float32"),
            "hub/train.parquet: row 1, column 'count': 1099511627777 would be rounded in float32",
        ),
        (("--columns", "sepal", "--window", "0:3"), "data index: --window needs arrays; --where, --columns, "),
    ],
)
def test_columns_that_cannot_be_read_in_place_are_refused_with_a_cure(stoker, tmp_path, options, message):
    flowers(tmp_path / "hub")
    done = stoker("data", "index", "hub", *options, code=2)
    assert done.err.startswith(message), done.err
    assert not (tmp_path / "hub/manifest.json").exists()


def test_every_reader_finds_damage(stoker, tmp_path):
    flowers(tmp_path / "hub", compression="none")
    file = tmp_path / "hub/train.parquet"
    whole = file.read_bytes()
    stoker("data", "index", "hub", "--tensor", "x=petal_*,sepal,count", "--label", "species", code=0)
    draw = random.Random(8)
    for _ in range(30):
        damaged = bytearray(whole)
        at = draw.randrange(4, len(whole) // 2)
        damaged[at] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        done = stoker("data", "verify", "hub", "--full")
        assert done.code == 1, (at, done.out)
    file.write_bytes(whole)
    stoker("data", "verify", "hub", "--full", code=0)


def test_indexed_table_can_be_converted(stoker, tmp_path):
    flowers(tmp_path / "hub")
    stoker("data", "index", "hub", "--tensor", "x=petal_*", "--label", "species", code=0)
    stoker("data", "convert", "hub", "copy", *TAR, "--tensor", "x=petal_*", "--label", "species", code=0)
    assert len(packing.members(tmp_path / "copy")) == ROWS
    stoker("data", "convert", "hub", "other", *TAR, code=0)
    assert packing.tree(tmp_path / "other") == packing.tree(tmp_path / "copy")
