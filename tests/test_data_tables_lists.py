"""Lists in tables: texts and bytes become files of samples, numbers become vectors of one length."""

import json

import numpy
import packing
import pyarrow
import pyarrow.parquet
import pytest
from table_files import arrays

TAR = ("--format", "tar")
CAPTIONS = [["a cat", 'eine "Katze"\n'], [], None, ["ümlaut \u2028 \U0001f408", None, ""], ["<b>"]]
DEEP = [[["x"], [], None, ["y", None]], [], [[]], None, [["z"]]]


def write(folder, columns: dict, **options) -> None:
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "train.parquet", row_group_size=2, **options)


def convert(stoker, *options: object, code: int = 0):
    return stoker("data", "convert", "hub", "out", *TAR, *options, code=code)


def files_of(folder) -> dict[str, dict[str, bytes]]:
    """The files of each sample by key and extension."""
    found: dict[str, dict[str, bytes]] = {}
    for name, content in packing.members(folder).items():
        key, _, extension = name.partition(".")
        found.setdefault(key, {})[extension] = content
    return found


@pytest.mark.parametrize("options", [{}, {"compression": "none", "use_dictionary": False}])
def test_lists_of_texts_are_json(stoker, tmp_path, options):
    kind = pyarrow.list_(pyarrow.string())
    columns = {
        "row": range(5),
        "captions": pyarrow.array(CAPTIONS, kind),
        "deep": pyarrow.array(DEEP, pyarrow.list_(kind)),
    }
    write(tmp_path / "hub", columns, **options)
    convert(stoker, "--columns", "captions,deep,row", "--key", "row")
    found = files_of(tmp_path / "out")
    for row in range(5):
        for name, values in (("captions", CAPTIONS), ("deep", DEEP)):
            text = found[str(row)].get(f"{name}.json")
            assert (text is None) == (values[row] is None)
            assert text is None or json.loads(text) == values[row]


def test_lists_of_images_become_separate_files(stoker, python, tmp_path):
    images = [[packing.jpeg(10 * row + i, kind="PNG" if i == 1 else "JPEG") for i in range(row)] for row in range(5)]
    images[3][0] = None
    images[4][2] = b"no image"
    write(
        tmp_path / "hub",
        {"row": range(5), "views": pyarrow.array(images, pyarrow.list_(pyarrow.binary())), "x": range(5)},
    )
    convert(stoker, "--columns", "views,x", "--key", "row")
    found = files_of(tmp_path / "out")
    kinds = {0: "jpg", 1: "png", 2: "jpg", 3: "jpg"}
    for row in range(5):
        expected = {
            f"views.{i}" + ("" if item == b"no image" else f".{kinds[i]}"): item
            for i, item in enumerate(images[row])
            if item is not None
        }
        assert {name: content for name, content in found[str(row)].items() if name != "x.npy"} == expected
    result = json.loads(stoker("data", "info", "out", "--json", code=0).out)
    assert "views.1.png" in json.dumps(result)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=9, shuffle=False, component="views.1.png", transform=None, tensors="numpy"):
    print(len(bytes(batch["data"])) > 0)
"""
    stoker("data", "convert", "hub", "two", *TAR, "--columns", "views,x", "--where", "x >= 2", code=0)
    assert python(code, "two") == "True\n"


def test_structures_of_images_and_paths_are_selected_by_name(stoker, tmp_path):
    kind = pyarrow.list_(pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())]))
    rows = [[{"bytes": packing.jpeg(i), "path": f"{i}.jpg"} for i in range(2)] for _ in range(3)]
    write(tmp_path / "hub", {"images": pyarrow.array(rows, kind), "label": range(3)})
    convert(stoker, "--columns", "images", "--label", "label")
    found = files_of(tmp_path / "out")["train"]
    names = {name.split("parquet/")[1] for name in packing.members(tmp_path / "out")}
    assert found and {name.partition(".")[2] for name in names} == {
        "images.bytes.0.jpg", "images.bytes.1.jpg", "images.path.json"
    }  # fmt: skip


def test_lists_are_used_by_default_if_nothing_else_exists(stoker, tmp_path):
    write(tmp_path / "hub", {"captions": [["a"], ["b", "c"]], "n": [1, 2]})
    convert(stoker)
    assert sorted(packing.members(tmp_path / "out").values(), key=len)[:2] == [b'["a"]', b'["b","c"]']
    assert len(arrays(tmp_path / "out", "n.npy")) == 2
    write(tmp_path / "with", {"captions": [["a"], ["b", "c"]], "text": ["1", "2"]})
    done = stoker("data", "convert", "with", "other", *TAR, code=0)
    assert "  skipped: captions (2 samples)\n" in done.out


@pytest.mark.parametrize("kind", ["tfrecord", "parquet", "hdf5", "zarr"])
def test_every_format_stores_them(stoker, tmp_path, kind):
    views = pyarrow.array([[b"1", b"22"], [packing.jpeg(1)], []], pyarrow.list_(pyarrow.binary()))
    write(tmp_path / "hub", {"captions": CAPTIONS[:2] + CAPTIONS[3:4], "views": views})
    convert(stoker, "--columns", "captions,views")
    stoker("data", "pack", "hub", kind, "--format", kind, "--order", "source", "--columns", "captions,views", code=0)
    result = stoker("data", "diff", "out", kind).out
    assert "  3 the same" in result or result.startswith("out and ")


@pytest.mark.parametrize(
    ("columns", "words", "message"),
    [
        ({"v": [[b"x"] * 1001]}, "v", "row 0, column 'v': has 1 001 items (at most 1 000 become files of a sample)\n"),
        ({"v": [[[b"x"]]]}, "v", "--columns: column 'v' is of type list of list of bytes: cannot become a file\n"),
        (
            {"v": [[b"x"]], "v.0": [b"y"]},
            "v,v.0",
            "row 0: would have two files 'v.0'\n  try: --columns with only one of them\n",
        ),
        ({"v": [["x"]], "v.json": [b"y"]}, "v,v.json", "a sample has another file 'v.json' already\n"),
        ({"v": [[]], "w": [1]}, "v", "row 0: has no file: all its columns of bytes or text are empty\n"),
    ],
)
def test_columns_that_cannot_become_files_are_refused(stoker, tmp_path, columns, words, message):
    kinds = {"v": pyarrow.list_(pyarrow.binary())} if columns["v"] == [[]] else {}
    write(tmp_path / "hub", {name: pyarrow.array(values, kinds.get(name)) for name, values in columns.items()})
    err = convert(stoker, "--columns", words, code=2).err
    assert err.startswith("hub/train.parquet: ") and message in err


def test_invalid_utf8_is_refused(stoker, tmp_path):
    bad = pyarrow.array([["ok"], [b"\xff".decode("latin-1")]])
    write(tmp_path / "hub", {"v": bad}, compression="none", use_dictionary=False)
    file = tmp_path / "hub/train.parquet"
    file.write_bytes(file.read_bytes().replace("ÿ".encode(), b"\xff\xfe"))
    err = convert(stoker, "--columns", "v", code=2).err
    assert err == "hub/train.parquet: row 1, column 'v': has text that is not UTF-8, which JSON requires\n"


def test_lists_are_not_read_in_place(stoker, tmp_path):
    write(tmp_path / "hub", {"v": [["x"]], "n": [1]})
    err = stoker("data", "index", "hub", "--columns", "v,n", code=2).err
    assert err == (
        "hub/train.parquet: column 'v' has lists of bytes, which cannot be read in place\n"
        "  try: stoker data convert SOURCE OUT --format tar\n"
    )


def refused(stoker, *options: object) -> str:
    done = convert(stoker, *options, code=2)
    assert done.out == "" and not (stoker.folder / "out").exists()
    return done.err


LISTS = [[1, 2, 3], [], [4], list(range(10, 18)), [5, 6, 7, 8]]


def padded(items: list[int], length: int, pad: float) -> list[float]:
    return (items + [pad] * length)[:length]


@pytest.mark.parametrize(
    ("spelled", "length", "pad", "kind"),
    [
        ("[4,pad=0,cut]", 4, 0, "int64"),
        (":int32[4, cut, pad=-100]", 4, -100, "int32"),
        (":float32[9,pad=nan]", 9, float("nan"), "float32"),
        (":uint8[1,pad=255,cut]", 1, 255, "uint8"),
    ],
)
def test_lists_of_different_lengths_become_vectors_of_one(stoker, tmp_path, spelled, length, pad, kind):
    (tmp_path / "hub").mkdir()
    table = pyarrow.table({"row": range(5), "tokens": LISTS})
    pyarrow.parquet.write_table(table, tmp_path / "hub/all.parquet", row_group_size=2)
    done = convert(stoker, "--tensor", f"ids=tokens{spelled}", "--key", "row", "--json")
    found = arrays(tmp_path / "out", "ids.npy")
    for row, items in enumerate(LISTS):
        assert found[str(row)].dtype == kind
        assert numpy.array_equal(found[str(row)], numpy.array(padded(items, length, pad), kind), equal_nan=pad != pad)
    cut = [len(items) - length for items in LISTS if len(items) > length]
    shorter = sum(len(items) < length for items in LISTS)
    result = json.loads(done.out)["table"]["lengths"]["ids.npy"]
    assert result == {"padded": shorter, "cut": len(cut), "items_cut": sum(cut)}
    text = stoker("data", "convert", "hub", "again", *TAR, "--tensor", f"ids=tokens{spelled}", code=0).out
    assert f"  ids.npy: {shorter} list{'s' * (shorter != 1)} padded (--tensor)\n" in text
    lost = f"  ids.npy: {len(cut)} list{'s' * (len(cut) != 1)} truncated by {sum(cut)} items (--tensor)\n"
    assert (lost in text) == bool(cut)


def test_list_of_a_different_length_is_an_error_without_pad_or_cut(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    table = pyarrow.table(
        {"tokens": [[1, 2], [3], None, [4, 5]], "same": [[1.0, 2.0]] * 4, "deep": [[[1]]] * 4, "x": range(4)}
    )
    pyarrow.parquet.write_table(table, tmp_path / "hub/all.parquet")
    start = "hub/all.parquet: row 1, column 'tokens': has 1 items, and 'ids.npy' 2 (--tensor)\n"
    shorter = "  try: --tensor NAME=tokens[2,pad=0], which pads shorter lists with zeros\n"
    assert refused(stoker, "--tensor", "ids=tokens[2]") == start + shorter
    longer = "  try: --tensor NAME=tokens[1,cut], which truncates longer lists\n"
    assert refused(stoker, "--tensor", "ids=tokens[1,pad=0]").endswith(
        "has 2 items, and 'ids.npy' 1 (--tensor)\n" + longer
    )
    assert "row 2, column 'tokens': a list is missing (--missing)" in refused(stoker, "--tensor", "ids=tokens[2,pad=0]")
    message = {
        "f=x[2]": "--tensor f: column 'x' is of type int64: a list of numbers is expected (a length in [ ])",
        "f=deep[2]": "--tensor f: column 'deep' is of type list of list of int64: a list of numbers is expected",
        "f=tokens,same[2]": "--tensor f: a length in [ ] is for one column of lists",
        "f=tokens:uint8[2,pad=-1]": "--tensor f: pad=-1 ",
        "f=tokens": "  try: a length for lists: --tensor f=tokens[512,pad=0,cut]\n",
        "f=tokens[0]": "'0' is not a length",
        "f=tokens[2,pad=x]": "'pad=x' is not a number to pad with",
        "f=tokens[2,trim]": "'trim' is neither pad=NUMBER nor cut",
        "f=tokens[99999999999999999999]": "'99999999999999999999' is not a length",
    }
    for words, what in message.items():
        assert what in refused(stoker, "--tensor", words), words
    assert stoker("data", "index", "hub", "--tensor", "ids=tokens[2,pad=0]", "--missing", "drop", code=2).err == (
        "hub/all.parquet: column 'tokens': not all its lists have 2 items, and only a copy pads and cuts them\n"
        "  try: stoker data convert SOURCE OUT --format tar\n"
    )
    convert(stoker, "--tensor", "same=same:float32[2]")
    stoker("data", "index", "hub", "--tensor", "same=same:float32[2]", code=0)
    assert "  4 the same" in stoker("data", "diff", "out", "hub").out
