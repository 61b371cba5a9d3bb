"""Shards over four gibibytes, and a million samples, in each of the five formats."""

import json
import os
import struct
import tarfile
import time
from pathlib import Path

import numpy
import pyarrow.parquet
import pytest
from array_files import opened
from test_data_pack_large import peak_memory_of

KINDS = ("tar", "tfrecord", "parquet", "hdf5", "zarr")
ENDINGS = {"hdf5": "hdf5", "zarr": "zarr.zip"}
SAMPLES = 1_000_000
PIECES = 90


@pytest.fixture(scope="module")
def pieces(tmp_path_factory) -> Path:
    """Ninety sparse files of 50 MiB, and a last one with content."""
    folder = tmp_path_factory.mktemp("pieces")
    for number in range(PIECES):
        with (folder / f"{number:03}.bin").open("wb") as file:
            file.truncate(50 << 20)
    (folder / "last.bin").write_bytes(os.urandom(1_000_000))
    return folder


def last_by_their_reader(shard: Path, kind: str) -> bytes:
    if kind == "tar":
        with tarfile.open(shard) as archive:
            return archive.extractfile(archive.getmembers()[-1]).read()
    if kind == "parquet":
        file = pyarrow.parquet.ParquetFile(shard)
        return file.read_row_group(file.num_row_groups - 1, ["bin"])["bin"][-1].as_py()
    group = opened(shard)
    begin, end = group["files"]["bin"][PIECES].tolist()
    return bytes(group["bytes"][begin:end])


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_a_shard_over_four_gibibytes_is_read_to_its_end(stoker, python, pieces, tmp_path, kind):
    options = ("--layout", "files", "--shards", "1", "--order", "source", "--hash", "crc32c", "--format", kind)
    stoker("data", "pack", pieces, "packed", *options, code=0, timeout=600)
    shard = tmp_path / f"packed/all-000000.{ENDINGS.get(kind, kind)}"
    assert shard.stat().st_size > 4500 << 20
    stoker("data", "verify", "packed", "--full", code=0, timeout=600)
    code = """
import sys, stoker
samples = 0
for batch in stoker.Loader("packed", batch_size=1, shuffle=False, transform=None, num_workers=1, prefetch_factor=2,
                           fields=("data", "key"), tensors="dlpack"):
    samples += 1
print(samples, batch["key"][0], bytes(memoryview(batch["data"])) == open(sys.argv[1] + "/last.bin", "rb").read())
"""
    assert python(code, pieces, timeout=600).split() == [str(PIECES + 1), "last", "True"]
    if kind != "tfrecord":  # TensorFlow reads it from the front only
        assert last_by_their_reader(shard, kind) == (pieces / "last.bin").read_bytes()
    shard.unlink()


@pytest.fixture(scope="module")
def million(tmp_path_factory) -> Path:
    """A shard of MDS whose samples are the text of their number, eight letters each, and a label."""
    folder = tmp_path_factory.mktemp("million")
    columns = {"column_names": ["label", "text"], "column_encodings": ["uint32", "str"], "column_sizes": [4, None]}
    config = json.dumps(columns).encode()
    begin = 4 + 4 * (SAMPLES + 1) + len(config)
    rows = numpy.zeros(SAMPLES, [("size", "<u4"), ("label", "<u4"), ("text", "S8")])
    rows["size"], rows["label"] = 8, numpy.arange(SAMPLES) % 1000
    rows["text"] = [b"%08d" % number for number in range(SAMPLES)]
    offsets = begin + rows.itemsize * numpy.arange(SAMPLES + 1, dtype="<u4")
    content = struct.pack("<I", SAMPLES) + offsets.tobytes() + config + rows.tobytes()
    (folder / "shard.00000.mds").write_bytes(content)
    shard = {"version": 2, "format": "mds", "samples": SAMPLES, "compression": None, "hashes": [], "size_limit": None}
    raw = {"basename": "shard.00000.mds", "bytes": len(content), "hashes": {}}
    shards = [shard | columns | {"raw_data": raw, "zip_data": None}]
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    return folder


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_samples_are_written_and_shuffled_in_bounded_memory(stoker, python, million, tmp_path, kind):
    begin = time.monotonic()
    command = [stoker.path, "data", "convert", million, tmp_path / "packed", "--format", kind, "--shards", "4"]
    memory = peak_memory_of(command)
    seconds = time.monotonic() - begin
    size = sum(path.stat().st_size for path in (tmp_path / "packed").iterdir())
    assert memory < (800 << 20) + size  # shards are mapped to be read back, and count as memory then
    code = """
import json, time, numpy, stoker
begin, seen = time.perf_counter(), numpy.zeros(1_000_000, bool)
for batch in stoker.Loader("packed", batch_size=1000, shuffle=True, seed=1, transform=None, fields=("data", "label"), tensors="dlpack"):
    numbers = numpy.frombuffer(memoryview(batch["data"]), "S8").astype(int)
    assert (numbers % 1000 == numpy.frombuffer(memoryview(batch["label"]), "<i8")).all()
    seen[numbers] = True
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) << 10  # of this program alone
print(json.dumps([bool(seen.all()), time.perf_counter() - begin, peak]))
"""
    is_all, epoch, epoch_memory = json.loads(python(code, timeout=600))
    assert is_all and epoch_memory < (400 << 20) + size  # as mapped shards do here
    print(f"{kind}: {size >> 20} MiB, convert {seconds:.1f} s in {memory >> 20} MiB, "
          f"an epoch shuffled {epoch:.2f} s in {epoch_memory >> 20} MiB")  # fmt: skip
