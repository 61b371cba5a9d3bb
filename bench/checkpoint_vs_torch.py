"""Saving 512 MiB in 2405 tensors from one process, compared with torch.save and safetensors, alternating, to the disk of the
temporary folder. Stall: how long the training is blocked. Durable: until the bytes survive a power failure; torch.save and
safetensors do not sync, so their file is fsynced afterwards. Stoker also checksums and commits."""

import os
import sys
import tempfile
import time
from pathlib import Path

import torch
from checkpoint_ranks import TENSORS, Ranks
from measure import Interval, median_interval, ratio_interval
from safetensors.torch import save_file

BYTES = 512 << 20
ROUNDS = 11
LIMITS = {"stall": 0.5, "durable": 1.0}  # of torch.save


def synced(save, path: Path) -> tuple[float, float]:
    """Seconds until `save` returns, and until the file is durable."""
    path.unlink(missing_ok=True)
    started = time.perf_counter()
    save(path)
    returned = time.perf_counter()
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    return returned - started, time.perf_counter() - started


def report(name: str, peer: str, pairs: list[tuple[float, float]], limit: float | None) -> bool:
    ratio: Interval = ratio_interval(pairs)
    met = limit is None or ratio.value <= limit
    ours, theirs = median_interval([a for a, _ in pairs]), median_interval([b for _, b in pairs])
    verdict = "ok" if met else "MISSED"
    held = "" if limit is None else f", limit {limit:g}"
    print(f"{verdict:7}{name} of stoker / of {peer}: {ratio}{held}; {ours.value:.3f} s, {theirs.value:.3f} s")
    return met


def main() -> None:
    rows = BYTES // 4 // TENSORS // 64
    tensors = {f"layer{i}.weight": torch.randn(rows, 64) for i in range(TENSORS)}
    with tempfile.TemporaryDirectory() as box:
        folder = Path(box)
        with Ranks(folder / "stoker", BYTES, TENSORS, 1) as ranks:

            def stoker() -> tuple[float, float]:
                stall, durable = ranks.tell("save")
                return stall, durable

            tools = {
                "stoker": stoker,
                "torch.save": lambda: synced(lambda path: torch.save(tensors, path), folder / "torch.pt"),
                "safetensors": lambda: synced(lambda path: save_file(tensors, path), folder / "x.safetensors"),
            }
            times = {name: [] for name in tools}
            for turn in range(-1, ROUNDS):  # the first round is not measured
                names = list(tools)
                first = turn % len(names)
                for name in names[first:] + names[:first]:
                    result = tools[name]()
                    if turn >= 0:
                        times[name].append(result)
    met = True
    for index, name in enumerate(("stall", "durable")):
        for peer, limit in (("torch.save", LIMITS[name]), ("safetensors", None)):
            pairs = [(a[index], b[index]) for a, b in zip(times["stoker"], times[peer], strict=True)]
            met &= report(name, peer, pairs, limit)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
