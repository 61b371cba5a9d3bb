"""NumPy's files (.npy, .npz) with one row per sample: indexed in place, converted, compared with NumPy."""

import hashlib
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy
import pytest
from array_files import all_samples

RANDOM = numpy.random.default_rng(11)
ROWS = 40
X = RANDOM.integers(0, 256, (ROWS, 5, 7, 3)).astype("u1")
DEPTH = RANDOM.normal(size=(ROWS, 6)).astype(">f4")
Y = (numpy.arange(ROWS) % 3).astype("i8")
NAMES = numpy.array([f"kät{i % 5}" for i in range(ROWS)])
CODES = numpy.array([f"c{i}" for i in range(ROWS)], "S")

CODE = """
import sys, json, stoker
found = {}
for batch in stoker.Loader(sys.argv[1], split=sys.argv[2], batch_size=16, shuffle=True, transform=None, component=sys.argv[3],
                           resident=0, window=3, tensors="dlpack", fields=["data", "offset", "key", "label"]):
    offsets, labels = list(memoryview(batch["offset"])), list(memoryview(batch["label"]))
    for i, key in enumerate(batch["key"]):
        found[key] = [bytes(memoryview(batch["data"])[offsets[i]:offsets[i + 1]]).hex(), labels[i]]
print(json.dumps(found))
"""


def save(folder: Path, **arrays) -> Path:
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        numpy.save(folder / f"{name}.npy", array)
    return folder


def loaded(python, dataset: str, component: str, split: str = "all") -> list[tuple[numpy.ndarray, int]]:
    """Array and label of each sample, by its row."""
    found = json.loads(python(CODE, dataset, split, component))
    return [(numpy.load(io.BytesIO(bytes.fromhex(found[key][0]))), found[key][1]) for key in sorted(found)]


def expect(found, rows, labels) -> None:
    assert [label for _, label in found] == [int(label) for label in labels]
    for (array, _), row in zip(found, rows, strict=True):
        assert array.dtype == row.dtype.newbyteorder("<") and numpy.array_equal(array, row)


def test_rows_of_files_in_a_folder_are_samples_in_place(stoker, python, tmp_path):
    save(tmp_path / "hub", X=X, y=Y, depth=DEPTH, codes=CODES)
    before = {file.name: file.read_bytes() for file in (tmp_path / "hub").iterdir()}
    assert "hub: 40 samples, 1 shard" in stoker("data", "index", "hub", code=0).out
    assert all((tmp_path / "hub" / name).read_bytes() == content for name, content in before.items())
    stoker("data", "verify", "hub", "--full", code=0)
    assert "codes, depth.npy, x.npy in npy" in stoker("data", "info", "hub", code=0).out
    expect(loaded(python, "hub", "x.npy"), X, Y)
    expect(loaded(python, "hub", "depth.npy"), DEPTH, Y)


def test_a_lost_index_is_rebuilt_and_a_changed_file_is_reported(stoker, tmp_path):
    save(tmp_path / "hub", X=X, y=Y)
    stoker("data", "index", "hub", code=0)
    before = (tmp_path / "hub/index.bin").read_bytes()
    (tmp_path / "hub/index.bin").unlink()
    stoker("data", "index", "hub", code=0)
    assert (tmp_path / "hub/index.bin").read_bytes() == before
    with (tmp_path / "hub/X.npy").open("r+b") as file:
        file.seek(200)
        file.write(b"\xff\xfe\xfd")
    assert stoker("data", "verify", "hub", "--full").code == 1
    (tmp_path / "hub/index.bin").unlink()
    assert "does not match the manifest" in stoker("data", "index", "hub", code=1).err


@pytest.mark.parametrize(
    "names", [("X_train", "y_train", "X_test", "y_test"), ("train.x", "train.labels", "test.x", "test.labels")]
)
def test_splits_are_recognised_by_names(stoker, python, tmp_path, names):
    save(tmp_path / "hub", **dict(zip(names, (X, Y, X[:9], Y[:9]), strict=True)))
    assert "49 samples, 2 shards" in stoker("data", "index", "hub", code=0).out
    expect(loaded(python, "hub", "npy", "train"), X, Y)
    expect(loaded(python, "hub", "npy", "test"), X[:9], Y[:9])


def test_numbered_files_are_shards(stoker, python, tmp_path):
    for i in range(3):
        save(tmp_path / "hub", **{f"train-images-{i:03}": X[10 * i : 10 * i + 10], f"train-labels-{i:03}": Y[:10]})
    assert "30 samples, 3 shards" in stoker("data", "index", "hub", code=0).out
    expect(loaded(python, "hub", "npy", "train"), X[:30], [*Y[:10]] * 3)


def test_a_number_is_part_of_a_name_unless_all_files_have_one(stoker, python, tmp_path):
    save(tmp_path / "hub", features_512=DEPTH, labels=Y)
    assert "40 samples, 1 shard" in stoker("data", "index", "hub", code=0).out
    expect(loaded(python, "hub", "npy"), DEPTH, Y)


def test_archives_of_stored_members_are_read_in_place(stoker, python, tmp_path):
    (tmp_path / "hub").mkdir()
    numpy.savez(tmp_path / "hub/train-0.npz", X=X[:30], y=Y[:30], mean=numpy.ones(3))
    numpy.savez(tmp_path / "hub/train-1.npz", X=X[30:], y=Y[30:], mean=numpy.ones(3))
    assert "40 samples, 2 shards" in stoker("data", "index", "hub", code=0).out
    stoker("data", "verify", "hub", "--full", code=0)
    expect(loaded(python, "hub", "npy", "train"), X, Y)


def test_labels_of_a_different_length_are_named(stoker, tmp_path):
    save(tmp_path / "hub", X=X, y=Y[:20])
    done = stoker("data", "index", "hub", code=0)
    assert done.out.endswith("\n  skipped: array 'y' as the label, because it has 20 rows (40 samples)\n")
    assert "classes  none" in stoker("data", "info", "hub", code=0).out


def test_the_choice_of_the_label_is_part_of_the_version(stoker, tmp_path):
    """The names of its files contain it, not the bytes of the shard."""
    save(tmp_path / "one", a=numpy.arange(ROWS), y=Y)
    save(tmp_path / "two", label=numpy.arange(ROWS), z=Y)
    done = [json.loads(stoker("data", "index", name, "--json", code=0).out) for name in ("one", "two")]
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("one", "two")]
    assert len({manifest["splits"][0]["shards"][0]["sha256"] for manifest in manifests}) == 1
    assert manifests[0]["schema"] == manifests[1]["schema"]
    assert done[0]["version"] != done[1]["version"]


def converted(stoker, source: str, *options: str) -> dict[str, dict]:
    stoker("data", "convert", source, "out", "--format", "hdf5", *options, code=0)
    return all_samples(stoker.folder / "out")


@pytest.mark.parametrize("how", ["npy", "npz", "compressed", "one file", "fortran"])
def test_converted_rows_equal_numpys(stoker, tmp_path, how):
    arrays = {"X": X, "y": Y, "depth": DEPTH, "names": NAMES, "codes": CODES}
    if how == "fortran":
        arrays |= {"X": numpy.asfortranarray(X), "depth": numpy.asfortranarray(DEPTH)}
    (tmp_path / "hub").mkdir()
    if how in ("npy", "fortran"):
        save(tmp_path / "hub", **arrays)
    else:
        write = numpy.savez_compressed if how == "compressed" else numpy.savez
        write(tmp_path / "hub/train.npz", **arrays)
    found = converted(stoker, "hub/train.npz" if how == "one file" else "hub")
    assert len(found) == ROWS
    for i, key in enumerate(sorted(found)):
        sample = found[key]
        assert sample["label"] == Y[i]
        assert sample["names"].decode() == NAMES[i] and sample["codes"] == CODES[i]
        for name, array in (("x", X), ("depth", DEPTH)):
            read = numpy.load(io.BytesIO(sample[f"{name}.npy"]))
            assert read.dtype == array.dtype.newbyteorder("<") and numpy.array_equal(read, array[i])


def test_texts_may_be_labels(stoker, tmp_path):
    save(tmp_path / "hub", x=DEPTH, labels=NAMES)
    found = converted(stoker, "hub")
    assert [found[key]["label"] for key in sorted(found)] == [i % 5 for i in range(ROWS)]
    assert "kät0, kät1" in stoker("data", "info", "out", code=0).out


@pytest.mark.parametrize("shape", [b"(3L, 2L)", b"(6L,)", b"(3L, 2)"])
def test_files_of_python_2_are_read(stoker, tmp_path, shape):
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': " + shape + b", }"
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    (tmp_path / "hub").mkdir()
    content = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + numpy.arange(6, dtype="<i4").tobytes()
    (tmp_path / "hub/x.npy").write_bytes(content)
    with pytest.warns(UserWarning, match="Python 2"):
        array = numpy.load(tmp_path / "hub/x.npy")
    stoker("data", "index", "hub", code=0)
    found = converted(stoker, "hub")
    assert [numpy.load(io.BytesIO(found[key]["npy"])).tolist() for key in sorted(found)] == array.tolist()


def test_an_archive_of_several_splits_is_converted(stoker, tmp_path):
    numpy.savez_compressed(tmp_path / "mnist.npz", x_train=X, y_train=Y, x_test=X[:9], y_test=Y[:9])
    stoker("data", "convert", "mnist.npz", "out", "--format", "tar", code=0)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert {s["name"]: s["samples"] for s in manifest["splits"]} == {"test": 9, "train": 40}
    (tmp_path / "hub").mkdir()
    (tmp_path / "mnist.npz").rename(tmp_path / "hub/mnist.npz")
    done = stoker("data", "index", "hub", code=2)
    assert (
        done.err == "hub/mnist.npz: holds several splits: test, train\n  try: stoker data convert hub/mnist.npz OUT\n"
    )


def test_the_converted_copy_has_the_samples_of_the_index(stoker, python, tmp_path):
    save(tmp_path / "hub", X=X, y=Y)
    stoker("data", "convert", "hub", "out", "--format", "tar", code=0)
    stoker("data", "index", "hub", code=0)
    here, there = loaded(python, "hub", "npy"), loaded(python, "out", "npy")
    assert [(a.tobytes(), label) for a, label in here] == [(a.tobytes(), label) for a, label in there]
    again = stoker("data", "convert", "hub", "again", "--format", "tar", code=0)
    assert "40 samples" in again.out
    digests = [hashlib.sha256((tmp_path / f"{name}/all-000000.tar").read_bytes()).digest() for name in ("out", "again")]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: save(g, x=numpy.asfortranarray(DEPTH)), "g/x.npy: is in Fortran order, so its rows are not contiguous\n  try: "),
        (lambda g: numpy.savez_compressed(g / "a.npz", x=X), "g/a.npz: member 'x.npy': is compressed, so its rows cannot be"),
        (lambda g: save(g, x=X.astype("c8")), "g/x.npy: has no array with rows of numbers: x: complex64 values\n"),
        (lambda g: save(g, x=numpy.zeros(3, "f4,f4")), "g/x.npy: data type '[' is not supported"),
        (lambda g: save(g, x=numpy.array(["a"], "O")), "g/x.npy: data type '|O' is not supported"),
        (lambda g: save(g, x=numpy.float32(1)), "g/x.npy: has no array with rows of numbers: x: a single value (no rows)\n"),
        (lambda g: save(g, x=numpy.zeros((0, 3))), "g/x.npy: has no array with rows of numbers: x: no rows (shape 0 x 3)\n"),
        (lambda g: save(g, y=Y), "g/y.npy: has only labels"),
        (
            lambda g: save(g, X_train=X, y_train=Y, X_test=X),
            "g: array 'y' of y_train.npy is missing in X_test.npy (all shards need the same arrays)",
        ),
        (lambda g: save(g, X_train=X, train_X=X), "X_train.npy and train_X.npy: are both array 'X' of one shard"),
        (
            lambda g: (save(g, x=X), numpy.savez(g / "a.npz", x=X)),
            "g: has shards of two formats: x.npy and a.npz",
        ),
        (lambda g: zipfile.ZipFile(g / "a.npz", "w").close(), "g/a.npz: has no arrays (members *.npy)"),
        (lambda g: None, "g: no shards (*.tar, "),
    ],
)  # fmt: skip
def test_arrays_without_in_place_access_are_refused(stoker, tmp_path, make, message):
    (tmp_path / "g").mkdir()
    make(tmp_path / "g")
    done = stoker("data", "index", "g", code=2)
    assert message in done.err, done.err


def test_options_for_tables_are_refused(stoker, tmp_path):
    save(tmp_path / "g", x=DEPTH)
    for command in (["index", "g"], ["convert", "g", "out"]):
        assert stoker("data", *command, "--columns", "x").code == 2


def member(content: bytes, method: int) -> bytes:
    """An archive with this content as its only member 'x.npy'."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x.npy", content)
    return file.getvalue()


def npy(array) -> bytes:
    file = io.BytesIO()
    numpy.save(file, array)
    return file.getvalue()


def hostile() -> dict[str, bytes]:
    whole = npy(DEPTH)
    files = {f"cut {n}": whole[:n] for n in (0, 5, 40, 127, len(whole) - 1)}
    files |= {
        "magic": b"x" + whole[1:],
        "length": whole[:8] + b"\xff\xff" + whole[10:],
        "rows": whole.replace(b"(40, 6), }", b"(41, 6), }"),
        "overflow": whole.replace(b"(40, 6), }            ", b"(4611686018427387904, 6), }"),
    }
    return files


@pytest.mark.parametrize("name", hostile())
def test_damaged_files_are_refused(stoker, tmp_path, name):
    content = hostile()[name]
    (tmp_path / "npy").mkdir()
    (tmp_path / "npy/x.npy").write_bytes(content)
    for kind, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "a.npz").write_bytes(member(content, method))
    for folder in ("npy", "stored"):
        done = stoker("data", "index", folder, code=1)
        assert "x.npy" in done.err and "NPY: " in done.err
    for folder in ("npy", "stored", "deflated"):
        assert stoker("data", "convert", folder, "out", "--format", "tar").code == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("save_archive", [numpy.savez, numpy.savez_compressed])
def test_damage_to_an_archive_is_detected_or_harmless(stoker, tmp_path, save_archive):
    """A member is verified by its CRC-32 and its size."""
    file = io.BytesIO()
    save_archive(file, x=numpy.arange(60.0).reshape(20, 3))
    whole = file.getvalue()
    (tmp_path / "g").mkdir()
    expected = None
    for at in [None, *range(30, len(whole), 37)]:
        content = bytearray(whole)
        if at is not None:
            content[at] ^= 0x10
        (tmp_path / "g/a.npz").write_bytes(content)
        done = stoker("data", "convert", "g", f"out{at}", "--format", "tar")
        if at is None:
            expected = (tmp_path / "outNone/a-000000.tar").read_bytes()
        assert done.code != 0 or (tmp_path / f"out{at}/a-000000.tar").read_bytes() == expected, at
    for size in range(0, len(whole), 53):
        (tmp_path / "g/a.npz").write_bytes(whole[:size])
        assert stoker("data", "convert", "g", "cut", "--format", "tar").code != 0


def test_a_member_with_a_false_size_is_not_a_bomb(stoker, tmp_path):
    content = bytearray(member(npy(numpy.zeros((1000, 100))), zipfile.ZIP_DEFLATED))
    size = struct.pack("<I", len(npy(numpy.zeros((1000, 100)))))
    place = content.rindex(size)
    for claimed in (100, 900_000):
        content[place : place + 4] = struct.pack("<I", claimed)
        (tmp_path / "a.npz").write_bytes(content)
        assert "a.npz" in stoker("data", "convert", "a.npz", "out", "--format", "tar", code=1).err
