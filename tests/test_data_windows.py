"""Windows over grids in HDF5, Zarr and .npy files, read in place, compared with NumPy's slices of the same arrays."""

import io
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy
import pytest
import zarr

RANDOM = numpy.random.default_rng(8)
SHAPE = (50, 12, 20)
T2M = RANDOM.normal(size=SHAPE).astype("f4")
U10 = RANDOM.normal(size=SHAPE).astype("f4")
MASK = RANDOM.integers(0, 2, SHAPE).astype("u1")


def write_hdf5(folder: Path) -> None:
    folder.mkdir()
    with h5py.File(folder / "train.h5", "w") as file:
        file.create_dataset("t2m", data=T2M.astype(">f4"), chunks=(16, 12, 8), compression="gzip", shuffle=True)
        file.create_dataset("u10", data=U10, chunks=(9, 5, 20), compression="lzf")
        file["mask"] = MASK
        file["hours"] = numpy.arange(SHAPE[0])


def write_zarr(folder: Path, version: int, store: str, **options) -> None:
    folder.mkdir()
    kind = zarr.storage.ZipStore if store == "zip" else zarr.storage.LocalStore
    file = folder / ("train.zarr.zip" if store == "zip" else "train.zarr")
    opened = kind(file, mode="w") if store == "zip" else kind(file)
    group = zarr.create_group(opened, zarr_format=version)
    for name, values in (("t2m", T2M), ("u10", U10), ("mask", MASK)):
        group.create_array(name, shape=SHAPE, dtype=values.dtype, chunks=(8, 6, 10), **options)[:] = values
    opened.close()


STORES = {
    "hdf5": write_hdf5,
    "zarr 2 folder": lambda folder: write_zarr(folder, 2, "folder"),
    "zarr 3 folder": lambda folder: write_zarr(folder, 3, "folder"),
    "zarr 3 shards in a folder": lambda folder: write_zarr(folder, 3, "folder", shards=(16, 12, 20)),
    "zarr 3 zip": lambda folder: write_zarr(folder, 3, "zip"),
}

CODE = """
import sys, json, stoker
found = {}
for batch in stoker.Loader("grid", batch_size=16, shuffle=%s, transform=None, component=%r, resident=0, window=3,
                           tensors="dlpack", fields=["data", "offset", "key"]):
    offsets = list(memoryview(batch["offset"]))
    for i, key in enumerate(batch["key"]):
        found[key] = bytes(memoryview(batch["data"])[offsets[i]:offsets[i + 1]]).hex()
print(json.dumps(found))
"""


def loaded(python, component: str, shuffle: str = "True") -> dict[tuple[int, ...], numpy.ndarray]:
    """The array of each sample, by the origin of its window."""
    found = {}
    for key, content in json.loads(python(CODE % (shuffle, component))).items():
        begin = tuple(int(number) for number in key.split("/")[1].split("-"))
        found[begin] = numpy.load(io.BytesIO(bytes.fromhex(content)))
    return found


def index(stoker, *options: str):
    done = stoker("data", "index", "grid", *options, code=0)
    stoker("data", "verify", "grid", "--full", code=0)
    return done


WINDOWS = ["--window", "0:10:3", "--window", "1:5:4", "--window", "2:8", "--lead", "2", "--lead-size", "3"]


def expect_numpys_slices(python, variables: dict) -> None:
    """By WINDOWS, with u10 as the target."""
    places = list(itertools.product(range(0, 50 - 10 - 4 + 1, 3), range(0, 12 - 5 + 1, 4), range(0, 20 - 8 + 1, 8)))
    for name, values in variables.items():
        for shuffle in ("True", "'by_chunk'"):
            found = loaded(python, f"{name}.npy", shuffle)
            assert sorted(found) == places
            for t, y, x in places:
                assert numpy.array_equal(found[t, y, x], values[t : t + 10, y : y + 5, x : x + 8])
                assert found[t, y, x].dtype == values.dtype
    target = loaded(python, "target.npy")
    for t, y, x in places:
        # Two after the window's last one, which is t + 9.
        assert numpy.array_equal(target[t, y, x], U10[t + 11 : t + 14, y : y + 5, x : x + 8])


@pytest.mark.parametrize("how", STORES)
def test_windows_over_time_and_space_equal_numpys_slices(stoker, python, tmp_path, how):
    STORES[how](tmp_path / "grid")
    index(stoker, *WINDOWS, *["--variable", "t2m", "--variable", "u10", "--variable", "mask", "--target", "u10"])
    expect_numpys_slices(python, {"t2m": T2M, "u10": U10, "mask": MASK})


def test_windows_along_one_axis_keep_the_other_axes_whole(stoker, python, tmp_path):
    write_hdf5(tmp_path / "grid")
    index(stoker, "--window", "2:6:5", "--variable", "u10")
    found = loaded(python, "npy")
    assert sorted(found) == [(0,), (5,), (10,)]
    for (x,), values in found.items():
        assert numpy.array_equal(values, U10[:, :, x : x + 6])


def test_different_windows_have_a_different_version(stoker, tmp_path):
    write_hdf5(tmp_path / "one")
    versions = []
    for i, window in enumerate(("0:24:6", "0:24:3", "0:48:6", "0:24:6")):
        (tmp_path / f"grid{i}").mkdir()
        shutil.copy(tmp_path / "one/train.h5", tmp_path / f"grid{i}")
        done = stoker("data", "index", f"grid{i}", "--window", window, "--variable", "t2m", "--json", code=0)
        versions.append(json.loads(done.out)["version"])
    assert len(set(versions)) == 3 and versions[0] == versions[3]
    stoker("data", "verify", "grid0", "--full", code=0)
    assert "are identical: version" in stoker("data", "diff", "grid0", "grid3", code=0).out
    found = json.loads(stoker("data", "diff", "grid0", "grid1", "--json", code=1).out)
    assert (found["counts"]["added"], found["counts"]["removed"], found["same"]) == (4, 0, 5)


def test_stacked_variables_are_one_array(stoker, python, tmp_path):
    write_hdf5(tmp_path / "grid")
    index(stoker, "--window", "0:4", "--variable", "u10", "--variable", "t2m", "--stack", "--lead", "1")
    found, target = loaded(python, "npy"), loaded(python, "target.npy")
    assert len(found) == 12
    for (t,), values in found.items():
        assert numpy.array_equal(values, numpy.stack([U10[t : t + 4], T2M[t : t + 4]]))
        assert numpy.array_equal(target[t,], numpy.stack([U10[t + 4 : t + 5], T2M[t + 4 : t + 5]]))


def test_without_names_all_variables_of_the_grid_are_used(stoker, tmp_path):
    write_hdf5(tmp_path / "grid")
    done = index(stoker, "--window", "0:25")
    assert "2 samples" in done.out
    manifest = json.loads((tmp_path / "grid/manifest.json").read_text())
    assert [c["name"] for c in manifest["schema"]["components"]] == ["mask.npy", "t2m.npy", "u10.npy"]


def test_an_epoch_by_chunk_reads_each_chunk_once(stoker, python, tmp_path):
    """Windows share chunks with their neighbours: windows that begin in the same chunk are consecutive, whatever the axes."""
    write_zarr(tmp_path / "grid", 3, "folder")
    index(stoker, "--window", "0:4:4", "--window", "1:3:3", "--window", "2:5:5", "--variable", "t2m")
    code = """
import stoker
loader = stoker.Loader("grid", batch_size=8, shuffle="by_chunk", transform=None, component="npy", resident=0,
                       chunk_cache=64 << 10, window=4, num_workers=1, prefetch_factor=1)
for batch in loader: pass
print(loader.stats()["chunks"])
"""
    chunks = 7 * 2 * 2
    assert int(python(code)) <= chunks + 4  # the next epoch's first window may have begun


def test_batches_are_arrays(stoker, python, tmp_path):
    write_hdf5(tmp_path / "grid")
    index(stoker, "--window", "0:10", "--variable", "t2m")
    code = """
import numpy, stoker
for batch in stoker.Loader("grid", batch_size=5, shuffle=False, array=True, fields=["array"], tensors="dlpack"):
    array = numpy.from_dlpack(batch["array"])
    print(array.shape, float(array[1, 0, 0, 0]))
"""
    shape, value = python(code).rsplit(" ", 1)
    assert shape == "(5, 10, 12, 20)" and float(value) == pytest.approx(float(T2M[10, 0, 0]))


def test_a_lost_index_is_rebuilt_with_the_same_windows(stoker, tmp_path):
    write_hdf5(tmp_path / "grid")
    options = ["--window", "0:10", "--variable", "t2m"]
    index(stoker, *options)
    before = (tmp_path / "grid/index.bin").read_bytes()
    (tmp_path / "grid/index.bin").unlink()
    assert "it was made with a different --window" in stoker("data", "index", "grid", "--window", "0:5").err
    stoker("data", "index", "grid", *options, code=0)
    assert (tmp_path / "grid/index.bin").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--window", "0:51"], "a window of 51 does not fit axis 0 of 50 x 12 x 20 (--window)"),
        (["--window", "0:50", "--lead", "1"], "a window of 50 and 1 after it does not fit axis 0"),
        (["--window", "3:1"], "has no axis 3: its arrays are 50 x 12 x 20 (--window)"),
        (["--window", "0:2", "--window", "0:3"], "--window: axis 0 appears twice"),
        (["--window", "0:0"], "'0:0' is not AXIS:SIZE[:STEP] (as in 0:24:6)"),
        (["--window", "24"], "'24' is not AXIS:SIZE[:STEP] (as in 0:24:6)"),
        (["--window", "0:2", "--variable", "t3m"], "has no array 't3m' of numbers with 50 rows; did you mean 't2m'?"),
        (["--window", "0:2", "--variable", "t2m", "--variable", "hours"], "windows need arrays of one shape"),
        (["--window", "0:2", "--stack"], "have numbers of different types (--stack)"),
        (["--lead", "2"], "--variable, --lead, --lead-size, --target and --stack need --window"),
        (["--window", "0:2", "--target", "u10"], "--lead-size and --target need --lead"),
        (["--window", "0:2", "--lead", "0"], "--lead and --lead-size: at least 1"),
    ],
)
def test_invalid_windows_are_refused(stoker, tmp_path, options, message):
    write_hdf5(tmp_path / "grid")
    done = stoker("data", "index", "grid", *options)
    assert done.code == 2 and message in done.err, done.err


def test_windows_need_arrays_and_cannot_be_packed(stoker, tmp_path):
    (tmp_path / "tars").mkdir()
    (tmp_path / "tars/train-0.tar").write_bytes(bytes(10240))
    assert (
        "windows need arrays of HDF5, Zarr or NumPy (--window)"
        in stoker("data", "index", "tars", "--window", "0:2").err
    )
    write_hdf5(tmp_path / "grid")
    index(stoker, "--window", "0:10", "--variable", "t2m")
    done = stoker("data", "convert", "grid", "out", "--format", "tar")
    assert done.code == 2 and "its samples are windows over arrays, which are read in place" in done.err


def write_npy(folder: Path, before: str = "", version: tuple[int, int] | None = None) -> None:
    folder.mkdir(exist_ok=True)
    for name, values in (("t2m", T2M.astype(">f4")), ("u10", U10), ("mask", MASK)):
        with (folder / f"{before}{name}.npy").open("wb") as file:
            numpy.lib.format.write_array(file, values, version=version)
    numpy.save(folder / f"{before}hours.npy", numpy.arange(SHAPE[0]))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_files_of_numpy_are_variables_of_one_grid(stoker, python, tmp_path, version):
    write_npy(tmp_path / "grid", version=version)
    before = {file.name: file.read_bytes() for file in (tmp_path / "grid").iterdir()}
    index(stoker, *WINDOWS, *["--variable", "t2m", "--variable", "mask", "--target", "u10"])
    assert all((tmp_path / "grid" / name).read_bytes() == content for name, content in before.items())
    expect_numpys_slices(python, {"t2m": T2M, "mask": MASK})


def test_windows_of_npy_files_equal_zarrs(stoker, python, tmp_path):
    options = ["--window", "0:6:5", "--window", "2:7:3", "--variable", "u10", "--variable", "t2m", "--stack"]
    write_zarr(tmp_path / "grid", 3, "folder")
    index(stoker, *options)
    expected = loaded(python, "npy")
    shutil.rmtree(tmp_path / "grid")
    write_npy(tmp_path / "grid")
    index(stoker, *options)
    found = loaded(python, "npy")
    assert list(found) and sorted(found) == sorted(expected)
    assert all(found[place].tobytes() == expected[place].tobytes() for place in expected)


def test_numpys_files_of_several_splits_and_a_lost_index(stoker, tmp_path):
    for split in ("train.", "val."):
        write_npy(tmp_path / "grid", split)
    options = ["--window", "0:10", "--variable", "u10", "--variable", "mask"]
    assert "10 samples, 2 shards" in index(stoker, *options).out
    info = stoker("data", "info", "grid", code=0).out
    assert [line.split()[:3] for line in info.splitlines()[2:4]] == [["train", "5", "1"], ["val", "5", "1"]]
    assert "mask.npy, u10.npy in npy" in info
    before = (tmp_path / "grid/index.bin").read_bytes()
    (tmp_path / "grid/index.bin").unlink()
    stoker("data", "index", "grid", *options, code=0)
    assert (tmp_path / "grid/index.bin").read_bytes() == before
    with (tmp_path / "grid/val.mask.npy").open("ab") as file:
        file.write(b"x")
    assert stoker("data", "verify", "grid").code == 1


def test_without_names_each_file_of_numpy_is_a_shard(stoker, python, tmp_path):
    (tmp_path / "grid").mkdir()
    series = RANDOM.normal(size=(3, 40))
    for i, values in enumerate(series):
        numpy.save(tmp_path / f"grid/train-{i}.npy", values)
    assert "12 samples, 3 shards" in index(stoker, "--window", "0:10").out
    code = """
import numpy, stoker
for batch in stoker.Loader("grid", batch_size=12, shuffle=False, array=True, fields=["array"], tensors="dlpack"):
    print(numpy.from_dlpack(batch["array"]).tobytes().hex())
"""
    assert bytes.fromhex(python(code)) == series.tobytes()


def test_rows_of_many_chunks_are_numpys_slices(stoker, python, tmp_path):
    """A row of 2.4 MB is split."""
    (tmp_path / "grid").mkdir()
    values = RANDOM.integers(0, 60000, (3, 700, 1714)).astype("u2")
    numpy.save(tmp_path / "grid/x.npy", values)
    index(stoker, "--window", "0:2:1", "--window", "1:250:225", "--window", "2:1000:714")
    found = loaded(python, "npy")
    assert sorted(found) == list(itertools.product((0, 1), (0, 225, 450), (0, 714)))
    for (t, y, x), window in found.items():
        assert numpy.array_equal(window, values[t : t + 2, y : y + 250, x : x + 1000])


def save(file: Path, values: numpy.ndarray) -> None:
    file.parent.mkdir(exist_ok=True)
    numpy.save(file, values)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda g: save(g / "x.npy", numpy.asfortranarray(T2M)), [], "grid/x.npy: NPY: in Fortran order"),
        (lambda g: save(g / "x.npy", T2M.astype("c8")), [], "grid/x.npy: NPY: elements of type '<c8'"),
        (lambda g: save(g / "x.npy", numpy.zeros(3, "f4,f4")), [], "grid/x.npy: NPY: elements of type record"),
        (lambda g: save(g / "x.npy", numpy.array(["a"], "O")), [], "grid/x.npy: NPY: elements of type '|O'"),
        (lambda g: save(g / "x.npy", numpy.float32(1)), [], "grid/x.npy: is a single value, but windows need an axis"),
        (lambda g: save(g / "x.npy", numpy.zeros((5, 0))), [], "grid/x.npy: has no elements (shape 5 x 0)\n"),
        (
            lambda g: save(g / "x.npy", T2M),
            ["--variable", "y"],
            "grid: no *.h5, *.zarr.zip, *.zarr, *.npz or y.npy in it",
        ),
        (lambda g: save(g / "x.npy", T2M), ["--variable", "x", "--target", "y", "--lead", "1"], "y.npy: no such file"),
        (
            lambda g: save(g / "x.npy", T2M),
            ["--variable", "x", "--variable", "../x"],
            "--variable, --target: '../x' is not a file name",
        ),
        (lambda g: g.mkdir(), [], "grid: no *.h5, *.zarr.zip, *.zarr, *.npy or *.npz in it (--window)"),
    ],
)
def test_unsupported_npy_files_are_refused(stoker, tmp_path, make, options, message):
    make(tmp_path / "grid")
    done = stoker("data", "index", "grid", "--window", "0:2", *options)
    assert done.code != 0 and message in done.err, done.err


def write_npz(file: Path, **more) -> None:
    file.parent.mkdir(exist_ok=True)
    numpy.savez(file, t2m=T2M.astype(">f4"), u10=U10, mask=MASK, hours=numpy.arange(SHAPE[0]), **more)


def test_members_of_an_archive_are_variables_of_one_grid(stoker, python, tmp_path):
    write_npz(tmp_path / "grid/train.npz", names=numpy.array(["a", "b"]), late=numpy.zeros(3))
    before = (tmp_path / "grid/train.npz").read_bytes()
    index(stoker, *WINDOWS, *["--variable", "t2m", "--variable", "mask", "--target", "u10"])
    assert (tmp_path / "grid/train.npz").read_bytes() == before
    expect_numpys_slices(python, {"t2m": T2M, "mask": MASK})
    stoker("data", "verify", "grid", "--full", code=0)


def test_archives_are_shards_of_their_splits_and_of_all_arrays_without_names(stoker, tmp_path):
    for split in ("train", "val"):
        write_npz(tmp_path / f"grid/{split}.npz")
    assert "10 samples, 2 shards" in index(stoker, "--window", "0:10").out
    info = stoker("data", "info", "grid", code=0).out
    assert [line.split()[:3] for line in info.splitlines()[2:4]] == [["train", "5", "1"], ["val", "5", "1"]]
    assert "mask.npy, t2m.npy, u10.npy in npy" in info


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (
            lambda g: numpy.savez_compressed(g / "x.npz", x=T2M),
            [],
            "grid/x.npz: member 'x.npy': is compressed, but windows are read in place",
        ),
        (lambda g: write_npz(g / "x.npz"), ["--variable", "t3m"], "has no array 't3m'"),
        (
            lambda g: numpy.savez(g / "x.npz", x=T2M, y=T2M[0]),
            ["--variable", "y"],
            f"grid/x.npz: array 'y' cannot be cut into windows: {len(T2M[0])} rows, not {len(T2M)}\n",
        ),
        (
            lambda g: numpy.savez(g / "x.npz", x=T2M, y=T2M.astype("c8")),
            ["--variable", "y"],
            "grid/x.npz: array 'y' cannot be cut into windows: complex64 values\n",
        ),
        (
            lambda g: numpy.savez(g / "x.npz", names=numpy.array(["a", "b"], "S1")),
            [],
            "grid/x.npz: has only text and lists, but windows need arrays of numbers (--window)\n",
        ),
        (lambda g: numpy.savez(g / "x.npz", x=numpy.asfortranarray(T2M)), [], "is in Fortran order"),
        (lambda g: numpy.savez(g / "x.npz", x_train=T2M, x_test=T2M), [], "holds several splits: test, train"),
        (lambda g: numpy.savez(g / "x.npz", x=numpy.array([{}], "O")), [], "|O"),
        (lambda g: (g / "x.npz").write_bytes(b"PK"), [], "grid/x.npz: "),
        (lambda g: [write_npz(g / "x.npz"), save(g / "x.npy", T2M)], [], "has shards of two formats: x.npy and x.npz"),
    ],
)
def test_unsupported_archives_are_refused(stoker, tmp_path, make, options, message):
    (tmp_path / "grid").mkdir()
    make(tmp_path / "grid")
    done = stoker("data", "index", "grid", "--window", "0:2", *options)
    assert done.code != 0 and message in done.err, done.err


def test_a_compressed_archive_is_read_after_its_cure(stoker, tmp_path):
    (tmp_path / "grid").mkdir()
    numpy.savez_compressed(tmp_path / "grid/x.npz", x=T2M)
    cure = stoker("data", "index", "grid", "--window", "0:2").err.split("try: ")[1].splitlines()[0]
    line = cure.replace("OUT.npz", "grid/y.npz").replace("python3", sys.executable)
    subprocess.run(line, shell=True, check=True, cwd=tmp_path)
    (tmp_path / "grid/x.npz").unlink()
    assert "25 samples, 1 shard" in index(stoker, "--window", "0:2").out


def test_damaged_headers_of_numpys_files_are_refused(stoker, tmp_path):
    save(tmp_path / "grid/x.npy", T2M)
    whole = (tmp_path / "grid/x.npy").read_bytes()
    for content in (b"", whole[:5], whole[:40], whole[:-1], b"x" + whole[1:], whole[:8] + b"\xff\xff" + whole[10:],
                    whole.replace(b"(50,", b"(99,"), whole.replace(b"(50, 12, 20), }", b"(9999999999999,), }")):  # fmt: skip
        (tmp_path / "grid/x.npy").write_bytes(content)
        done = stoker("data", "index", "grid", "--window", "0:2")
        assert done.code == 1 and "grid/x.npy: NPY: " in done.err, done.err
