"""CIFAR-10's JPEG files in each of the five kinds of shards: bytes, conversion time, time to open a loader, samples/s of
stoker.Loader in order and shuffled, with each file's CRC verified. Alternates in one process with h5py and zarr-python, which read
the same HDF5 and Zarr shards sample by sample, in order, with the offsets already read. Limit: at most half of the time per
sample of h5py and zarr-python."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from loader_python import build, cifar10, run
from measure import BIN, check_limit, median_interval, ratio_interval

KINDS = ("tar", "tfrecord", "parquet", "hdf5", "zarr")
CODE = """
import glob, itertools, json, sys, time
import h5py, stoker, zarr
folder, kinds, turns = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
def opened(kind, shuffle):
    return stoker.Loader(f"{folder}/{kind}", batch_size=1024, transform=None, tensors="dlpack", shuffle=shuffle, split="train",
                         fields=("data", "offset", "label"))
def epoch(of):
    return sum(len(memoryview(batch["label"])) for batch in of)
def open_time(kind):
    begin = time.perf_counter()
    next(iter(opened(kind, False)))
    return time.perf_counter() - begin
files = [h5py.File(name) for name in sorted(glob.glob(folder + "/hdf5/train-*.hdf5"))]
groups = [zarr.open_group(zarr.storage.ZipStore(name, mode="r"), mode="r")
          for name in sorted(glob.glob(folder + "/zarr/train-*.zarr.zip"))]
def per_sample(shards, most):
    tables = [(shard["bytes"], shard["files/jpg"][:].tolist(), shard["label"][:]) for shard in shards]
    def read():
        samples = 0
        for data, places, labels in tables:
            for begin, end in places[:most]:
                data[begin:end].tobytes(), labels[samples % len(labels)]
                samples += 1
        return samples
    return read
readers = {}
for kind in kinds:
    for order in (False, True):
        loader = opened(kind, order)
        readers[kind, order] = lambda loader=loader: epoch(loader)
readers["h5py"] = per_sample(files, 500)
readers["zarr-python"] = per_sample(groups, 50)
for reader in readers.values():
    reader()
def rate(reader):
    begin, samples = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.1:
        samples += reader()
    return samples / (time.perf_counter() - begin)
rates = [[rate(reader) for reader in readers.values()] for _ in range(turns)]
opens = [[open_time(kind) for kind in kinds] for _ in range(turns)]
print(json.dumps([rates, opens]))
"""


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    sizes, seconds = {}, {}
    with cifar10() as (_, dataset), tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            out = Path(folder) / kind
            begin = time.perf_counter()
            command = [BIN / "stoker", "data", "convert", dataset, out, "--format", kind, "--shards", "8"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds[kind] = time.perf_counter() - begin
            sizes[kind] = sum(path.stat().st_size for path in out.iterdir())
        rates, opens = json.loads(" ".join(run(CODE, folder, ",".join(KINDS), turns)))
    columns = list(zip(*rates, strict=True))
    for i, kind in enumerate(KINDS):
        opening = median_interval([1000 * turn[i] for turn in opens])
        ordered, shuffled = median_interval(columns[2 * i]), median_interval(columns[2 * i + 1])
        print(f"       {kind}: {sizes[kind]} bytes, convert {seconds[kind]:.2f} s, open {opening} ms")
        print(f"       {kind}: in order {ordered} samples/s, shuffled {shuffled} samples/s")
    met = True
    for name, kind, theirs in (("h5py", "hdf5", columns[-2]), ("zarr-python", "zarr", columns[-1])):
        print(f"       {name}: {median_interval(theirs)} samples/s")
        pairs = list(zip(theirs, columns[2 * KINDS.index(kind)], strict=True))
        met &= check_limit(f"time per sample of {kind}, ratio to {name}", ratio_interval(pairs), 0.5)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
