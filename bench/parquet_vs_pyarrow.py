"""Reading CIFAR-10's JPEG files from the same Parquet dataset: stoker.Loader in order and shuffled, with each file's CRC verified,
compared with pyarrow's scan of the columns in order (iter_batches, without page checksums). Batches of 1024, alternating in one
process. Limit: a sample in order takes at most 1 / 0.95 of pyarrow's time."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from loader_python import build, cifar10, run
from measure import BIN, conclude, median_interval, ratio_interval

CODE = """
import glob, json, sys, time
import pyarrow.parquet, stoker
def loader(shuffle):
    return stoker.Loader(sys.argv[1], batch_size=1024, transform=None, tensors="dlpack", shuffle=shuffle, split="train",
                         fields=("data", "offset", "label"))
def epoch(of):
    return sum(len(memoryview(batch["label"])) for batch in of)
def scan():
    return sum(len(batch) for name in sorted(glob.glob(sys.argv[1] + "/train-*.parquet"))
               for batch in pyarrow.parquet.ParquetFile(name).iter_batches(1024, columns=["jpg", "cls"]))
ordered, shuffled = loader(False), loader(True)
readers = [lambda: epoch(ordered), lambda: epoch(shuffled), scan]
for reader in readers:
    reader()
def rate(reader):
    begin, samples = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.2:
        samples += reader()
    return samples / (time.perf_counter() - begin)
print(json.dumps([[rate(reader) for reader in readers] for _ in range(int(sys.argv[2]))]))
"""


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with cifar10() as (_, dataset), tempfile.TemporaryDirectory() as folder:
        parquet = Path(folder) / "parquet"
        command = [BIN / "stoker", "data", "convert", dataset, parquet, "--format", "parquet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rates = json.loads(" ".join(run(CODE, parquet, turns)))
    for name, found in zip(("in order", "shuffled", "pyarrow"), zip(*rates, strict=True), strict=True):
        print(f"       {name}: {median_interval(found)} samples/s")
    pairs = [(theirs, ours) for ours, _, theirs in rates]
    conclude("time of a sample beside pyarrow's scan", ratio_interval(pairs), 1 / 0.95)


if __name__ == "__main__":
    main()
