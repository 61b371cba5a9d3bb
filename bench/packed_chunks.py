"""An HDF5 file of images (gzip, chunks of 64), indexed in place and read by stoker.Loader with a cache of 64 of its 782 chunks. For every
order: how often a chunk is decompressed per epoch, and the cost of a sample compared with the stored order; and how often all ranks
of 2, 4 and 8 together decompress it with by_chunk. Limit: with by_chunk and windows of 32 a sample costs at most 1.5 times the
stored order.

Measured on two cores of an EPYC: windows of 16 and 32 decompress each chunk once per epoch, at 1.1 times the cost of the stored
order. A window of 256 does not fit: 50 times, at 37 times the cost. A full shuffle: 59 times, at 60 times the cost. With 8 ranks,
windows of 256 and batches of 128, all ranks together decompress each chunk 1.4 times."""

import json
import subprocess
import tempfile
from pathlib import Path

import h5py
import numpy
from array_rows import CHUNK_ROWS, pictures
from loader_python import build, run
from measure import BIN, conclude, ratio_interval

ROWS = 50_000
CODE = """
import json, sys, time, stoker
CHUNK = 64 * 3072
orders = {"as stored": False, "by_chunk, 16": ("by_chunk", 16), "by_chunk, 32": ("by_chunk", 32),
          "by_chunk, 256": ("by_chunk", 256), "full": "full"}
def epoch(order):
    name, window = order if isinstance(order, tuple) else (order, None)
    loader = stoker.Loader(sys.argv[1], batch_size=256, transform=None, tensors="dlpack", shuffle=name, window=window, resident=0,
                           chunk_cache=64 * (CHUNK + 200), num_workers=1, prefetch_factor=2, fields=("data", "offset"))
    begin = time.perf_counter()
    samples = sum(len(memoryview(batch["offset"])) - 1 for batch in loader)
    seconds = time.perf_counter() - begin
    return seconds / samples, loader.stats()["chunks"]
turns = []
for turn in range(int(sys.argv[2])):
    turns.append({name: epoch(order) for name, order in orders.items() if turn == 0 or name != "full"})
print(json.dumps(turns))
"""
# Decompressed chunks of each rank, with a cache of 64 chunks each.
RANKS = """
import json, sys, stoker
CHUNK = 64 * 3072
def unpacked(window, world, batch):
    counts = []
    for rank in range(world):
        loader = stoker.Loader(sys.argv[1], batch_size=batch, transform=None, tensors="dlpack", shuffle="by_chunk", window=window,
                               resident=0, chunk_cache=64 * (CHUNK + 200), num_workers=1, prefetch_factor=1, fields=("offset",),
                               rank=rank, world_size=world, remainder="drop")
        steps = len(loader)
        for step, batch_ in enumerate(loader):
            if step + 2 == steps:  # before the next epoch starts
                break
        counts.append(loader.stats()["chunks"])
        del loader
    return counts
cases = [(32, 2, 128), (256, 2, 128), (256, 4, 128), (256, 8, 128), (256, 8, 32)]
print(json.dumps([[*case, unpacked(*case)] for case in cases]))
"""


def main() -> None:
    build()
    array = numpy.resize(pictures(), (ROWS, 32, 32, 3))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=array, chunks=(CHUNK_ROWS, *array.shape[1:]), compression="gzip")
        subprocess.run([BIN / "stoker", "data", "index", folder], check=True, stdout=subprocess.DEVNULL)
        turns = json.loads(" ".join(run(CODE, folder, 5)))
        ranks = json.loads(" ".join(run(RANKS, folder)))
    chunks = -(-ROWS // CHUNK_ROWS)
    for name, (seconds, unpacked) in turns[0].items():
        print(f"       {name}: {seconds * 1e6:.1f} us a sample, each chunk unpacked {unpacked / chunks:.1f} times")
    for window, world, batch, counts in ranks:
        each = ", ".join(f"{count / chunks * world:.1f}" for count in counts)
        print(
            f"       {world} ranks, batches of {batch}, windows of {window}: each chunk unpacked {sum(counts) / chunks:.1f} times "
            f"by all, by a rank {each} times its share"
        )
    pairs = [(turn["by_chunk, 32"][0], turn["as stored"][0]) for turn in turns]
    conclude("time of a sample by chunk beside stored order", ratio_interval(pairs), 1.5)


if __name__ == "__main__":
    main()
