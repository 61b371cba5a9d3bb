"""Stored samples in random order from Python: CIFAR-10's JPEG files, batches of 1024, bytes and offsets, with the CRC of each
compared and without."""

import sys

from loader_python import build, cifar10, run
from measure import conclude, median_interval

CODE = """
import sys, time, stoker
loader = stoker.Loader(sys.argv[1], batch_size=1024, transform=None, tensors="dlpack", check=sys.argv[2] == "crc",
                       fields=("data", "offset", "label"))
def epoch():
    samples = 0
    for batch in loader:
        samples += len(memoryview(batch["label"]))
    return samples
epoch()
started = time.perf_counter()
samples = 0
while time.perf_counter() - started < 1:
    samples += epoch()
print(samples / (time.perf_counter() - started))
"""


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with cifar10() as (_, dataset):
        without = [float(run(CODE, dataset, "none")[0]) for _ in range(turns)]
        rates = [float(run(CODE, dataset, "crc")[0]) for _ in range(turns)]
    print(f"       with the CRC {median_interval(rates)} samples/s, without {median_interval(without)}")
    conclude("time of a raw sample in random order", median_interval([1e6 / rate for rate in rates]), 1 / 1.5, "us")


if __name__ == "__main__":
    main()
