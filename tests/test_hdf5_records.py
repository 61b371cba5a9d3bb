"""HDF5 datasets of a compound type: each member of their records is an array, as h5py reads it."""

import io
import os
import subprocess

import h5py
import numpy
import pytest
from array_files import all_samples
from conftest import BIN

COLOUR = h5py.enum_dtype({"RED": 0, "BLUE": 300}, basetype=">i2")
INNER = numpy.dtype([("x", "<f4"), ("y", ">f8")])
MEMBERS = {
    "id": "<u4",
    "big": ">i8",
    "ok": "?",
    "half": ">f2",
    "name": "S5",
    "raw": "V3",
    "wave": "<c8",
    "box": numpy.dtype((">f4", (2, 3))),
    "where": INNER,
    "colour": COLOUR,
}
PACKED = numpy.dtype(list(MEMBERS.items()))
# With gaps between the members, and some behind them.
PADDED = numpy.dtype(
    {
        "names": list(MEMBERS),
        "formats": list(MEMBERS.values()),
        "offsets": [5 + 50 * i for i in range(len(MEMBERS))],
        "itemsize": 600,
    }
)
PATHS = ["id", "big", "ok", "half", "name", "raw", "wave", "box", "where/x", "where/y", "colour"]
LAYOUTS = {
    "contiguous": {},
    "chunked": {"chunks": (7,)},
    "gzip": {"chunks": (7,), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"chunks": (32,), "compression": "lzf", "shuffle": True},
}


def records(dtype=PACKED, count=45):
    random = numpy.random.default_rng(3)
    array = numpy.frombuffer(random.integers(0, 256, count * dtype.itemsize, "u1").tobytes(), dtype).copy()
    array["id"] = numpy.arange(count)
    array["ok"] = random.integers(0, 2, count)
    array["name"] = [f"n{i}" for i in range(count)]
    return array


def member(array, path):
    for name in path.split("/"):
        array = array[name]
    return array


def read(path, name, *rows, others="refuse", code=0):
    words = [BIN / "arrays", "hdf5-read", path, others, name, *map(str, rows)]
    done = subprocess.run(words, capture_output=True, timeout=120, env=os.environ)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout if code == 0 else done.stderr.decode()


def names(path):
    return subprocess.run([BIN / "arrays", "hdf5-list", path], capture_output=True, check=True).stdout.decode().split()


def same(found, array):
    """The same bits, big-endian ones turned round."""
    assert found == array.astype(array.dtype.newbyteorder("<")).tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [PACKED, PADDED], ids=["packed", "padded"])
@pytest.mark.parametrize("libver", ["earliest", "v110"])  # no older library reads the newest one's records
def test_each_member_is_an_array(tmp_path, layout, dtype, libver):
    array = records(dtype)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=(libver, "v110")) as file:
        file.create_dataset("t/all", data=array, **LAYOUTS[layout])
    with h5py.File(path) as file:
        array = file["t/all"][:]
    assert names(path) == sorted(f"t/all/{one}" for one in PATHS)
    for one in PATHS:
        same(read(path, f"t/all/{one}"), member(array, one))
        same(read(path, f"t/all/{one}", 44, 0, 7, 7, 6), member(array, one)[[44, 0, 7, 7, 6]])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_that_are_arrays_are_dimensions(tmp_path, layout):
    path = tmp_path / "a.h5"
    values = numpy.arange(45 * 2 * 3, dtype=">f4").reshape(45, 2, 3)
    with h5py.File(path, "w") as file:
        file.create_dataset("boxes", (45,), numpy.dtype((">f4", (2, 3))), **LAYOUTS[layout])[...] = values
        assert file["boxes"].shape == (45,), "of h5py's arrays, not of more dimensions"
    assert names(path) == ["boxes"]
    same(read(path, "boxes"), values)
    same(read(path, "boxes", 44, 0, 7, 6), values[[44, 0, 7, 6]])


def test_records_in_several_dimensions_in_the_header_and_alone_are_read(tmp_path):
    array = records(count=24)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("grid", data=array.reshape(4, 6), chunks=(3, 4), compression="gzip")
        file["one"] = array[5]
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_layout(h5py.h5d.COMPACT)
        kind = h5py.h5t.py_create(PACKED)
        small = h5py.h5d.create(file.id, b"small", kind, h5py.h5s.create_simple((24,)), made)
        small.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    for one in PATHS:
        same(read(path, f"grid/{one}"), member(array, one))
        same(read(path, f"small/{one}"), member(array, one))
        if one != "box":
            same(read(path, f"one/{one}"), member(array, one)[5:6])
    assert read(path, "one/box", code=1).endswith("is a single array, not a list of arrays, which is not supported\n")


def test_more_records_than_are_read_at_once_are_read(tmp_path):
    array = records(PADDED, 7000)  # 4 MiB
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = array
    for one in ("id", "box", "where/y"):
        same(read(tmp_path / "a.h5", f"x/{one}"), member(array, one))


def test_unwritten_members_read_as_their_fill_value(tmp_path):
    dtype = numpy.dtype([("a", ">f4"), ("b", "<i2", (3,))])
    fill = numpy.array((2.5, (7, 7, 7)), dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        x = file.create_dataset("x", (9,), dtype, chunks=(2,), fillvalue=fill)
        x[2:4] = numpy.ones(2, dtype)
        file.create_dataset("never", (3,), dtype, fillvalue=fill)
        file.create_dataset("mixed", (3,), dtype, fillvalue=numpy.array((1, (1, 2, 3)), dtype))
        expected = x[:]
    for one in ("a", "b"):
        same(read(tmp_path / "a.h5", f"x/{one}"), expected[one])
        same(read(tmp_path / "a.h5", f"never/{one}"), numpy.full(3, fill, dtype)[one])
    same(read(tmp_path / "a.h5", "mixed/a"), numpy.ones(3, "f4"))
    message = read(tmp_path / "a.h5", "mixed/b", code=1)
    assert message.endswith("has a fill value that differs within an array, which is not supported\n")


def test_a_virtual_dataset_has_the_members_of_its_sources(tmp_path):
    parts = [records(PACKED, 5), records(PADDED, 6)]
    layout = h5py.VirtualLayout(shape=(11,), dtype=PACKED)
    for i, part in enumerate(parts):
        with h5py.File(tmp_path / f"{i}.h5", "w") as file:
            file["x"] = part
        layout[5 * i : 5 * i + len(part)] = h5py.VirtualSource(f"{i}.h5", "x", shape=part.shape)
    with h5py.File(tmp_path / "all.h5", "w", libver=("v110", "v110")) as file:
        file.create_virtual_dataset("x", layout)
    for one in PATHS:
        expected = numpy.concatenate([member(part, one) for part in parts])
        same(read(tmp_path / "all.h5", f"x/{one}", others="beside"), expected)


@pytest.mark.parametrize(
    ("make", "name", "what"),
    [
        (lambda h5: records(), "x", "holds records: select one of their members ('id', 'big', "),
        (lambda h5: records(), "x/none", "its records have no member 'none' (they have 'id', 'big', "),
        (lambda h5: numpy.zeros(3), "x/none", "has no member 'none', its elements are not records\n"),
        (
            lambda h5: numpy.array([("a", 1)], [("t", h5py.string_dtype()), ("n", "i4")]),
            "x/n",
            "has records with references or values of different lengths, which are not supported\n",
        ),
        (lambda h5: numpy.zeros(3, [("p", INNER, (2,))]), "x/p", "has arrays of records as elements"),
    ],
)
def test_unsupported_features_are_rejected_by_name(tmp_path, make, name, what):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5["x"] = make(h5)
    assert read(tmp_path / "a.h5", name, code=1).startswith(f"{tmp_path}/a.h5: dataset '{name}': {what}")


def test_two_floats_are_a_complex_number_only_by_their_names(tmp_path):
    array = numpy.zeros(4, [("x", "<f4"), ("y", "<f4")])
    array["y"] = [1, 2, 3, 4]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["point"] = array
        file["wave"] = numpy.arange(4, dtype="c8")
    assert names(tmp_path / "a.h5") == ["point/x", "point/y", "wave"]
    same(read(tmp_path / "a.h5", "point/y"), array["y"])


def test_members_may_have_any_name(tmp_path):
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 16)
    for i, name in enumerate([b"a/b", b"..", b"b c", b"\xff"]):
        kind.insert(name, 4 * i, h5py.h5t.STD_I32BE)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((3,)))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.arange(12, dtype=">i4"), kind)
    listed = subprocess.run([BIN / "arrays", "hdf5-list", tmp_path / "a.h5"], capture_output=True, check=True).stdout
    assert listed.decode().splitlines() == ["x", "x/..", "x/a/b", "x/b c"]
    same(read(tmp_path / "a.h5", "x/.."), numpy.arange(1, 12, 4, dtype="i4"))
    same(read(tmp_path / "a.h5", "x/a/b"), numpy.arange(0, 12, 4, dtype="i4"))
    assert "('a/b', '..', 'b c', '\\xff')" in read(tmp_path / "a.h5", "x", code=1)


@pytest.mark.parametrize("layout", ["contiguous", "gzip"])
def test_damaged_files_are_errors_or_right(tmp_path, layout):
    """Flips each of the first bytes, which hold names, offsets and sizes of members."""
    path = tmp_path / "a.h5"
    small = numpy.dtype({"names": ["a", "b"], "formats": [">i4", ("<f8", (2,))], "offsets": [3, 9], "itemsize": 31})
    array = numpy.frombuffer(numpy.random.default_rng(1).bytes(31 * 20), small)
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file.create_dataset("x", data=array, **LAYOUTS[layout])
    whole = path.read_bytes()
    begin = whole.index(b"a\0", whole.index(b"OHDR"))
    random = numpy.random.default_rng(7)
    damaged = tmp_path / "damaged.h5"
    for at in [*range(begin - 8, begin + 72, 3), *random.integers(0, len(whole), 20)]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(random.integers(8))
        damaged.write_bytes(flipped)
        words = [BIN / "arrays", "hdf5-read", damaged, "refuse", "x/b"]
        done = subprocess.run(words, capture_output=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 1:
            assert done.stderr.startswith(str(damaged).encode())
    for size in random.integers(0, len(whole), 8):
        damaged.write_bytes(whole[:size])
        assert read(damaged, "x/b", code=1).startswith(str(damaged))


TABLE = numpy.dtype(
    {
        "names": ["flux", "image", "name", "label"],
        "formats": [">f4", ("u1", (4, 5)), "S6", "<i8"],
        "offsets": [1, 8, 30, 40],
        "itemsize": 53,
    }
)


@pytest.fixture
def stars(stoker):
    """A folder `stars` of one file with records beside an array of the same rows."""
    array = numpy.frombuffer(numpy.random.default_rng(1).bytes(53 * 40), TABLE).copy()
    array["flux"] = numpy.random.default_rng(2).normal(size=40)
    array["name"] = [f"star{i % 7}" for i in range(40)]
    array["label"] = numpy.arange(40) % 3
    (stoker.folder / "stars").mkdir()

    def write(**options):
        with h5py.File(stoker.folder / "stars/train.h5", "w") as file:
            file.create_dataset("sky/star", data=array, **options)
            file["depth"] = numpy.arange(80, dtype="<f4").reshape(40, 2)
        return array

    return write


def check(sample, array, i, label=True):
    assert not label or sample.pop("label") == array["label"][i]
    assert sorted(sample) == ["depth.npy", "sky.star.flux.npy", "sky.star.image.npy", "sky.star.name"]
    assert numpy.load(io.BytesIO(sample["sky.star.flux.npy"])) == array["flux"][i]
    assert numpy.array_equal(numpy.load(io.BytesIO(sample["sky.star.image.npy"])), array["image"][i])
    assert sample["sky.star.name"] == array["name"][i]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_records_are_read_in_place(stoker, python, stars, layout):
    array = stars(**LAYOUTS[layout])
    stoker("data", "index", "stars", code=0)
    assert "classes" not in stoker("data", "info", "stars", code=0).err
    stoker("data", "verify", "stars", "--full", code=0)
    code = """
import sys, stoker
for batch in stoker.Loader(sys.argv[1], batch_size=40, shuffle=False, component=sys.argv[2], array=True, tensors="dlpack"):
    print(bytes(memoryview(batch["array"])).hex(), list(memoryview(batch["label"])))
"""
    for component, name in (("sky.star.flux.npy", "flux"), ("sky.star.image.npy", "image")):
        data, labels = python(code, "stars", component).split(" ", 1)
        assert bytes.fromhex(data) == array[name].astype(array[name].dtype.newbyteorder("<")).tobytes()
        assert labels == f"{array['label'].tolist()}\n"


@pytest.mark.parametrize("verb", ["convert", "pack"])
def test_records_are_copied_into_datasets(stoker, stars, verb):
    array = stars(**LAYOUTS["gzip"])
    stoker("data", verb, "stars", "out", "--format", "hdf5", code=0)
    found = all_samples(stoker.folder / "out")
    assert len(found) == 40
    for i in range(40):
        check(found[f"train.h5/{i:08}"], array, i)


def test_members_whose_names_differ_in_case_only_are_refused(stoker, tmp_path):
    with h5py.File(stoker.folder / "x.h5", "w") as file:
        file["t"] = numpy.zeros(3, [("a", "f4"), ("A", "f4")])
    done = stoker("data", "convert", "x.h5", "out", "--format", "tar", code=2)
    assert done.err == "x.h5: two of its arrays would become the file 't.a.npy'\n"
