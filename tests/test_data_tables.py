"""Foreign tables as datasets: columns as arrays and vectors, labels, keys, missing values."""

import json
import random
import subprocess
from pathlib import Path

import numpy
import packing
import pyarrow
import pyarrow.parquet
import pytest
from table_files import ROWS, arrays, flowers

TAR = ("--format", "tar")


def key(row: int) -> str:
    return f"train.parquet/{row:08}"


def convert(stoker, *options: object, code: int = 0):
    return stoker("data", "convert", "hub", "out", *TAR, *options, code=code)


def refusal(stoker, *options: object, code: int = 2) -> str:
    done = convert(stoker, *options, code=code)
    assert done.out == "" and not (stoker.folder / "out").exists()
    return done.err


@pytest.fixture
def table(tmp_path: Path) -> pyarrow.Table:
    return flowers(tmp_path / "hub")


@pytest.mark.parametrize("options", [{}, {"compression": "none", "use_dictionary": False}, {"compression": "zstd"}])
def test_columns_keep_their_type(stoker, tmp_path, options):
    table = flowers(tmp_path / "hub", **options)
    columns = ["petal_length", "petal_width", "sepal", "grown", "count", "number", "day", "curve", "grid"]
    convert(stoker, "--columns", ",".join(columns))
    for name in columns:
        found = arrays(tmp_path / "out", f"{name}.npy")
        assert len(found) == ROWS
        values = table[name].cast(pyarrow.int32()) if name == "day" else table[name]
        for row, value in enumerate(values.to_pylist()):
            array = found[key(row)]
            assert numpy.array_equal(array, value), (name, row)
            assert array.shape == numpy.shape(value) and array.dtype == arrays_type(values.type)


def arrays_type(of: pyarrow.DataType) -> numpy.dtype:
    while pyarrow.types.is_list(of):
        of = of.value_type
    return numpy.dtype(of.to_pandas_dtype())


def test_several_columns_become_one_vector(stoker, python, table, tmp_path):
    convert(stoker, "--tensor", "features=petal_*,sepal,place:float32", "--label", "species")
    code = """
import json, sys, stoker
same = dict(batch_size=60, shuffle=False, array=True, component="features.npy", tensors="numpy")
for batch in stoker.Loader(sys.argv[1], **same):
    print(json.dumps([batch["array"].tolist(), str(batch["array"].dtype), batch["label"].tolist()]))
"""
    found, kind, labels = json.loads(python(code, "out"))
    flat = table.flatten()
    names = ["petal_length", "petal_width", "sepal", "place.x", "place.y"]
    expected = numpy.stack([flat[name].to_numpy().astype("f4") for name in names], axis=1)
    assert kind == "float32" and numpy.array_equal(numpy.array(found, "f4"), expected)
    classes = sorted(set(table["species"].to_pylist()))
    assert [classes[label] for label in labels] == table["species"].to_pylist()
    result = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert result["samples"] == ROWS and result["classes"] == ["aster", "lily", "rose"]
    stoker("data", "lint", "out", code=0)
    stoker("data", "sample", "out", code=0)
    assert 'aria-label="bars"' in (tmp_path / "sample.html").read_text()
    stoker("data", "verify", "out", "--full", code=0)


@pytest.mark.parametrize("kind", ["tar", "tfrecord", "parquet", "hdf5", "zarr"])
def test_every_format_stores_it(stoker, table, tmp_path, kind):
    chosen = ("--columns", "curve,grid,age", "--missing", "0", "--key", "name", "--label", "number")
    convert(stoker, *chosen)
    stoker("data", "pack", "hub", kind, "--format", kind, "--order", "source", *chosen, code=0)
    result = stoker("data", "diff", "out", kind).out
    assert f"  {ROWS} the same" in result or result.startswith("out and tar are identical: version ")


def test_tensor_has_numpys_common_type(stoker, table, tmp_path):
    convert(stoker, "--tensor", "a=petal_width,sepal", "--tensor", "b=sepal,number", "--tensor", "c=petal_width,count")
    stoker("data", "convert", "hub", "half", *TAR, "--tensor", "f=petal_width,sepal,grown:float16", code=0)
    columns = [table[name].to_numpy().astype("f2") for name in ("petal_width", "sepal", "grown")]
    halves = [array for _, array in sorted(arrays(tmp_path / "half", "f.npy").items())]
    assert numpy.array_equal(numpy.stack(halves), numpy.stack(columns, axis=1))
    for name, kind in (("a", "float32"), ("b", "int16"), ("c", "float64")):
        assert {str(array.dtype) for array in arrays(tmp_path / "out", f"{name}.npy").values()} == {kind}


def test_table_of_numbers_is_used_whole_by_default(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    table = pyarrow.table({"a": [1, 2], "label": [1, 0], "b": [[0.5], [0.25, 1.0]]})
    pyarrow.parquet.write_table(table, tmp_path / "hub/all.parquet")
    convert(stoker)
    assert {k: v.tolist() for k, v in arrays(tmp_path / "out", "b.npy").items()} == {
        "all.parquet/00000000": [0.5],
        "all.parquet/00000001": [0.25, 1.0],
    }
    assert arrays(tmp_path / "out", "a.npy")["all.parquet/00000001"] == 2
    stoker("data", "pack", "hub/all.parquet", "packed", "--order", "source", code=0)
    assert stoker("data", "diff", "out", "packed", code=0).out.startswith("out and packed are identical: version ")
    assert json.loads(stoker("data", "info", "packed", "--json", code=0).out)["has_labels"] is True


def test_text_columns_are_files_and_other_columns_are_listed_with_a_cure(stoker, table, tmp_path):
    done = convert(stoker)
    assert "  skipped: sepal (60 samples)\n" in done.out
    assert "  --columns keeps such columns as files, --tensor combines several into one array " in done.out
    assert packing.members(tmp_path / "out")[key(3) + ".name"] == b"plant 3"


def test_images_and_numbers_of_a_row_are_one_sample(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    images = [{"bytes": packing.jpeg(i), "path": f"{i}.jpeg"} for i in range(8)]
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    boxes = [[[1.0 * i, 2.0, 3.0, 4.0]] * i for i in range(8)]
    table = pyarrow.table({"image": pyarrow.array(images, kind), "label": range(8), "boxes": boxes, "width": range(8)})
    pyarrow.parquet.write_table(table, tmp_path / "hub/train.parquet")
    convert(stoker, "--columns", "image,boxes", "--where", "label >= 2 and image.path != '4.jpeg'")
    found = packing.members(tmp_path / "out")
    assert sorted(found) == sorted(
        f"{i}.{kind}" for i in (2, 3, 5, 6, 7) for kind in ("jpg", "boxes.npy", "image.path")
    )
    assert found["5.jpg"] == packing.jpeg(5)
    assert arrays(tmp_path / "out", "boxes.npy")["5"].tolist() == boxes[5]


def test_missing_value_is_an_error_or_filled_or_drops_the_row(stoker, table, tmp_path):
    cure = "  try: --missing drop leaves such rows out, --missing 0 or --missing nan fills them\n"
    assert refusal(stoker, "--columns", "age") == (
        "hub/train.parquet: row 3, column 'age': has no value (--missing)\n" + cure
    )
    done = convert(stoker, "--columns", "age,height", "--missing", "drop")
    left = [row for row in range(ROWS) if row % 10 != 3 and row % 7 != 2]
    assert f"  {ROWS - len(left)} rows dropped: missing value (--missing drop)\n" in done.out
    assert sorted(arrays(tmp_path / "out", "age.npy")) == [key(row) for row in left]

    stoker("data", "pack", "hub", "nan", "--tensor", "both=age,height", "--missing", "nan", code=0)
    both = arrays(tmp_path / "nan", "both.npy")
    columns = [[numpy.nan if v is None else v for v in table[name].to_pylist()] for name in ("age", "height")]
    expected = numpy.stack(columns, axis=1)
    assert all(numpy.array_equal(both[key(row)], expected[row], equal_nan=True) for row in range(ROWS))

    stoker("data", "pack", "hub", "zero", "--columns", "age", "--missing", "-1", code=0)
    assert [int(v) for _, v in sorted(arrays(tmp_path / "zero", "age.npy").items())] == [
        -1 if age is None else age for age in table["age"].to_pylist()
    ]


def test_integers_cannot_be_filled_with_nan(stoker, table):
    assert refusal(stoker, "--columns", "age", "--missing", "nan") == (
        "hub/train.parquet: row 3, column 'age': has no value, and int32 no nan (--missing)\n"
        "  try: --missing drop or a number, or a type that supports it: --tensor NAME=age:float64\n"
    )
    assert refusal(stoker, "--columns", "age", "--missing", "0.5") == (
        "hub/train.parquet: --missing: 0.5 has a fraction for 'age' (int32)\n"
    )


def test_missing_keys_and_labels_are_errors(stoker, table, tmp_path):
    assert "row 3, column 'age': the label is missing" in refusal(stoker, "--columns", "sepal", "--label", "age")
    assert "row 2, column 'height': 0.125" not in refusal(stoker, "--columns", "sepal", "--label", "height")
    convert(stoker, "--columns", "sepal", "--label", "age", "--key", "age", "--missing", "drop")
    assert "3" not in arrays(tmp_path / "out", "sepal.npy")
    assert len(arrays(tmp_path / "out", "sepal.npy")) == ROWS - ROWS // 10


def test_numeric_text_labels_are_kept(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    for name, labels in (("train", ["7", "3"]), ("val", ["0", "7"])):
        table = pyarrow.table({"x": [0.5, 1.5], "digit": labels})
        pyarrow.parquet.write_table(table, tmp_path / f"hub/{name}.parquet")
    convert(stoker, "--label", "digit", "--labels", "cls")
    found = packing.members(tmp_path / "out")
    assert {n.split(".cls")[0]: v for n, v in found.items() if n.endswith(".cls")} == {
        "train.parquet/00000000": b"7",
        "train.parquet/00000001": b"3",
        "val.parquet/00000000": b"0",
        "val.parquet/00000001": b"7",
    }


def test_ragged_lists_are_refused(stoker, table, tmp_path):
    assert refusal(stoker, "--columns", "ragged") == (
        "hub/train.parquet: row 17, column 'ragged': is ragged: its lists have 2 and 1 items, but an array has one length\n"
        "  try: exclude it with --columns, or such rows with --where; or pad the lists where they are written\n"
    )
    convert(stoker, "--columns", "ragged", "--where", "count != 1099511627793")
    assert len(arrays(tmp_path / "out", "ragged.npy")) == ROWS - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "petal"), "--columns: 'petal': no such column"),
        (("--columns", "speces"), "--columns: 'speces': no such column; did you mean 'species'?"),
        (("--columns", "z_*"), "--columns: 'z_*' matches no column"),
        (("--label", "curve"), "--label: column 'curve' is of type list of float32: a number or a text is expected"),
        (("--key", "height"), "--key: column 'height' is of type float64: a whole number or a text is expected"),
        (("--key", "place"), "--key: 'place' matches several columns"),
        (("--tensor", "f=name"), "--tensor f: column 'name' is of type text: a number for each row is expected"),
        (("--tensor", "f=sepal,sepal"), "--tensor f: 'sepal' appears twice"),
        (("--tensor", "f=sepal", "--tensor", "f=number"), "column '--tensor f': a sample has another file 'f.npy'"),
        (("--tensor", "f=count:float32"), "column 'count': 1099511627777 would be rounded in float32 (--tensor)"),
        (("--tensor", "f=petal_length:int8"), "has a fraction in int8 (--tensor)"),
        (("--where", "sepal > 1000", "--columns", "sepal"), "hub: none of 60 rows matches (--where)"),
        (("--where", "speces = 'rose'"), "--where: character 1, 'speces': no such column; did you mean 'species'?"),
        (("--label", "name", "--key", "number"), "hub: train.parquet: sample '0' appears twice"),
    ],
)
def test_options_that_do_not_fit_the_table_are_refused(stoker, table, options, message):
    assert message in refusal(stoker, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--tensor", "features"),
            "data convert: --tensor: 'features': has no '=' (as in features=x1,x2:float32 or ids=",
        ),
        (("--tensor", "f=a:float"), "data convert: --tensor: 'f=a:float': 'float' is not a NumPy number type"),
        (("--tensor", "F/x=a"), "its name may only have lowercase letters, digits, _ and -"),
        (("--columns", "a,,b"), "data convert: --columns: 'a,,b': empty column name\n"),
        (("--missing", "zero"), "data convert: --missing: 'zero' is neither drop, nan nor a number\n"),
        (("--where", "a ="), "data convert: --where: ends where a column, a number or a text is expected\n"),
    ],
)
def test_invalid_options_are_refused(stoker, table, options, message):
    assert message in refusal(stoker, *options)


def test_more_tables_than_files_may_be_open_are_converted(stoker, tmp_path):
    (tmp_path / "tables").mkdir()
    for i in range(150):
        table = pyarrow.table({"x": numpy.arange(3) + 3 * i, "label": [0, 1, 2]})
        pyarrow.parquet.write_table(table, tmp_path / f"tables/part-{i:05}.parquet")
    few = ["bash", "-c", 'ulimit -n 64; exec "$@"', "few"]
    command = [stoker.path, "data", "convert", "tables"]
    subprocess.run(
        [*few, *command, "few", "--format", "tar"], cwd=tmp_path, check=True, capture_output=True, timeout=120
    )
    stoker("data", "convert", "tables", "many", "--format", "tar", code=0)
    found = arrays(tmp_path / "few", "npy")
    assert [int(found[key]) for key in sorted(found)] == list(range(450))
    for shard in sorted((tmp_path / "many").glob("*.tar")):
        assert shard.read_bytes() == (tmp_path / "few" / shard.name).read_bytes()


def test_table_options_need_a_table(stoker, tmp_path):
    packing.make_animals(tmp_path / "animals")
    stoker("data", "pack", "animals", "tarred", code=0)
    message = "is not Parquet: --columns, --tensor, --where, --label, --key and --missing need tables\n"
    for source in ("animals", "tarred"):
        assert stoker("data", "pack", source, "out", "--where", "a = 1", code=2).err == f"{source}: {message}"


def test_unfinished_pack_continues_only_with_the_same_options(stoker, table, tmp_path):
    chosen = ("--columns", "age,sepal", "--shards", "4")
    for fill, message in (
        ("7", "  2 of 4 shards were already complete\n"),
        ("8", "restarted: an unfinished packing had different input or options\n"),
    ):
        stoker("data", "pack", "hub", f"whole{fill}", *chosen, "--missing", fill, code=0)
        stoker("data", "pack", "hub", f"cut{fill}", *chosen, "--missing", "7", "--part", "1/2", code=0)
        assert message in stoker("data", "pack", "hub", f"cut{fill}", *chosen, "--missing", fill, code=0).out
        assert packing.tree(tmp_path / f"cut{fill}") == packing.tree(tmp_path / f"whole{fill}")


def test_result_does_not_depend_on_the_number_of_threads(stoker, tmp_path):
    for i in range(5):
        flowers(tmp_path / "hub")
        (tmp_path / "hub/train.parquet").rename(tmp_path / f"hub/part-{i:05}-of-00005.parquet")
    chosen = ("--columns", "curve,grid", "--label", "species", "--where", "sepal > 20")
    stoker("data", "pack", "hub", "one", "-j", "1", *chosen, code=0)
    stoker("data", "pack", "hub", "four", "-j", "4", *chosen, code=0)
    assert packing.tree(tmp_path / "one") == packing.tree(tmp_path / "four")


@pytest.mark.parametrize("options", [{"compression": "none", "use_dictionary": False}, {"compression": "zstd"}])
def test_rows_are_selected_in_place(stoker, python, tmp_path, options):
    (tmp_path / "hub").mkdir()
    images = [packing.jpeg(i) for i in range(30)]
    for name, first in (("train-00000", 0), ("train-00001", 10), ("val-00000", 20)):
        rows = range(first, first + 10)
        table = pyarrow.table({"jpg": images[first : first + 10], "label": rows, "score": [row / 8 for row in rows]})
        pyarrow.parquet.write_table(table, tmp_path / f"hub/{name}.parquet", row_group_size=4, **options)
    done = stoker("data", "index", "hub", "--where", "label >= 3 and score < 1.75", code=0)
    assert done.out.startswith("hub: 11 samples, 2 shards, ")
    stoker("data", "verify", "hub", "--full", code=0)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=20, shuffle=False, transform=None, tensors="numpy"):
    print(bytes(batch["data"]).hex(), batch["label"].tolist())
"""
    assert python(code, "hub") == f"{b''.join(images[3:14]).hex()} {list(range(3, 14))}\n"
    before = (tmp_path / "hub/index.bin").read_bytes()
    (tmp_path / "hub/index.bin").unlink()
    assert "it was made with options (--where, " in stoker("data", "index", "hub", code=2).err
    stoker("data", "index", "hub", "--where", "label >= 3 and score < 1.75", code=0)
    assert (tmp_path / "hub/index.bin").read_bytes() == before


def test_rows_that_cannot_be_selected_in_place_are_refused(stoker, table, tmp_path):
    assert stoker("data", "index", "hub", "--where", "sepal = 'x'", code=2).err.startswith(
        "hub/train.parquet: --where: character 9, ''x'': sepal is of type int16: a number is expected\n"
    )
    assert stoker("data", "index", "hub", "--where", "sepal >", code=2).err.startswith("data index: --where: ends ")
    none = "hub: none of 60 rows matches (--where)\n"
    numbers = ("--columns", "sepal")
    assert stoker("data", "index", "hub", *numbers, "--where", "sepal > 1000", code=2).err == none
    assert stoker("data", "index", "hub", "--where", "sepal > 1000", code=2).err == none
    packing.make_animals(tmp_path / "animals")
    stoker("data", "pack", "animals", "tarred", code=0)
    (tmp_path / "tarred/manifest.json").unlink()
    assert "tarred/all-000000.tar: is not Parquet: " in stoker("data", "index", "tarred", "--where", "a = 1").err


def test_table_indexed_in_place_can_be_selected_from(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    table = pyarrow.table({"jpg": [packing.jpeg(i) for i in range(6)], "label": range(6)})
    pyarrow.parquet.write_table(table, tmp_path / "hub/train.parquet", compression="none", use_dictionary=False)
    stoker("data", "index", "hub", code=0)
    done = convert(stoker, "--where", "label in (1, 4)")
    assert "  the index of hub is not used: the options select rows and columns instead\n" in done.out
    assert sorted(packing.members(tmp_path / "out")) == [f"{key(i)}.jpg" for i in (1, 4)]


def test_damage_is_reported(stoker, tmp_path):
    flowers(tmp_path / "hub", write_page_checksum=True)
    file = tmp_path / "hub/train.parquet"
    whole = file.read_bytes()
    draw = random.Random(5)
    options = ("--columns", "age,curve,grid,name", "--label", "species", "--missing", "0", "--where", "sepal > 10")
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[draw.randrange(len(whole) // 2, len(whole))] = draw.randrange(256)
        file.write_bytes(damaged)
        done = stoker("data", "convert", "hub", "out", *TAR, *options, "--dry-run")
        assert done.code == 0 or (done.code in (1, 2) and done.err.startswith("hub")), done.err
