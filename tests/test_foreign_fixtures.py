"""Files of other projects' own test suites: each is read value by value as its reference reader reads it, or refused with a clear
error. STOKER_FOREIGN_FIXTURES names a folder with checkouts of apache/parquet-testing and libarchive/libarchive. HDF5 files are
written by h5py's own tests, Zarr stores by zarr-python in every type, codec and layout."""

import binascii
import collections
import contextlib
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import h5py
import libarchive_reader
import numcodecs
import numpy
import parquet_tables
import pytest
import zarr
from conftest import BIN
from libarchive_reader import Member

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

MOST_SECONDS, MOST_MEMORY = 20, 2 << 30


class Outcomes:
    """What became of each file. Any outcome but these two fails the test."""

    def __init__(self) -> None:
        self.equal: list[str] = []
        self.refused: dict[str, list[str]] = collections.defaultdict(list)

    def refuse(self, name: str, reason: str) -> None:
        self.refused[reason].append(name)

    def report(self, kind: str) -> None:
        refused = sum(map(len, self.refused.values()))
        print(f"\n{kind}: {len(self.equal)} equal, {refused} refused")
        for reason, names in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            print(f"  {len(names):3} {reason}   ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))


def run(program: str, *words: str | Path, cwd: Path | None = None) -> tuple[bytes, str]:
    """The output of a successful command, or its clear error: one of the two is empty."""
    done = subprocess.run([BIN / program, *words], capture_output=True, timeout=600, cwd=cwd, preexec_fn=_limit)
    error = done.stderr.decode()
    assert done.returncode in (0, 1, 2), (words, done.returncode, error)
    if done.returncode == 0:
        return done.stdout, ""
    lines = error.splitlines()
    assert 1 <= len(lines) <= 2 and all(line.startswith("  try: ") for line in lines[1:]), (words, error)
    assert re.match(r"\S.*: \S", lines[0]) and not re.search("terminate|this is a bug|Traceback", error), (words, error)
    return b"", lines[0]


def reason_of(error: str) -> str:
    """An error without names and numbers."""
    text = re.sub(r"'[^']*'", "'...'", error.partition(": ")[2])
    return re.sub(r"\d+", "N", text)


def checkout(name: str) -> Path:
    return Path(os.environ["STOKER_FOREIGN_FIXTURES"]) / name


def expected_columns(file: Path) -> dict[str, list] | None:
    """The columns as pyarrow reads them, without its errors; None if it refuses the file."""
    if file.name == "incorrect_map_schema.parquet":  # refused by pyarrow; the values are from the page of the fixture
        return {"my_map.key": [[b"parent", b"name"]], "my_map.value": [[b"another", b"report"]]}
    try:
        by_pyarrow = parquet_tables.by_pyarrow(file)
    except (OSError, ValueError, NotImplementedError):
        return None
    found = {name: [parquet_tables.plain(value) for value in values] for name, values in by_pyarrow.items()}
    if file.name == "int96_from_spark.parquet":  # 290000-12-31 overflows in pyarrow
        found["a"][5] = 9089380393200000000
    if file.name == "map_no_value.parquet":  # a list in pyarrow
        found["my_map_no_v.key"] = found.pop("my_map_no_v")
    return found


def check_parquet(file: Path, outcomes: Outcomes) -> None:
    out, error = run("tables", file)
    if error:
        outcomes.refuse(file.name, reason_of(error))
        return
    leaves = json.loads(out)
    refused = {leaf["name"]: group["error"] for leaf in leaves for group in leaf["groups"] if "error" in group}
    expected = expected_columns(file)
    if expected is None:
        assert refused, f"{file.name}: only Stoker reads it"
    else:
        assert sorted(leaf["name"] for leaf in leaves) == sorted(expected), file.name
        for leaf in leaves:
            if leaf["name"] not in refused:
                found, wanted = parquet_tables.rows(leaf), expected[leaf["name"]]
                is_same = len(found) == len(wanted) and all(map(parquet_tables.same, found, wanted))
                assert is_same, (file.name, leaf["name"])
    if refused:
        outcomes.refuse(file.name, reason_of(next(iter(refused.values())).partition("\n")[0]))
    else:
        outcomes.equal.append(file.name)


@pytest.mark.needs("fixtures")
def test_files_of_parquet_testing_are_read_as_pyarrow_reads_them(tmp_path):
    outcomes = Outcomes()
    files = sorted(checkout("parquet-testing").rglob("*.parquet*"))
    for file in files:
        check_parquet(file, outcomes)
        link = tmp_path / f"link-{file.name}"
        link.symlink_to(file)
        for words in (("info", link), ("convert", link, tmp_path / "out", "--format", "tar", "--dry-run")):
            run("stoker", "data", *words, cwd=tmp_path)
        link.unlink()
    outcomes.report("parquet-testing")
    assert len(outcomes.equal) >= 65


# zarr-python

TYPES = ["?", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", ">u8", "<f2", ">f4", "<f8", "<c8", ">c16", "S5", "<U3"]
TYPES += ["<M8[ns]", "<m8[s]"]
BLOSC = list(itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"), ("noshuffle", "shuffle", "bitshuffle")))
CODECS_3 = {"gzip": zarr.codecs.GzipCodec(level=1), "zstd": zarr.codecs.ZstdCodec(checksum=True), "plain": None}
CODECS_3["zstd and crc32c"] = [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]
CODECS_3 |= {f"blosc {name} {how}": zarr.codecs.BloscCodec(cname=name, shuffle=how) for name, how in BLOSC}
CODECS_2 = {"zlib": numcodecs.Zlib(1), "gzip": numcodecs.GZip(1), "zstd": numcodecs.Zstd(), "lz4": numcodecs.LZ4()}
CODECS_2 |= {
    f"blosc {name} {how}": numcodecs.Blosc(name, 5, i) for (name, how), i in zip(BLOSC, [0, 1, 2] * 5, strict=True)
}
OTHERS_2 = {"bz2": numcodecs.BZ2(), "lzma": numcodecs.LZMA()}
LAYOUTS = {
    "3, plain": {"zarr_format": 3, "chunks": (4, 5, 3), "compressors": None},
    "3, shards": {"zarr_format": 3, "chunks": (2, 5, 3), "shards": (4, 5, 6)},
    "2, C": {"zarr_format": 2, "chunks": (4, 2, 6), "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "2, F": {"zarr_format": 2, "chunks": (11, 5, 6), "order": "F"},
}


def zarr_cases():
    """(name, type, shape, options): types in every layout, codecs in every layout, shapes."""
    shape = (11, 5, 6)
    for kind, (layout, options) in itertools.product(TYPES, LAYOUTS.items()):
        yield f"{kind} {layout}", kind, shape, options
    for layout, options in LAYOUTS.items():
        for codec, compressor in {**(CODECS_3 if layout[0] == "3" else CODECS_2 | OTHERS_2)}.items():
            yield f"{codec} {layout}", "<f4", shape, options | {"compressors": compressor}
    for size, version in itertools.product([(), (1,), (7,), (3, 1, 2, 2), (300, 7), (1, 1, 1, 1, 9)], (2, 3)):
        yield f"shape {size}, {version}", ">i4", size, {"zarr_format": version}


def written(kind: str, shape: tuple[int, ...]) -> numpy.ndarray:
    numbers = numpy.random.default_rng(len(kind)).integers(0, 99, shape)
    return numpy.asarray(numbers).astype("<i8" if kind[1:2] in ("M", "m") else kind).astype(kind)


def little_endian(array: numpy.ndarray) -> bytes:
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


@pytest.mark.filterwarnings("ignore")  # of zarr-python: types that its specification does not have yet
def test_stores_of_zarr_python_are_read_as_it_reads_them(tmp_path):
    outcomes = Outcomes()
    for number, (name, kind, shape, options) in enumerate(zarr_cases()):
        store = tmp_path / f"{number}.zarr"
        group = zarr.open_group(store, mode="w", zarr_format=options["zarr_format"])
        array = group.create_array(
            "x", shape=shape, dtype=kind, **{k: v for k, v in options.items() if k != "zarr_format"}
        )
        array[...] = written(kind, shape)
        expected = numpy.asarray(zarr.open_group(store, mode="r")["x"][...])
        run("stoker", "data", "info", store)
        out, error = run("arrays", "zarr-read", store, "x")
        if error:
            outcomes.refuse(name, reason_of(error))
        else:
            assert out == little_endian(expected), name
            outcomes.equal.append(name)
    outcomes.report("zarr-python")
    assert len(outcomes.equal) >= 137
    assert sorted({name.split()[0] for names in outcomes.refused.values() for name in names}) == sorted(OTHERS_2)


# h5py

OWN_TESTS = ["dataset", "dataset_getitem", "datatype", "dtype", "filters", "group", "h5d_direct_chunk", "slicing"]
MOST_BYTES = 1 << 24  # of a dataset; larger ones have no values, only a size


def located(h5: h5py.File, name: str) -> tuple[h5py.Dataset, list[str]]:
    """The dataset of a name, and the member of its records."""
    words = name.split("/")
    for end in range(len(words), 0, -1):
        found = h5.get("/".join(words[:end]))
        if isinstance(found, h5py.Dataset):
            return found, words[end:]
    raise KeyError(name)


def is_comparable(dataset: h5py.Dataset) -> bool:
    """Chunks that were not written have no defined values without a fill time."""
    is_large = (dataset.size or 0) * dataset.dtype.itemsize > MOST_BYTES
    return not is_large and dataset.id.get_create_plist().get_fill_time() != h5py.h5d.FILL_TIME_NEVER


def little_endian_value(dataset: h5py.Dataset, members: list[str]) -> bytes:
    array = dataset[...]
    for member in members:
        array = array[member]
    array = numpy.asarray(array)
    # Times are opaque bytes in HDF5.
    return array.tobytes() if array.dtype.kind in "mM" else little_endian(array)


def check_hdf5(file: Path, outcomes: Outcomes) -> None:
    run("stoker", "data", "info", file)
    listed, error = run("arrays", "hdf5-list", file)
    if error:
        outcomes.refuse(file.name, reason_of(error))
        return
    names, mine, reasons = listed.decode().splitlines(), [], []
    with h5py.File(file) as h5:
        h5.visititems(lambda name, found: mine.append(name) if isinstance(found, h5py.Dataset) else None)
        for name in mine:
            assert any(found == name or found.startswith(f"{name}/") for found in names), (file.name, name)
        for name in names:
            dataset, members = located(h5, name)
            if not is_comparable(dataset):
                continue
            out, error = run("arrays", "hdf5-read", file, "refuse", name)
            if error:
                reasons.append(reason_of(error))
            else:
                assert out == little_endian_value(dataset, members), (file.name, name)
    if reasons:
        outcomes.refuse(file.name, reasons[0])
    elif names:
        outcomes.equal.append(file.name)


def test_files_that_the_tests_of_h5py_write_are_read_as_h5py_reads_them(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    modules = [f"h5py.tests.test_{name}" for name in OWN_TESTS]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "keep_hdf5",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            "--pyargs",
            *modules,
        ],
        env=os.environ | {"KEEP_HDF5": str(kept), "PYTHONPATH": str(Path(__file__).parent / "programs")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert " passed" in done.stdout, done.stdout + done.stderr
    for name in (Path(h5py.__file__).parent / "tests/data_files").glob("*.h5"):
        (kept / name.name).write_bytes(name.read_bytes())
    outcomes = Outcomes()
    for file in sorted(kept.glob("*.h5")):
        check_hdf5(file, outcomes)
    outcomes.report("h5py")
    assert len(outcomes.equal) >= 60 and len(outcomes.equal) + sum(map(len, outcomes.refused.values())) >= 105


# libarchive


def decoded(file: Path) -> bytes:
    """The content of a uuencoded file."""
    lines, found = iter(file.read_bytes().splitlines()), bytearray()
    begin = next(line for line in lines if line.startswith(b"begin"))
    for line in lines:
        if line in (b"end", b"===="):
            break
        used = (
            1 + (((line[:1] or b" ")[0] - 32 & 63) * 4 + 2) // 3
        )  # some writers fill the last four characters with anything
        found += binascii.a2b_base64(line) if begin.startswith(b"begin-base64") else binascii.a2b_uu(line[:used])
    return bytes(found)


def by_python(file: Path) -> list[Member] | None:
    """As tarfile or zipfile read it; None if they do not."""
    try:
        if zipfile.is_zipfile(file):
            return members_of_zip(file)
        with tarfile.open(file, ignore_zeros=True) as tar:
            return [
                Member(os.fsencode(member.name), "file", tar.extractfile(member).read() if member.isreg() else b"")
                for member in tar
            ]
    except (OSError, EOFError, ValueError, tarfile.TarError, zipfile.BadZipFile, zlib.error):
        return None


def members_of_zip(file: Path) -> list[Member]:
    found = []
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            content: bytes | None = None
            # Else it is encrypted, damaged, or compressed by a different method.
            with contextlib.suppress(RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError):
                content = archive.read(member)
            name = member.orig_filename.encode("utf-8" if member.flag_bits & 0x800 else "cp437")
            found.append(Member(name, "directory" if member.is_dir() else "file", content))
    return found


def is_same(found: list[Member], expected: list[Member]) -> bool:
    """By names and contents. A name that is not ASCII may be in another encoding."""
    if len(found) != len(expected):
        return False
    for one, other in zip(found, expected, strict=True):
        if None not in (one.content, other.content) and one.content != other.content:
            return False
        # libarchive has folders and separators of Windows in the way of Unix.
        names = [name.replace(b"\\", b"/").rstrip(b"/") for name in (one.name, other.name)]
        if names[0].isascii() and names[0] != names[1]:
            return False
    return True


def check_archive(file: Path, outcomes: Outcomes) -> None:
    run("stoker", "data", "info", file)
    out, error = run("archives", file)
    if error:
        outcomes.refuse(file.name, reason_of(error))
        return
    members = json.loads(out)
    found = [
        Member(bytes.fromhex(m["name"]), m["kind"], bytes.fromhex(m["content"]) if "content" in m else None)
        for m in members
    ]
    references = [libarchive_reader.members(file), by_python(file)]
    assert any(expected is not None and is_same(found, expected) for expected in references), (
        file.name,
        found,
        references,
    )
    refused = [m["error"] for m in members if "error" in m]
    if refused and len(refused) == len(members):
        outcomes.refuse(file.name, reason_of(f"{file.name}: {refused[0]}"))
    else:
        outcomes.equal.append(file.name)


@pytest.mark.needs("fixtures", "libarchive")
def test_archives_of_libarchive_are_read_as_it_reads_them(tmp_path):
    outcomes = Outcomes()
    for encoded in sorted(checkout("libarchive").rglob("*.uu")):
        file = tmp_path / encoded.name.removesuffix(".uu")
        file.write_bytes(decoded(encoded))
        check_archive(file, outcomes)
        file.unlink()
    outcomes.report("libarchive")
    assert len(outcomes.equal) >= 90
