"""HDF5: numbers, texts and enumerations are read as h5py reads them, or refused by name."""

import io

import h5py
import numpy
import pytest
from array_files import all_samples
from h5py import h5t
from hdf5_files import changed, create, each_library, read

FEW_BITS = changed(h5t.STD_I16LE, precision=12)
SHIFTED = changed(h5t.STD_U16BE, precision=12, offset=4)
BIASED = changed(h5t.IEEE_F32LE, ebias=120)
ENUMERATION = h5t.enum_create(FEW_BITS)
ENUMERATION.enum_insert(b"A", 1)
COMPLEX = h5t.create(h5t.COMPOUND, 8)
RECORD = h5t.create(h5t.COMPOUND, 8)
for name, at in ((b"r", 0), (b"i", 4)):
    COMPLEX.insert(name, at, BIASED)
    RECORD.insert(name, at, FEW_BITS)
NO_INTEGERS = "integers of 12 bits in 2 bytes are not supported"
NO_FLOATS = "its floating-point numbers are neither IEEE's of 16, 32 or 64 bits nor bfloat16, which are not supported"


@each_library
@pytest.mark.parametrize(
    ("kind", "name", "what"),
    [
        (FEW_BITS, "x", NO_INTEGERS),
        (SHIFTED, "x", NO_INTEGERS),
        (ENUMERATION, "x", NO_INTEGERS),
        (h5t.vlen_create(SHIFTED), "x", NO_INTEGERS),
        (RECORD, "x/i", NO_INTEGERS),
        (h5t.array_create(FEW_BITS, (2,)), "x", NO_INTEGERS),
        (BIASED, "x", NO_FLOATS),
        (changed(h5t.IEEE_F64BE, norm=h5t.NORM_NONE), "x", NO_FLOATS),
        (h5t.NATIVE_LDOUBLE, "x", NO_FLOATS),
        (COMPLEX, "x", NO_FLOATS),
        (h5t.vlen_create(BIASED), "x", NO_FLOATS),
    ],
)
def test_numbers_with_unused_bits_are_rejected_by_name(tmp_path, library, kind, name, what):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        create(h5, b"x", kind)
    assert read(tmp_path / "a.h5", name, code=1, env=library) == f"{tmp_path}/a.h5: dataset '{name}': {what}\n"


def test_an_enumeration_of_two_names_is_its_numbers_unless_they_are_h5pys(stoker, tmp_path):
    kinds = {"truth": {"FALSE": 0, "TRUE": 1}, "pet": {"CAT": 1, "DOG": 5}, "other": {"FALSE": 1, "TRUE": 0}}
    rows = numpy.array([[0, 1], [1, 0], [1, 1], [0, 0]], "i1")
    with h5py.File(tmp_path / "x.h5", "w") as h5:
        for name, members in kinds.items():
            stored = rows * 4 + 1 if name == "pet" else rows
            kind = "?" if name == "truth" else h5py.enum_dtype(members, basetype="i1")
            h5.create_dataset(name, data=stored.astype("?") if name == "truth" else stored, dtype=kind)
        h5.create_dataset("label", data=rows[:, 0], dtype=h5py.enum_dtype({"CAT": 0, "DOG": 1}, basetype="i1"))
        expected = {name: h5[name][:] for name in kinds}
    stoker("data", "convert", "x.h5", "out", "--format", "hdf5", code=0)
    found = all_samples(tmp_path / "out")
    for i, key in enumerate(sorted(found)):
        assert found[key]["label"] == rows[i, 0]
        for name, array in expected.items():
            sample = numpy.load(io.BytesIO(found[key][f"{name}.npy"]))
            assert sample.dtype == array.dtype and numpy.array_equal(sample, array[i])
    assert [expected[name].dtype for name in kinds] == ["?", "i1", "i1"]


@pytest.mark.parametrize("verb", ["convert", "index"])
def test_text_of_a_fixed_size_ends_at_its_padding(stoker, tmp_path, verb):
    raw = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    raw.set_chunk((4,))
    (tmp_path / "hub").mkdir()
    with h5py.File(tmp_path / "hub/x.h5", "w") as h5:
        blanks = changed(h5t.FORTRAN_S1, size=8)
        create(h5, b"blanks", blanks)[...] = numpy.array([b"abc", b" d e", b"fghijklm", b""], "S8")
        create(h5, b"never", blanks)
        create(h5, b"label", blanks)[...] = numpy.array([b"cat", b"dog", b"cat", b"dog"], "S8")
        ended = create(h5, b"ended", changed(h5t.C_S1, size=8), made=raw)
        ended.id.write_direct_chunk((0,), b"cat\0Z\1yxdog\0\0\0\0\0longest!\0behind\0")
        h5["zeros"] = numpy.array([b"a\0b", b"c ", b"12345678", b""], "S8")
        h5["x"] = numpy.zeros((4, 2), "f4")
        expected = {name: h5[name][:].tolist() for name in ("blanks", "never", "ended", "zeros")}
    assert expected["blanks"] == [b"abc", b" d e", b"fghijklm", b""] and expected["never"] == [b""] * 4
    assert expected["ended"] == [b"cat", b"dog", b"longest!", b""]
    if verb == "index":
        stoker("data", "index", "hub", code=0)
        assert "classes  2: cat, dog\n" in stoker("data", "info", "hub", code=0).out
        del expected["never"]  # lies nowhere
    stoker("data", "convert", "hub", "out", "--format", "hdf5", code=0)
    assert "classes  2: cat, dog\n" in stoker("data", "info", "out", code=0).out
    found = all_samples(tmp_path / "out")
    for name, texts in expected.items():
        assert [found[key][name] for key in sorted(found)] == texts
    assert [found[key]["label"] for key in sorted(found)] == [0, 1, 0, 1]


def test_text_of_a_virtual_dataset_has_the_padding_of_its_source(stoker, tmp_path):
    with h5py.File(tmp_path / "part.hdf5x", "w") as h5:
        create(h5, b"d", changed(h5t.FORTRAN_S1, size=8))[...] = numpy.array([b"abc", b"d", b"", b"e f"], "S8")
    layout = h5py.VirtualLayout((4,), "S8")
    layout[:] = h5py.VirtualSource("part.hdf5x", "d", (4,))
    with h5py.File(tmp_path / "v.h5", "w", libver="v110") as h5:
        h5.create_virtual_dataset("v", layout)
        h5["x"] = numpy.zeros((4, 2))
        expected = h5["v"][:].tolist()
    stoker("data", "convert", "v.h5", "out", "--format", "hdf5", code=0)
    found = all_samples(tmp_path / "out")
    assert [found[key]["v"] for key in sorted(found)] == expected
