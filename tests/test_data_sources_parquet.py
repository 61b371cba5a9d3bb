"""Lists of files in Parquet, as pyarrow writes them (tests/golden/make_parquet.py)."""

import shutil

import pytest
from conftest import REPOSITORY
from packing import members, tree

PARQUET = REPOSITORY / "tests/golden/parquet"


@pytest.mark.parametrize(
    "kind", ["none-1-plain", "snappy-1-dictionary", "gzip-2-plain", "zstd-2-dictionary", "brotli", "delta"]
)
def test_a_parquet_list_gives_the_same_dataset_as_the_csv_one(stoker, photos, kind):
    rows = [f"{name}/{i:04}.jpg,{name},{'train' if i % 5 else 'val'}\n" for name in ("cat", "dog") for i in range(20)]
    (photos / "list.csv").write_text("path,label,split\n" + "".join(rows))
    shutil.copy(PARQUET / f"{kind}.parquet", photos)
    stoker("data", "pack", "photos/list.csv", "csv", code=0)
    stoker("data", "pack", f"photos/{kind}.parquet", "parquet", code=0)
    assert tree(stoker.folder / "csv") == tree(stoker.folder / "parquet")


def test_numbers_in_a_parquet_list_are_labels_and_may_be_missing(stoker, photos):
    shutil.copy(PARQUET / "numbers.parquet", photos)
    stoker("data", "pack", "photos/numbers.parquet", "out", "--labels", "cls", code=0)
    found = members(stoker.folder / "out")
    assert (found["cat/0001.cls"], found["dog/0002.cls"]) == (b"1", b"1")
    assert "cat/0009.cls" not in found


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("fractions", "column 'path': holds neither text nor integers\n"),
        ("nameless", "no column 'path' (available: a, b)\n"),
    ],
)
def test_unsupported_parquet_columns_are_errors_with_a_reason(stoker, photos, kind, message):
    shutil.copy(PARQUET / f"{kind}.parquet", photos)
    done = stoker("data", "pack", f"photos/{kind}.parquet", "out", code=2)
    assert done.err.startswith(f"photos/{kind}.parquet: {message}")
