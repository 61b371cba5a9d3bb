"""Variable-length values in foreign HDF5 and Zarr files: text, bytes, images, lists of numbers."""

import io
import json
import shutil
import struct
import warnings
from pathlib import Path

import h5py
import numcodecs
import numpy
import pytest
import zarr
from packing import jpeg, members

ROWS = 40
RANDOM = numpy.random.default_rng(5)
TEXTS = ["" if i == 7 else f"row {i} ä" * (i % 4 + 1) for i in range(ROWS)]
NAMES = [("cat", "dog", "Bär")[i % 3] for i in range(ROWS)]
PICTURES = [jpeg(i) for i in range(ROWS)]
LISTS = [RANDOM.integers(-9, 9, i % 5) for i in range(ROWS)]
IMAGES = RANDOM.integers(0, 255, (ROWS, 4, 3)).astype("u1")

HDF5 = {
    "one piece": {},
    "chunks": {"chunks": (16,), "compression": "gzip", "shuffle": True},
    "plain chunks": {"chunks": (7,)},
}
ZARR: dict[str, dict] = {
    "3": {"zarr_format": 3, "chunks": (16,)},
    "3, gzip and crc32c": {"zarr_format": 3, "compressors": [zarr.codecs.GzipCodec(), zarr.codecs.Crc32cCodec()]},
    "3, blosc": {"zarr_format": 3, "compressors": zarr.codecs.BloscCodec(cname="zstd")},
    "3, plain": {"zarr_format": 3, "compressors": None},
    "3, shards": {"zarr_format": 3, "chunks": (8,), "shards": (16,)},
    "2": {"zarr_format": 2, "chunks": (16,)},
    "2, zlib": {"zarr_format": 2, "compressors": numcodecs.Zlib(1)},
    "2, lz4": {"zarr_format": 2, "compressors": numcodecs.LZ4()},
    "2, plain": {"zarr_format": 2, "compressors": None},
}


def of_lists(kind: str, lists=LISTS) -> numpy.ndarray:
    found = numpy.empty(len(lists), dtype=object)
    for i, one in enumerate(lists):
        found[i] = numpy.asarray(one, kind)
    return found


def write_hdf5(file: Path, how: dict, **options) -> None:
    with h5py.File(file, "w", **options) as opened:
        opened.create_dataset("caption", data=TEXTS, dtype=h5py.string_dtype(), **how)
        bytes_of = [numpy.frombuffer(picture, "u1") for picture in PICTURES]
        opened.create_dataset("image", data=of_lists("u1", bytes_of), dtype=h5py.vlen_dtype("u1"), **how)
        opened.create_dataset("tokens", data=of_lists(">i4"), dtype=h5py.vlen_dtype(">i4"), **how)
        opened.create_dataset("floats", data=of_lists("<f4"), dtype=h5py.vlen_dtype("<f4"), **how)
        opened.create_dataset("species_label", data=NAMES, dtype=h5py.string_dtype(), **how)
        opened.create_dataset("pixels", data=IMAGES)


def write_zarr(file: Path, how: dict) -> None:
    store = zarr.storage.ZipStore(file, mode="w") if file.suffix == ".zip" else file
    group = zarr.open_group(store, mode="w", zarr_format=how["zarr_format"])
    rest = {"chunks": (ROWS,)} | {name: value for name, value in how.items() if name != "zarr_format"}
    with warnings.catch_warnings(action="ignore"):  # not in the specification yet
        for name, texts in (("caption", TEXTS), ("species_label", NAMES)):
            group.create_array(name, shape=(ROWS,), dtype=str, **rest)[:] = numpy.array(texts, dtype=object)
        if how["zarr_format"] == 3:
            made = group.create_array("image", shape=(ROWS,), dtype="variable_length_bytes", **rest)
            made[:] = numpy.array(PICTURES, dtype=object)
    pixels = group.create_array("pixels", shape=IMAGES.shape, dtype="u1", chunks=(9, 4, 3))
    pixels[:] = IMAGES
    if isinstance(store, zarr.storage.ZipStore):
        store.close()


CODE = """
import sys, json, stoker
found = {}
for batch in stoker.Loader("hub", batch_size=8, shuffle="by_chunk", transform=None, component=sys.argv[1], resident=0,
                           tensors="dlpack", fields=["data", "offset", "label", "key"]):
    offsets, labels = list(memoryview(batch["offset"])), list(memoryview(batch["label"]))
    for i, key in enumerate(batch["key"]):
        content = bytes(memoryview(batch["data"])[offsets[i]:offsets[i + 1]])
        found[int(key[-8:])] = [content.hex(), labels[i]]
print(json.dumps(found))
"""


def check_in_place(stoker, python, pictures: bool) -> None:
    message = stoker("data", "index", "hub", code=0).out
    assert f"{ROWS} samples" in message
    assert "read back" not in message
    stoker("data", "verify", "hub", "--full", code=0)
    assert "classes  3: Bär, cat, dog" in stoker("data", "info", "hub", code=0).out
    expected = {"caption": [text.encode() for text in TEXTS]} | ({"jpg": PICTURES} if pictures else {})
    for component, contents in expected.items():
        found = json.loads(python(CODE, component))
        for row in range(ROWS):
            content, label = found[str(row)]
            assert bytes.fromhex(content) == contents[row]
            assert ("Bär", "cat", "dog")[label] == NAMES[row]


def converted(stoker, *words: str) -> list[dict[str, bytes]]:
    stoker("data", "convert", *words, "out", "--format", "tar", code=0)
    samples: dict[str, dict[str, bytes]] = {}
    for name, content in members(stoker.folder / "out").items():
        place, _, file = name.rpartition("/")
        key, _, extension = file.partition(".")
        samples.setdefault(f"{place}/{key}", {})[extension] = content
    return [samples[key] for key in sorted(samples)]


@pytest.mark.parametrize("how", HDF5)
def test_hdf5_is_read_in_place(stoker, python, tmp_path, how):
    (tmp_path / "hub").mkdir()
    write_hdf5(tmp_path / "hub/train.h5", HDF5[how])
    check_in_place(stoker, python, pictures=True)


@pytest.mark.parametrize("store", ["train.zarr.zip", "train.zarr"])
@pytest.mark.parametrize("how", ZARR)
def test_zarr_is_read_in_place(stoker, python, tmp_path, how, store):
    (tmp_path / "hub").mkdir()
    write_zarr(tmp_path / "hub" / store, ZARR[how])
    check_in_place(stoker, python, pictures=ZARR[how]["zarr_format"] == 3)


@pytest.mark.parametrize("options", [{}, {"libver": "latest"}, {"userblock_size": 512}])
def test_hdf5_conversion_matches_h5py(stoker, tmp_path, options):
    (tmp_path / "hub").mkdir()
    write_hdf5(tmp_path / "hub/train.h5", HDF5["chunks"], **options)
    samples = converted(stoker, "hub")
    with h5py.File(tmp_path / "hub/train.h5") as opened:
        for row, sample in enumerate(samples):
            assert sample["caption"] == opened["caption"][row] == TEXTS[row].encode()
            assert sample["jpg"] == opened["image"][row].tobytes() == PICTURES[row]
            tokens = numpy.load(io.BytesIO(sample["tokens.npy"]))
            assert tokens.dtype == "<i4" and tokens.tolist() == LISTS[row].tolist()
            little = numpy.load(io.BytesIO(sample["floats.npy"]))
            assert numpy.array_equal(little, opened["floats"][row]) and little.dtype == "<f4"
            assert numpy.array_equal(numpy.load(io.BytesIO(sample["npy"])), IMAGES[row])


@pytest.mark.parametrize("how", ["2", "3"])
def test_zarr_conversion_matches_zarr_python(stoker, tmp_path, how):
    (tmp_path / "hub").mkdir()
    write_zarr(tmp_path / "hub/train.zarr", ZARR[how])
    group = zarr.open_group(tmp_path / "hub/train.zarr", mode="r")
    texts = group["caption"][:]
    for row, sample in enumerate(converted(stoker, "hub")):
        assert sample["caption"].decode() == texts[row] == TEXTS[row]


@pytest.mark.parametrize("how", ["2", "3", "3, shards"])
def test_unwritten_values_of_zarr_are_the_fill_value(stoker, python, tmp_path, how):
    group = zarr.open_group(tmp_path / "hub/x.zarr", mode="w", zarr_format=ZARR[how]["zarr_format"])
    options = {name: value for name, value in ZARR[how].items() if name != "zarr_format"}
    contents = {"caption": [text.encode() for text in TEXTS[:8]] + ["none ä".encode()] * (ROWS - 8)}
    with warnings.catch_warnings(action="ignore"):  # not in the specification yet
        text = group.create_array("caption", shape=(ROWS,), dtype=str, fill_value="none ä", **options)
        text[:8] = numpy.array(TEXTS[:8], dtype=object)
        group.create_array("species_label", shape=(ROWS,), dtype=str, chunks=(ROWS,))[:] = numpy.array(NAMES, object)
        if ZARR[how]["zarr_format"] == 3:
            of_bytes = {"dtype": "variable_length_bytes", "fill_value": b"\1\0\2"}
            blobs = [bytes([row, 0, 255]) for row in range(8)]
            group.create_array("blob", shape=(ROWS,), **of_bytes, **options)[:8] = numpy.array(blobs, dtype=object)
            contents["blob"] = blobs + [b"\1\0\2"] * (ROWS - 8)
        assert [value.encode() for value in text[:].tolist()] == contents["caption"]
    samples = converted(stoker, "hub")
    stoker("data", "index", "hub", code=0)
    stoker("data", "verify", "hub", "--full", code=0)
    for component, expected in contents.items():
        assert [sample[component] for sample in samples] == expected
        found = json.loads(python(CODE, component))
        assert [bytes.fromhex(found[str(row)][0]) for row in range(ROWS)] == expected


def test_lists_of_numbers_need_a_copy_and_are_listed(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    write_hdf5(tmp_path / "hub/train.h5", {})
    message = stoker("data", "index", "hub", code=0).out
    note = (
        "  array 'tokens' is left out: it cannot be read in place "
        "(`stoker data convert` includes it if the folder has no manifest.json and index.bin)\n"
    )
    assert note in message
    assert all("tokens.npy" not in sample for sample in converted(stoker, "hub"))
    shutil.rmtree(tmp_path / "out")
    for name in ("manifest.json", "index.bin"):
        (tmp_path / "hub" / name).unlink()
    assert all("tokens.npy" in sample for sample in converted(stoker, "hub"))


def test_only_lists_suggest_data_convert(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    with h5py.File(tmp_path / "hub/x.h5", "w") as opened:
        opened.create_dataset("tokens", data=of_lists("f4"), dtype=h5py.vlen_dtype("f4"))
    refused = stoker("data", "index", "hub", code=2)
    assert refused.err == ("hub/x.h5: none of its arrays can be read in place\n  try: stoker data convert hub OUT\n")
    samples = converted(stoker, "hub")
    assert [numpy.load(io.BytesIO(sample["tokens.npy"])).tolist() for sample in samples] == [
        one.tolist() for one in LISTS
    ]


def test_numcodecs_arrays_of_different_lengths_are_converted(stoker, tmp_path):
    store = tmp_path / "hub/x.zarr"
    (store / "tokens").mkdir(parents=True)
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    about = {"shape": [ROWS], "chunks": [ROWS], "dtype": "|O", "fill_value": 0, "order": "C", "zarr_format": 2}
    codecs = {"filters": [{"id": "vlen-array", "dtype": "<f4"}], "compressor": None}
    (store / "tokens/.zarray").write_text(json.dumps(about | codecs))
    (store / "tokens/0").write_bytes(numcodecs.VLenArray("<f4").encode(of_lists("<f4")))
    found = [numpy.load(io.BytesIO(sample["tokens.npy"])) for sample in converted(stoker, "hub")]
    assert all(one.dtype == "f4" for one in found)
    assert [one.tolist() for one in found] == [one.tolist() for one in LISTS]


# h5py has no UTF-32.
@pytest.mark.parametrize(("store", "kind"), [("x.h5", "S9"), ("x.zarr", "S9"), ("x.zarr", "U9")])
def test_fixed_size_text_is_text_or_a_class(stoker, tmp_path, store, kind):
    (tmp_path / "hub").mkdir()
    names = numpy.array([name.replace("ä", "ae") if kind == "S9" else name for name in NAMES]).astype(kind)
    arrays = {"name": names, "label": names, "pixels": IMAGES}
    if store == "x.h5":
        with h5py.File(tmp_path / "hub/x.h5", "w") as opened:
            for name, array in arrays.items():
                opened[name] = array
    else:
        group = zarr.open_group(tmp_path / "hub/x.zarr", mode="w", zarr_format=2)
        for name, array in arrays.items():
            group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=(7, *array.shape[1:]))[:] = array
    text = [name if isinstance(name, bytes) else name.encode() for name in names.tolist()]
    assert [sample["name"] for sample in converted(stoker, "hub")] == text
    assert "classes  3: " in stoker("data", "info", "out", code=0).out
    message = stoker("data", "index", "hub", code=0).out
    assert ("array 'name' is left out: it cannot be read in place" in message) == (kind == "U9")
    assert "classes  3: " in stoker("data", "info", "hub", code=0).out
    stoker("data", "verify", "hub", "--full", code=0)


def test_unwritten_values_are_empty(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    with h5py.File(tmp_path / "hub/x.h5", "w") as opened:
        opened.create_dataset("a", (ROWS,), dtype=h5py.string_dtype(), chunks=(8,))[3] = "abc"
    expected = [b"abc" if i == 3 else b"" for i in range(ROWS)]
    assert [sample["a"] for sample in converted(stoker, "hub")] == expected


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (
            lambda h5: h5.create_dataset("x", (3,), dtype=h5py.vlen_dtype(h5py.vlen_dtype("i4"))),
            "dataset 'x': nested lists of different lengths are not supported",
        ),
        (
            lambda h5: h5.create_dataset("x", (3,), dtype=h5py.vlen_dtype("c8")),
            "dataset 'x': lists of different lengths are supported for numbers only",
        ),
        (
            lambda h5: h5.create_dataset("x", (3,), dtype=h5py.string_dtype(), fillvalue="none", chunks=(2,)),
            "dataset 'x': has a fill value of variable length, which is not supported",
        ),
        (
            lambda h5: h5.create_dataset("x", data=[["a", "b"]], dtype=h5py.string_dtype()),
            "has no array with rows of numbers: x: several texts per row (shape 1 x 2)\n"
            "  try: save each column of 'x' as a separate array",
        ),
    ],
)
def test_unsupported_values_are_refused_by_name(stoker, tmp_path, make, what):
    with h5py.File(tmp_path / "x.h5", "w") as opened:
        make(opened)
    assert stoker("data", "convert", "x.h5", "out", "--format", "tar", code=2).err == f"x.h5: {what}\n"


def reference(file: Path, row: int) -> int:
    """The offset of a row's reference in a contiguous dataset."""
    with h5py.File(file) as opened:
        return opened["a"].id.get_offset() + 16 * row


@pytest.mark.parametrize(
    ("at", "what", "message"),
    [
        (4, struct.pack("<Q", 1 << 40), "the heap at 1099511627776: is beyond the end of the file"),
        (4, struct.pack("<Q", 8), "the heap at 8: is not a heap"),
        (12, struct.pack("<I", 999), "has no object 999"),
        (12, struct.pack("<I", 0), "has no object 0"),
        (0, struct.pack("<I", 5000), "value 2 has 5000 bytes, its heap object has 3"),
    ],
)
@pytest.mark.parametrize("verb", [["index", "hub"], ["convert", "hub", "out", "--format", "tar"]])
def test_dangling_references_are_reported(stoker, tmp_path, at, what, message, verb):
    (tmp_path / "hub").mkdir()
    file = tmp_path / "hub/x.h5"
    with h5py.File(file, "w") as opened:
        opened["a"] = ["aaa", "bbb", "ccc"]
    content = bytearray(file.read_bytes())
    begin = reference(file, 2) + at
    content[begin : begin + len(what)] = what
    file.write_bytes(content)
    refused = stoker("data", *verb, code=1)
    assert refused.err.startswith("hub/x.h5: dataset 'a': ")
    assert refused.err.endswith(f"{message}\n")


def test_a_heap_of_hostile_sizes_is_refused(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    file = tmp_path / "hub/x.h5"
    with h5py.File(file, "w") as opened:
        opened["a"] = ["aaa", "bbb", "ccc"]
    whole = file.read_bytes()
    heap = whole.index(b"GCOL")
    for place, message in ((8, "is beyond the end of the file"), (24, "an object is longer than its heap")):
        content = bytearray(whole)
        content[heap + place : heap + place + 8] = b"\xff" * 8
        file.write_bytes(content)
        refused = stoker("data", "convert", "hub/x.h5", "out", "--format", "tar", code=1)
        assert refused.err == f"hub/x.h5: dataset 'a': the heap at {heap}: {message}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the number of values is missing"),
        (struct.pack("<I", 2), "has 2 values, expected 3"),
        (struct.pack("<I", 4), "has 4 values, expected 3"),
        (struct.pack("<II", 3, 1) + b"a", "value 1 is outside the chunk"),
        (struct.pack("<II", 3, 0xFFFFFFFF), "value 0 is outside the chunk"),
    ],
)
def test_zarr_chunk_with_wrong_lengths_is_reported(stoker, tmp_path, content, message):
    zarr.create_array(tmp_path / "hub/x.zarr", shape=(3,), dtype=str, chunks=(3,), compressors=None, zarr_format=2)
    (tmp_path / "hub/x.zarr/0").write_bytes(content)
    for verb in (["index", "hub"], ["convert", "hub", "out", "--format", "tar"]):
        assert stoker("data", *verb, code=1).err == f"hub/x.zarr: chunk 0: {message}\n"


def test_damaged_files_are_errors_or_correct(stoker, tmp_path):
    (tmp_path / "hub").mkdir()
    file = tmp_path / "hub/x.h5"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("a", data=TEXTS, dtype=h5py.string_dtype(), chunks=(16,), compression="gzip")
    whole = file.read_bytes()
    random = numpy.random.default_rng(7)
    for at in random.integers(0, len(whole), 24):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(random.integers(8))
        file.write_bytes(flipped)
        done = stoker("data", "index", "hub")
        assert done.code in (0, 1, 2), done.err
        for made in (tmp_path / "hub/index.bin", tmp_path / "hub/manifest.json"):
            made.unlink(missing_ok=True)
