"""Partitioned tables (Hive): partition keys are columns, and files that cannot match
are not opened."""

import json
import random
import shutil
from pathlib import Path

import numpy
import packing
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet
import pytest
from pyarrow.compute import field
from table_conditions import COMPARISONS, condition, quoted
from table_files import arrays

TAR = ("--format", "tar")
ROWS = 240
COUNTRIES = ("FR", "DE", "Côte d'Ivoire", "a/b=c", "100%", None)


def sales(folder: Path, *keys: str, rows: int = ROWS, **options) -> pyarrow.Table:
    """Written by pyarrow, in folders for each value of the keys."""
    draw = random.Random(3)
    table = pyarrow.table(
        {
            "row": pyarrow.array(range(rows), pyarrow.int64()),
            "value": pyarrow.array([draw.random() for _ in range(rows)]),
            "count": pyarrow.array([draw.randrange(100) for _ in range(rows)], pyarrow.int16()),
            "year": pyarrow.array([2020 + i % 4 for i in range(rows)], pyarrow.int32()),
            "country": pyarrow.array([COUNTRIES[i // 4 % len(COUNTRIES)] for i in range(rows)]),
            "digit": pyarrow.array([i % 3 for i in range(rows)], pyarrow.int32()),
        }
    )
    keys = keys or ("year", "country")
    schema = pyarrow.schema([table.schema.field(key) for key in keys])
    pyarrow.dataset.write_dataset(
        table,
        folder,
        format="parquet",
        partitioning=pyarrow.dataset.partitioning(schema, flavor="hive"),
        max_rows_per_group=5,
        min_rows_per_group=0,
        file_options=pyarrow.dataset.ParquetFileFormat().make_write_options(**options),
    )
    return table


def one(folder: Path, where: str, columns: dict, **options) -> None:
    path = folder / where
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)


def convert(stoker, *options: object, code: int = 0):
    return stoker("data", "convert", "hub", "out", *TAR, *options, code=code)


def same_as_copy(stoker, *options: object) -> None:
    """Checks that `hub`, indexed with these options, has the same samples as a converted copy."""
    convert(stoker, *options)
    stoker("data", "index", "hub", *options, code=0)
    stoker("data", "verify", "hub", "--full", code=0)
    found = json.loads(stoker("data", "diff", "out", "hub", "--json").out)
    shown = json.loads(stoker("data", "info", "hub", "--json", code=0).out)
    assert found["same"] == shown["samples"] > 0 and found["samples"] == found["schema"] == [], found


def leaf(draw: random.Random):
    """A test in our syntax, and as an Arrow expression."""
    column = draw.choice(("year", "year", "country", "country", "count", "row"))
    kind = draw.randrange(8)
    if kind == 0:
        return f"{column} is null", field(column).is_null()
    if kind == 1 and column == "country":
        return "country like '%e%'", pyarrow.compute.match_like(field("country"), "%e%")
    if column == "country":
        value = draw.choice([country for country in COUNTRIES if country])
        shown = quoted(value)
    else:
        value = draw.randrange(*{"year": (2018, 2026), "count": (0, 100), "row": (0, ROWS)}[column])
        shown = str(value)
    if kind == 2 and column == "year":
        return "count < year", field("count").cast(pyarrow.int64()) < field("year").cast(pyarrow.int64())
    sign = draw.choice(tuple(COMPARISONS))
    return f"{column} {sign} {shown}", COMPARISONS[sign](field(column), pyarrow.scalar(value))


@pytest.mark.parametrize("seed", range(3))
def test_conditions_select_the_same_rows_and_values_as_arrow(stoker, tmp_path, seed):
    sales(tmp_path / "hub")
    draw = random.Random(seed)
    theirs = pyarrow.dataset.dataset(tmp_path / "hub", partitioning="hive")
    for i in range(20):
        text, means = condition(draw, leaf, 3)
        expected = theirs.to_table(filter=means).sort_by("row")
        words = ("--columns", "row", "--tensor", "all=row,year,count", "--key", "row", "--where", text)
        done = stoker(
            "data", "convert", "hub", f"out{i}", *TAR, *words, *(() if i % 4 == 0 else ("--dry-run",)), "--json"
        )
        if len(expected) == 0:
            assert done.code == 2 and "(--where)" in done.out, text
            continue
        assert done.code == 0, (text, done.err)
        assert json.loads(done.out)["table"]["rows_selected"] == len(expected), text
        if i % 4 == 0:
            found = arrays(tmp_path / f"out{i}", "all.npy")
            columns = [expected[name].to_numpy() for name in ("row", "year", "count")]
            assert [found[str(row)].tolist() for row in expected["row"].to_pylist()] == numpy.stack(columns, 1).tolist()


def test_files_whose_path_cannot_match_are_not_opened(stoker, tmp_path):
    sales(tmp_path / "hub")
    words = ("--columns", "value", "--where", "year = 2021 and value < 0.5 and row < 100")
    whole = convert(stoker, *words)
    assert ", 18 of 24 files not opened (--where)\n" in whole.out
    first = (tmp_path / "out/manifest.json").read_bytes()
    shutil.rmtree(tmp_path / "out")
    for file in (tmp_path / "hub").rglob("*.parquet"):
        if "year=2021" not in str(file):
            file.write_bytes(b"no table at all")
    assert convert(stoker, *words).out == whole.out
    assert (tmp_path / "out/manifest.json").read_bytes() == first
    indexed = stoker("data", "index", "hub", *words, code=0)
    assert ", 18 of 24 files not opened (--where)\n" in indexed.out
    none = stoker("data", "convert", "hub", "none", *TAR, "--where", "year = 1999", code=2)
    assert none.err == "hub: none of 24 files can match, by their paths (--where)\n"


@pytest.mark.parametrize("options", [{}, {"compression": "none", "use_dictionary": False}])
@pytest.mark.parametrize(
    "chosen",
    [
        ("--columns", "value,year", "--label", "year", "--key", "row"),
        ("--tensor", "x=value,year,count:float32", "--label", "country", "--missing", "drop"),
        ("--tensor", "x=year:int16", "--where", "country like '%e%' or year >= 2022"),
        ("--tensor", "x=value,year", "--columns", "year,count", "--where", "country is null"),
        (),
    ],
)
def test_partition_keys_are_columns_in_copies_and_in_place(stoker, tmp_path, options, chosen):
    sales(tmp_path / "hub", **options)
    same_as_copy(stoker, *chosen)


def test_labels_keys_and_classes_can_come_from_folders(stoker, tmp_path):
    table = sales(tmp_path / "hub", "country", "digit")
    convert(stoker, "--tensor", "x=value", "--label", "country", "--where", "country is not null")
    result = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert result["classes"] == sorted({c for c in table["country"].to_pylist() if c}, key=str.encode)
    names = sorted(arrays(tmp_path / "out", "x.npy"))
    assert names[0].startswith("country=") and "/part-0.parquet/0000000" in names[0]
    stoker(
        "data",
        "convert",
        "hub",
        "digits",
        *TAR,
        "--tensor",
        "x=value",
        "--label",
        "digit",
        "--key",
        "row",
        "--labels",
        "cls",
        code=0,
    )
    found = packing.members(tmp_path / "digits")
    assert all(found[f"{row}.cls"] == str(row % 3).encode() for row in range(ROWS))


def test_key_types_are_inferred_from_all_values(stoker, tmp_path):
    for i, (month, code, big, mixed) in enumerate((("01", "007", "1", "1"), ("12", "8", "5000000000", "x"))):
        one(tmp_path / "hub", f"month={month}/code={code}/big={big}/mixed={mixed}/a.parquet", {"v": [i]})
    convert(stoker, "--columns", "month,code,big,v,mixed", "--key", "v")
    found = {name: arrays(tmp_path / "out", f"{name}.npy") for name in ("month", "code", "big")}
    assert {name: (str(value["0"].dtype), int(value["0"]), int(value["1"])) for name, value in found.items()} == {
        "month": ("int32", 1, 12),
        "code": ("int32", 7, 8),
        "big": ("int64", 1, 5000000000),
    }
    assert packing.members(tmp_path / "out")["1.mixed"] == b"x"
    wrong = stoker("data", "convert", "hub", "no", *TAR, "--columns", "v", "--where", "mixed = 1", code=2).err
    assert wrong == "hub: --where: character 9, '1': mixed is of type text: a text in single quotes is expected\n"


def test_values_are_decoded_and_hives_null_marker_is_missing(stoker, tmp_path):
    for i, value in enumerate(("a%2Fb%3D%25", "100%", "%C3%BC", "", "__HIVE_DEFAULT_PARTITION__", "%zz%4")):
        one(tmp_path / "hub", f"the%20key={value}/a.parquet", {"v": [i]})
    convert(stoker, "--columns", "v,the key", "--key", "v")
    found = packing.members(tmp_path / "out")
    assert {name[0]: value for name, value in found.items() if not name.endswith(".npy")} == {
        "0": b"a/b=%", "1": b"100%", "2": "ü".encode(), "3": b"", "5": b"%zz%4",
    }  # fmt: skip
    for where, rows in (("is null", ["4"]), ("= ''", ["3"]), ("like '%\xfc%'", ["2"])):
        shutil.rmtree(tmp_path / "out")
        done = convert(stoker, "--columns", "v", "--key", "v", "--where", f'"the key" {where}')
        assert sorted(arrays(tmp_path / "out", "v.npy")) == rows and "5 of 6 files not opened" in done.out


def test_partition_key_shadows_a_column(stoker, tmp_path):
    one(tmp_path / "hub", "year=2024/a.parquet", {"v": [1], "year": [1900]})
    one(tmp_path / "hub", "year=2025/a.parquet", {"v": [2], "year": ["a text"]})
    done = convert(stoker, "--columns", "year", "--key", "v")
    assert "  skipped: year of the file (the path's value is used) (2 samples)\n" in done.out
    assert {key: int(value) for key, value in arrays(tmp_path / "out", "year.npy").items()} == {"1": 2024, "2": 2025}


def test_files_may_be_at_any_depth_and_lack_keys(stoker, tmp_path):
    one(tmp_path / "hub", "top.parquet", {"v": [0]})
    one(tmp_path / "hub", "year=2024/a.parquet", {"v": [1]})
    one(tmp_path / "hub", "year=2024/site=b/a.parquet", {"v": [2]})
    one(tmp_path / "hub", "site=c/a.parquet", {"v": [3]})
    for where, expected in (("year = 2024", "12"), ("year is null", "03"), ("site >= 'b'", "23"), ("v >= 0", "0123")):
        convert(stoker, "--columns", "v", "--key", "v", "--where", where)
        assert sorted(arrays(tmp_path / "out", "v.npy")) == list(expected)
        theirs = pyarrow.dataset.dataset(tmp_path / "hub", partitioning="hive")
        assert len(theirs.to_table()) == 4
        shutil.rmtree(tmp_path / "out")
    err = convert(stoker, "--columns", "year", "--key", "v", code=2).err
    assert err.startswith("hub/site=c/a.parquet: row 0, column 'year': has no value (--missing)\n")
    same_as_copy(stoker, "--columns", "v,year", "--missing", "-1")


def test_metadata_files_of_writers_are_ignored(stoker, tmp_path):
    sales(tmp_path / "hub")
    before = stoker("data", "convert", "hub", "first", *TAR, "--columns", "value", code=0).out
    for name in ("_SUCCESS", "_metadata", "_common_metadata", "README.md", ".part-0.parquet.crc"):
        (tmp_path / "hub" / name).write_bytes(b"x")
        (tmp_path / "hub/year=2020" / name).write_bytes(b"x")
    for folder in ("_temporary/0", "_delta_log", ".hidden", "year=2030"):
        (tmp_path / "hub" / folder).mkdir(parents=True)
    (tmp_path / "hub/_temporary/0/part-9.parquet").write_bytes(b"half a table")
    assert convert(stoker, "--columns", "value").out == before.replace("first", "out")
    stoker("data", "index", "hub", "--columns", "value", code=0)


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (("train/year=1/a", "val/year=1/a"), {"train", "val"}),
        (("year=1/train/a", "year=1/test/a"), {"train", "test"}),
        (("split=train/year=1/a", "split=holdout/year=1/a"), {"train", "holdout"}),
        (("default/train/0000", "default/validation/0000"), {"train", "validation"}),
        (("year=1/train-00000-of-00001", "year=1/test-00000-of-00001"), {"train", "test"}),
        (("year=1/part-0", "year=2/c000-77"), {"all"}),
    ],
)
def test_split_comes_from_folders_and_names(stoker, tmp_path, names, splits):
    for i, name in enumerate(names):
        one(tmp_path / "hub", f"{name}.parquet", {"v": [i, i + 10]})
    same_as_copy(stoker, "--columns", "v")
    result = json.loads(stoker("data", "info", "hub", "--json", code=0).out)
    assert {split["name"] for split in result["splits"]} == splits


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("year=1/year=2/a.parquet",), "hub/year=1/year=2: the key 'year' appears twice in its path\n"),
        (("train/val/a.parquet",), "hub/train/val: its path names two splits: 'train' and 'val'\n"),
        (("split=a%2Fb/a.parquet",), "hub/split=a%2Fb: 'a/b' cannot be the name of a split\n"),
        (("k=%FF/a.parquet",), "hub/k=%FF: its name is not UTF-8\n"),
        (("k=1/a.parquet", "k=2/b.tar"), "hub/k=2/b.tar: is a shard of a different format (tar) among Parquet tables"),
        (("/".join(["d"] * 40) + "/a.parquet", "c/a.parquet"), "folders more than 32 deep (a link to a parent?)\n"),
    ],
)  # fmt: skip
def test_contradictory_paths_are_refused(stoker, tmp_path, names, message):
    for name in names:
        one(tmp_path / "hub", name, {"v": [1]})
    for verb in ("convert", "index"):
        words = ("hub", "out", *TAR) if verb == "convert" else ("hub",)
        assert message in stoker("data", verb, *words, "--columns", "v", code=2).err
    assert not (tmp_path / "hub/manifest.json").exists()


def test_images_among_tables_make_a_folder_of_images(stoker, tmp_path):
    packing.make_images(tmp_path / "hub", {"cat": 60, "dog": 60})
    one(tmp_path / "hub", "aaa/notes.parquet", {"v": [1]})
    (tmp_path / "hub/aaa/1.jpg").write_bytes(packing.jpeg(1))
    assert "3 classes" in stoker("data", "pack", "hub", "out", code=0).out


@pytest.mark.parametrize("options", [{"compression": "none", "use_dictionary": False}, {"compression": "zstd"}])
def test_images_in_partitions_are_read_in_place(stoker, python, tmp_path, options):
    images = [packing.jpeg(i) for i in range(12)]
    for label in range(3):
        mine = images[4 * label : 4 * label + 4]
        one(
            tmp_path / "hub",
            f"train/label={label}/part-0.parquet",
            {"jpg": mine, "n": range(4 * label, 4 * label + 4)},
            **options,
        )
    done = stoker("data", "index", "hub", "--where", "label >= 1 and n != 5", code=0)
    assert "  7 of 8 rows selected, 2 of 2 row groups read, 1 of 3 files not opened (--where)\n" in done.out
    stoker("data", "verify", "hub", "--full", code=0)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=20, shuffle=False, transform=None, tensors="numpy"):
    print(bytes(batch["data"]).hex(), batch["label"].tolist())
"""
    kept = images[4:5] + images[6:]
    assert python(code, "hub") == f"{b''.join(kept).hex()} {[1] * 3 + [2] * 4}\n"
    before = (tmp_path / "hub/index.bin").read_bytes()
    (tmp_path / "hub/index.bin").unlink()
    stoker("data", "index", "hub", "--where", "label >= 1 and n != 5", code=0)
    assert (tmp_path / "hub/index.bin").read_bytes() == before
    stoker("data", "convert", "hub", "copy", *TAR, "--where", "label >= 1 and n != 5", code=0)
    assert sorted(packing.members(tmp_path / "copy").values()) == sorted(kept)
    stoker("data", "pack", "hub", "again", "--where", "label = 2", "--order", "source", code=0)
    assert list(packing.members(tmp_path / "again").values()) == images[8:]


def test_lost_index_is_rebuilt_with_partition_keys(stoker, tmp_path):
    sales(tmp_path / "hub")
    words = ("--tensor", "x=value,year", "--label", "country", "--where", "country > 'B' and year != 2023")
    stoker("data", "index", "hub", *words, code=0)
    before = (tmp_path / "hub/index.bin").read_bytes()
    (tmp_path / "hub/index.bin").unlink()
    stoker("data", "index", "hub", *words, code=0)
    assert (tmp_path / "hub/index.bin").read_bytes() == before


def test_the_loader_reads_tables_in_folders(stoker, python, tmp_path):
    table = sales(tmp_path / "hub")
    stoker("data", "index", "hub", "--tensor", "x=row,year,count:float32", "--label", "digit", code=0)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=17, shuffle="by_chunk", seed=2, array=True, component="x.npy", tensors="numpy"):
    for row, label in zip(batch["array"].tolist(), batch["label"].tolist()):
        print(int(row[0]), int(row[1]), int(row[2]), label)
"""
    found = sorted(tuple(map(int, line.split())) for line in python(code, "hub").splitlines())
    names = ("row", "year", "count", "digit")
    assert found == [tuple(row[name] for name in names) for row in table.to_pylist()]


def test_more_files_than_a_process_may_have_open_are_read(stoker, python, tmp_path):
    for i in range(300):
        one(tmp_path / "hub", f"day={i}/a.parquet", {"v": [i, i + 1000]})
    stoker("data", "index", "hub", "--columns", "v,day", code=0)
    code = """
import resource, sys, stoker
resource.setrlimit(resource.RLIMIT_NOFILE, (160, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for batch in stoker.Loader(sys.argv[1], batch_size=600, seed=1, array=True, component="v.npy", tensors="numpy"):
    print(sorted(batch["array"].tolist()) == [*range(300), *range(1000, 1300)])
"""
    assert python(code, "hub") == "True\n"
