"""An HDF5 file of pictures (gzip, chunks of 64), indexed where it lies and read by stoker.Loader with room for 64 of its 782 chunks: in
every order, how often a chunk is unpacked in an epoch and what a sample costs beside the order in which they are stored.
Limit: by chunk, windows of 32, a sample takes at most 1.5 of what it takes in stored order."""

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


def main() -> None:
    build()
    array = numpy.resize(pictures(), (ROWS, 32, 32, 3))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=array, chunks=(CHUNK_ROWS, *array.shape[1:]), compression="gzip")
        subprocess.run([BIN / "stoker", "data", "index", folder], check=True, stdout=subprocess.DEVNULL)
        turns = json.loads(" ".join(run(CODE, folder, 5)))
    chunks = -(-ROWS // CHUNK_ROWS)
    for name, (seconds, unpacked) in turns[0].items():
        print(f"       {name}: {seconds * 1e6:.1f} us a sample, each chunk unpacked {unpacked / chunks:.1f} times")
    pairs = [(turn["by_chunk, 32"][0], turn["as stored"][0]) for turn in turns]
    conclude("time of a sample by chunk beside stored order", ratio_interval(pairs), 1.5)


if __name__ == "__main__":
    main()
