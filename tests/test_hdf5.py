"""HDF5: exchanges files with h5py in both directions; damaged files are errors."""

import ctypes
import subprocess

import h5py
import numpy
import pytest
from array_files import all_samples
from conftest import BIN
from h5py import h5t
from hdf5_files import IN_WHEEL, SHAPE, SITE_PACKAGES, arrays, create, each_library, read, same, values


@pytest.fixture
def file(tmp_path):
    """Writes one dataset 'x' and gives the file."""

    def write(array=None, **options):
        with h5py.File(tmp_path / "a.h5", "w", **options.pop("file", {})) as h5:
            h5.create_dataset("x", data=array, **options)
        return tmp_path / "a.h5"

    return write


DTYPES = ["?", "u1", "i1", "<u2", ">i2", "<f2", ">f4", "<f8", ">i8", "<u8", "<c8", "<c16", "S5", "V3"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_read(file, dtype):
    array = values(dtype)
    same(read(file(array, chunks=(3, 2, 6))), array)


FILTERS = {
    "none": {},
    "gzip": {"compression": "gzip"},
    "gzip and shuffle": {"compression": "gzip", "shuffle": True},
    "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "checksum": {"fletcher32": True},
    "lzf": {"compression": "lzf"},
    "lzf and shuffle": {"compression": "lzf", "shuffle": True},
}


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_every_filter_and_both_format_versions_are_read(file, filters, libver):
    array = values("<f4", (300, 40))
    path = file(array, chunks=(16, 16), file={"libver": libver}, **FILTERS[filters])
    same(read(path), array)
    rows = [299, 0, 17, 17, 1]
    same(read(path, "x", *rows), array[rows])


def test_contiguous_inline_and_scalar_datasets_are_read(tmp_path):
    array = values(">f4")
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5["x"] = array
        h5["one"] = numpy.float64(1.5)
        h5.create_dataset("empty", (0, 3), "i4")
        space = h5py.h5s.create_simple(SHAPE)
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_layout(h5py.h5d.COMPACT)
        small = h5py.h5d.create(h5.id, b"small", h5py.h5t.IEEE_F32BE, space, made)
        small.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    same(read(tmp_path / "a.h5"), array)
    same(read(tmp_path / "a.h5", "x", 7, 2), array[[7, 2]])
    same(read(tmp_path / "a.h5", "small"), array)
    same(read(tmp_path / "a.h5", "one"), numpy.array(1.5))
    assert read(tmp_path / "a.h5", "empty") == b""
    assert arrays("hdf5-list", tmp_path / "a.h5").decode().split() == ["empty", "one", "small", "x"]


def test_unwritten_elements_read_as_the_fill_value(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        x = h5.create_dataset("x", (8, 3), ">f4", chunks=(2, 3), fillvalue=2.5)
        x[2:4] = 7
        expected = x[:]
        h5.create_dataset("never", (4,), "i4", fillvalue=-3)
    same(read(tmp_path / "a.h5"), expected)
    same(read(tmp_path / "a.h5", "never"), numpy.full(4, -3, "<i4"))


def test_a_file_behind_a_userblock_is_read(file):
    array = values("<f4")
    same(read(file(array, chunks=(3, 2, 6), compression="gzip", file={"userblock_size": 512})), array)


@each_library
@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}], ids=str)
def test_chunks_behind_a_userblock_are_found_for_any_first_chunk(file, library, options):
    """The black picture that begins is the same where it lies and 512 bytes before."""
    array = (numpy.arange(8 * 1024) % 251).astype("u1").reshape(8, 32, 32)
    array[:2] = 0
    path = file(array, chunks=(2, 32, 32), file={"userblock_size": 512}, **options)
    same(read(path, env=library), array)
    same(read(file(numpy.zeros_like(array), chunks=(2, 32, 32), file={"userblock_size": 1024}), env=library), array * 0)


@each_library
def test_unwritten_elements_behind_a_userblock_read_as_the_fill_value(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as h5:
        h5.create_dataset("x", (4, 2), "<f4", fillvalue=7)
        h5["y"] = numpy.arange(4000.0)
    same(read(tmp_path / "a.h5", env=library), numpy.full((4, 2), 7, "<f4"))
    same(read(tmp_path / "a.h5", "y", env=library), numpy.arange(4000.0))


@each_library
def test_the_userblock_of_an_externally_linked_file_is_counted(tmp_path, library):
    array = values("<f4")
    for own, theirs in ((0, 512), (1024, 0)):
        with h5py.File(tmp_path / "other.h5", "w", userblock_size=theirs) as h5:
            h5.create_dataset("y", data=array, chunks=(3, 2, 6))
            h5.create_dataset("never", (4,), "<i4", fillvalue=-3)
        with h5py.File(tmp_path / "a.h5", "w", userblock_size=own) as h5:
            h5["x"] = h5py.ExternalLink("other.h5", "/y")
            h5["never"] = h5py.ExternalLink("other.h5", "/never")
        same(read(tmp_path / "a.h5", others="anywhere", env=library), array)
        never = read(tmp_path / "a.h5", "never", others="anywhere", env=library)
        same(never, numpy.full(4, -3, "<i4"))


def leave_edges_plain(made):
    """H5Pset_chunk_opts(H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), which h5py does not have."""
    of_h5py = ctypes.CDLL(str(IN_WHEEL))
    of_h5py.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    assert of_h5py.H5Pset_chunk_opts(made.id, 2) >= 0


@each_library
@pytest.mark.parametrize("filters", ["shuffle", "gzip", "checksum", "all"])
def test_unfiltered_edge_chunks_are_read(stoker, tmp_path, library, filters):
    array = values("<i4", (10, 7)) * 1000
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((4, 3))
    if filters in ("shuffle", "all"):
        made.set_shuffle()
    if filters in ("gzip", "all"):
        made.set_deflate(4)
    if filters in ("checksum", "all"):
        made.set_fletcher32()
    leave_edges_plain(made)
    (tmp_path / "hub").mkdir()
    path = tmp_path / "hub/a.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as h5:
        create(h5, b"x", h5t.STD_I32LE, array.shape, made)[...] = array
    same(read(path, env=library), array)
    same(read(path, "x", 9, 0, 8, env=library), array[[9, 0, 8]])
    stoker("data", "index", "hub", code=0, env=library)
    stoker("data", "verify", "hub", "--full", code=0)
    stoker("data", "convert", "hub", "out", "--format", "hdf5", code=0)
    found = all_samples(tmp_path / "out")
    assert [found[key]["npy"][-28:] for key in sorted(found)] == [row.tobytes() for row in array]


def test_datasets_in_groups_and_behind_soft_links_are_read(tmp_path):
    array = values("<f4")
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5["train/images"] = array
        h5["train/again"] = h5py.SoftLink("/train/images")
        h5["ring"] = h5["/"]
    assert "train/images" in arrays("hdf5-list", tmp_path / "a.h5").decode().split()
    same(read(tmp_path / "a.h5", "train/again"), array)


def test_samples_of_different_lengths_are_cut_by_an_index(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5["values"] = numpy.arange(10, dtype="<i4")
        h5["index"] = numpy.array([0, 3, 3, 10])
        h5["wrong"] = numpy.array([0, 4, 3])
        h5["beyond"] = numpy.array([0, 11])
    path = tmp_path / "a.h5"
    assert arrays("hdf5-ragged", path, "values", "index", 2) == numpy.arange(3, 10, dtype="<i4").tobytes()
    assert arrays("hdf5-ragged", path, "values", "index", 1) == b""
    message = arrays("hdf5-ragged", path, "values", "wrong", 0, code=1)
    assert message == "index 'wrong': number 2 is 3, less than the 4 before it\n"
    message = arrays("hdf5-ragged", path, "values", "beyond", 0, code=1)
    assert message == "index 'beyond': number 1 is 11, 'values' has 10 rows\n"


def test_external_links_are_followed_only_when_allowed(tmp_path):
    array = values("<f4")
    with h5py.File(tmp_path / "other.h5", "w") as h5:
        h5["y"] = array
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5["x"] = h5py.ExternalLink("other.h5", "/y")
        h5["soft"] = h5py.SoftLink("/x")
    path = tmp_path / "a.h5"
    for name in ("x", "soft"):
        message = read(path, name, code=1)
        assert (
            message == f"{path}: dataset '{name}': is behind an external link (which is not followed unless allowed)\n"
        )
    same(read(path, others="anywhere"), array)


@pytest.mark.parametrize("dtype", ["?", "u1", "<i2", "<f2", "<f4", "<f8", "<u8", "<c8", "S5"])
@pytest.mark.parametrize("level", ["none", "4"])
def test_h5py_reads_written_files(tmp_path, dtype, level):
    array = values(dtype)
    kind = array.dtype.newbyteorder("<").str
    arrays("hdf5-write", tmp_path / "a.h5", "train/x", kind, "11x5x6", "3x2x6", level, data=array.tobytes())
    with h5py.File(tmp_path / "a.h5") as h5:
        stored = h5["train/x"]
        assert stored.dtype == array.dtype
        assert (stored.compression, stored.shuffle) == (
            (None, False) if level == "none" else ("gzip", array.dtype.itemsize > 1)
        )
        numpy.testing.assert_array_equal(stored[:], array)
    same(read(tmp_path / "a.h5", "train/x"), array)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_h5py_reads_written_parts_and_a_virtual_dataset_over_them(tmp_path):
    array = values("<f4")
    for part in range(2):
        arrays("hdf5-write", tmp_path / f"{part}.h5", "x", "<f4", "11x5x6", "3x2x6", "4", data=(array + part).tobytes())
    path = tmp_path / "all.h5"
    arrays("hdf5-virtual", path, "x", "<f4", "22x5x6", "3x2x6", "none", "0.h5=11", "1.h5=11")
    with h5py.File(path) as h5:
        numpy.testing.assert_array_equal(h5["x"][:], numpy.concatenate([array, array + 1]))


def test_a_virtual_dataset_is_read_from_other_files_only_when_allowed(tmp_path):
    array = values("<f4")
    layout = h5py.VirtualLayout((24, *SHAPE[1:]), "<f4")
    for part in range(2):
        with h5py.File(tmp_path / f"{part}.h5", "w") as h5:
            h5.create_dataset("x", data=array + part, chunks=(3, 2, 6), compression="gzip")
        layout[12 * part : 12 * part + 11] = h5py.VirtualSource(f"{part}.h5", "x", SHAPE)
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as h5:
        h5.create_virtual_dataset("x", layout, fillvalue=7)
    with h5py.File(path) as h5:
        expected = h5["x"][:]
    message = read(path, code=1)
    assert message == f"{path}: dataset 'x': is virtual: its rows are in '0.h5' (which is not opened unless allowed)\n"
    same(read(path, others="beside"), expected)
    same(read(path, "x", 23, 12, 11, 0, others="anywhere"), expected[[23, 12, 11, 0]])


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (
            lambda h5: h5.create_dataset("x", data=["a"], dtype=h5py.string_dtype()),
            "has variable-length values",
        ),
        (
            lambda h5: h5.create_dataset("x", data=numpy.zeros(3, "i4,f8")),
            "holds records: select one of their members ('f0', 'f1')",
        ),
        (lambda h5: h5.create_dataset("x", data=h5py.Empty("f4")), "has no elements and no shape"),
        (lambda h5: h5.create_group("x"), "is not a dataset"),
        (
            lambda h5: h5.create_dataset("x", (4, 4), "i4", chunks=(2, 2), scaleoffset=4),
            "filter 6 ('scaleoffset') is not supported (gzip, shuffle, fletcher32, lzf, zstd and blosc are)\n"
            "  try: h5repack -f SHUF -f GZIP=4 IN.h5 OUT.h5",
        ),
        (
            lambda h5: h5.create_dataset("x", (4,), "i4", external=[("raw", 0, h5py.h5f.UNLIMITED)]),
            "is stored in external files, which are not supported",
        ),
    ],
)
def test_unsupported_features_are_rejected_by_name(tmp_path, make, what):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        make(h5)
    assert read(tmp_path / "a.h5", code=1) == f"{tmp_path}/a.h5: dataset 'x': {what}\n"


@pytest.mark.parametrize(
    ("dtype", "source_rows", "what"),
    [
        ("<f8", 10, "holds int32 for float64"),
        ("<i4", 20, "has 10 of the 20 rows that are read from it"),
    ],
)
def test_a_virtual_dataset_that_differs_from_its_source_is_rejected(stoker, tmp_path, dtype, source_rows, what):
    with h5py.File(tmp_path / "part.hdf5x", "w") as h5:
        h5["d"] = numpy.arange(60, dtype=">i4").reshape(10, 6)
    layout = h5py.VirtualLayout((10, 6), dtype)
    layout[:] = h5py.VirtualSource("part.hdf5x", "d", (source_rows, 6))[source_rows - 10 :]
    with h5py.File(tmp_path / "v.h5", "w", libver="v110") as h5:
        h5.create_virtual_dataset("v", layout, fillvalue=3)
    message = stoker("data", "convert", "v.h5", "out", "--format", "tar", code=2).err
    assert message == f"v.h5: dataset 'v': is virtual: 'd' in 'part.hdf5x' {what}, which is not supported\n"


def test_a_missing_file_a_missing_dataset_and_a_wrong_format_are_errors(file, tmp_path):
    path = file(values("<f4"))
    assert read(tmp_path / "none.h5", code=1) == f"{tmp_path}/none.h5: no such file or directory\n"
    assert read(path, "y", code=1).startswith(f"{path}: dataset 'y': does not exist (")
    (tmp_path / "text.h5").write_text("no HDF5")
    assert read(tmp_path / "text.h5", code=1).startswith(f"{tmp_path}/text.h5: libhdf5 cannot open it (")


def test_a_missing_libhdf5_is_an_error_with_its_cure(file):
    path = file(values("<f4"))
    message = read(path, code=1, env={"STOKER_HDF5_LIBRARY": "/nowhere/libhdf5.so"})
    assert message.startswith("HDF5: /nowhere/libhdf5.so: cannot open shared object file")
    assert message.endswith("(STOKER_HDF5_LIBRARY)\n")


@pytest.mark.parametrize("behind_a_link", [False, True])
def test_the_library_of_h5pys_wheel_is_loaded_with_its_dependencies(file, tmp_path, behind_a_link):
    library = IN_WHEEL
    if behind_a_link:
        library = tmp_path / "libhdf5.so"
        library.symlink_to(IN_WHEEL)
    array = values("<f4")
    path = file(array, chunks=(3, 2, 6), compression="gzip")
    same(read(path, env={"STOKER_HDF5_LIBRARY": str(library)}), array)
    words = ("hdf5-write", tmp_path / "b.h5", "x", "<f4", "11x5x6", "3x2x6", "4")
    arrays(*words, data=array.tobytes(), env={"STOKER_HDF5_LIBRARY": str(library)})
    same(read(tmp_path / "b.h5"), array)


def test_the_newest_library_is_loaded(tmp_path):
    """1.10 does not read the records that 1.12 and newer write."""
    array = numpy.arange(4, dtype="<i4").view([("a", "<i4")])
    with h5py.File(tmp_path / "a.h5", "w", libver=("latest", "latest")) as h5:
        h5["x"] = array
    environment = {"VIRTUAL_ENV": str(SITE_PACKAGES.parents[2]), "STOKER_HDF5_LIBRARY": ""}
    same(read(tmp_path / "a.h5", "x/a", env=environment), array["a"])


def test_a_file_newer_than_the_library_is_an_error_with_its_cure(file):
    path = file(values("<f4"))
    whole = path.read_bytes()
    kind = b"\x11\x20\x1f\x00\x04\x00\x00\x00"  # version 1 of the message, a float
    assert whole.count(kind) == 1
    path.write_bytes(whole.replace(kind, b"\xf1" + kind[1:]))
    environment = {"STOKER_HDF5_LIBRARY": str(IN_WHEEL)}
    expected = (
        f"libhdf5 {h5py.version.hdf5_version} ({IN_WHEEL}) is older than the file, or the file is damaged "
        "(bad version number for datatype message)\n"
        "  try: pip install h5py in the active virtual environment, or STOKER_HDF5_LIBRARY=/path/libhdf5.so of a newer one\n"
    )
    assert read(path, code=1, env=environment) == f"{path}: dataset 'x': {expected}"
    assert read(path, "x/y", code=1, env=environment) == f"{path}: dataset 'x/y': {expected}"
    assert arrays("hdf5-list", path, code=1, env=environment) == f"{path}: '/x': {expected}"


def test_truncated_and_flipped_files_are_errors_or_right(file, tmp_path):
    array = values("<f4", (64, 8))
    whole = file(array, chunks=(8, 8), compression="gzip", shuffle=True, fletcher32=True).read_bytes()
    damaged = tmp_path / "damaged.h5"
    random = numpy.random.default_rng(7)
    cuts = [whole[:size] for size in random.integers(0, len(whole), 8)]
    flips = []
    for at in random.integers(0, len(whole), 24):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(random.integers(8))
        flips.append(bytes(flipped))
    for content in cuts + flips:
        damaged.write_bytes(content)
        done = subprocess.run([BIN / "arrays", "hdf5-read", damaged, "refuse", "x"], capture_output=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 1:
            assert done.stderr.startswith(str(damaged).encode())
        elif content in cuts:
            pytest.fail("a truncated file was read")


@each_library
def test_a_group_that_contains_itself_is_listed_once(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5["a/b/x"] = numpy.arange(3)
        h5["a/b/up"] = h5["a"]
        h5["a/self"] = h5["a"]
        h5["other"] = h5["a/b"]
        for level in range(40):  # two names for each: 2^40 paths
            group = h5.create_group(f"wide/{level}")
            if level > 0:
                h5[f"wide/{level - 1}/one"] = group
                h5[f"wide/{level - 1}/two"] = group
    text = arrays("hdf5-list", tmp_path / "a.h5", code=1, env=library)
    assert text == f"{tmp_path}/a.h5: has more than 100000 groups\n"
    with h5py.File(tmp_path / "a.h5", "a") as h5:
        del h5["wide"]
    listed = arrays("hdf5-list", tmp_path / "a.h5", env=library).decode().split()
    assert listed == ["a/b/x", "other/x"]
