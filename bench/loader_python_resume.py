"""Resuming at half an epoch of CIFAR-10 in Python: loading the state and the first batch of 128 after it, in a program with an open
loader, and with opening a new loader."""

import sys

from loader_python import build, cifar10, run
from measure import conclude, median_interval

CODE = """
import sys, time, stoker
def opened():
    return stoker.Loader(sys.argv[1], batch_size=128, transform="cifar-train", tensors="dlpack", fields=("image", "label"))
loader = opened()
for number, batch in enumerate(loader):
    if 2 * number >= len(loader):
        state = loader.state_dict()
        break
for _ in range(10):
    started = time.perf_counter()
    loader.load_state_dict(state)
    next(iter(loader))
    print(time.perf_counter() - started)
loader.close()
started = time.perf_counter()
loader = opened()
loader.load_state_dict(state)
next(iter(loader))
print(time.perf_counter() - started)
"""


def main() -> None:
    build()
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    resumed, opened = [], []
    with cifar10() as (_, dataset):
        for _ in range(turns):
            *times, fresh = map(float, run(CODE, dataset))
            resumed += times
            opened.append(fresh)
    print(f"       with opening the dataset anew: {median_interval(opened)} s")
    conclude("resume to the first batch", median_interval(resumed), limit=0.005, unit="s")


if __name__ == "__main__":
    main()
