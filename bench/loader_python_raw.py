"""Stored samples in random order from Python: CIFAR-10's JPEG files, batches of 1024, bytes and offsets, with and without CRC
verification, alternating. Processes with the same code vary with the load of the machine: each reports its best of ten tenths of a
second, and its rate per CPU second, which is less affected."""

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
best = total = 0
begin, cpu = time.perf_counter(), time.process_time()
while time.perf_counter() - begin < 1:
    started, samples = time.perf_counter(), 0
    while time.perf_counter() - started < 0.1:
        samples += epoch()
    best = max(best, samples / (time.perf_counter() - started))
    total += samples
print(best, total / (time.perf_counter() - begin), total / (time.process_time() - cpu))
"""


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with cifar10() as (_, dataset):
        found_rates: dict[str, list[list[float]]] = {"none": [], "crc": []}
        for _ in range(turns):
            for check, found in found_rates.items():
                found.append(list(map(float, run(CODE, dataset, check))))
    for check, found in found_rates.items():
        best, mean, per_cpu = (median_interval(rates) for rates in zip(*found, strict=True))
        print(f"       check={check}: best {best} samples/s, on average {mean}, per CPU second {per_cpu}")
    rates = [mean for _, mean, _ in found_rates["crc"]]
    conclude("time of a raw sample in random order", median_interval([1e6 / rate for rate in rates]), 1 / 1.5, "us")


if __name__ == "__main__":
    main()
