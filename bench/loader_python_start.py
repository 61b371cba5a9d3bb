"""From the start of a Python program to its first batch: interpreter, import, opening the dataset, one batch of 64 from CIFAR-10.
Compared with torch's DataLoader over webdataset on the same shards."""

import sys
import time

from loader_python import build, cifar10, run
from measure import conclude, median_interval

OURS = """
import sys, stoker
print(len(next(iter(stoker.Loader(sys.argv[1], transform="cifar-train")))["key"]))
"""
WEBDATASET = """
import glob, os, sys, webdataset, torch
shards = sorted(glob.glob(os.path.join(sys.argv[1], "train-*.tar")))
data = webdataset.WebDataset(shards, shardshuffle=False).decode("pil").to_tuple("jpg")
print(next(iter(data))[0].size[0])
"""


def seconds(code: str, dataset: object) -> float:
    started = time.perf_counter()
    run(code, dataset)
    return time.perf_counter() - started


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with cifar10() as (_, dataset):
        seconds(OURS, dataset)
        ours = [seconds(OURS, dataset) for _ in range(turns)]
        theirs = [seconds(WEBDATASET, dataset) for _ in range(3)]
    print(f"       webdataset, to its first sample: {median_interval(theirs)} s")
    conclude("start to the first batch", median_interval(ours), limit=0.15, unit="s")


if __name__ == "__main__":
    main()
