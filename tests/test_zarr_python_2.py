"""Stores exchanged with zarr-python 2 in both directions."""

import hashlib
import json
import subprocess
from pathlib import Path

import needs
import numpy
import packing
import pytest
from conftest import BIN

pytestmark = pytest.mark.needs("zarr2")

PROGRAM = Path(__file__).parent / "programs/zarr_2.py"


def zarr_2(*words: object) -> str:
    command = [needs.zarr_2_python(), PROGRAM, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def arrays(*words: object, data: bytes | None = None) -> bytes:
    done = subprocess.run([BIN / "arrays", *map(str, words)], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_its_arrays_are_read(tmp_path):
    zarr_2("write", tmp_path)
    cases = sorted(tmp_path.glob("*.elements"))
    assert len(cases) > 70
    for elements in cases:
        store = elements.with_suffix(".zip" if elements.stem == "archive" else "")
        name = "a/b" if store.stem in ("folder", "consolidated", "nested", "archive") else ""
        assert arrays("zarr-read", store, name) == elements.read_bytes(), store.name


WRITTEN = [
    {"dtype": "<f4"},
    {"dtype": ">i8", "order": "F"},
    {"dtype": "|b1", "dimension_separator": "/"},
    {"dtype": "<U3", "fill_value": "h\u00e9"},
    {"dtype": "|S4", "fill_value": "YWI="},
    {"dtype": "<c8", "fill_value": [1.0, "NaN"]},
    {"dtype": ">f2", "compressor": {"id": "gzip", "level": 1}, "filters": [{"id": "shuffle", "elementsize": 2}]},
    {"dtype": "<i2", "compressor": {"id": "zstd", "level": 1}},
    {"dtype": "<u4", "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}},
]


def test_it_reads_written_arrays(tmp_path):
    expected = {}
    for number, of in enumerate(WRITTEN):
        array = numpy.arange(77).reshape(11, 7).astype(of["dtype"])
        metadata = {
            "zarr_format": 2,
            "shape": [11, 7],
            "chunks": [4, 3],
            "order": "C",
            "fill_value": 0,
            "filters": None,
        }
        (tmp_path / "metadata").write_text(json.dumps(metadata | {"compressor": None} | of))
        content = array.astype(array.dtype.newbyteorder("<")).tobytes()
        arrays("zarr-write", tmp_path / str(number), tmp_path / "metadata", data=content)
        expected[str(tmp_path / str(number))] = hashlib.sha256(content).hexdigest()
    assert json.loads(zarr_2("read", *expected)) == expected


def test_it_reads_packed_shards(stoker, tmp_path):
    animals = packing.make_animals(tmp_path / "animals")
    stoker("data", "pack", animals, "out", "--format", "zarr", "--zarr-version", "2", "--shards", "3", code=0)
    files = {(path.relative_to(animals).as_posix().split(".")[0], path.name.split(".", 1)[1]): path.read_bytes()
             for path in animals.rglob("*.*")}  # fmt: skip
    content = b"".join(files[name] for name in sorted(files))
    found = json.loads(zarr_2("samples", *sorted((tmp_path / "out").glob("*.zarr.zip"))))
    assert found == {"samples": 20, "sha256": hashlib.sha256(content).hexdigest()}
