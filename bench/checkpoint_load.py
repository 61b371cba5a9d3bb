"""Loading 1 GB saved by two ranks into existing tensors, with every CRC verified: with the files in the page cache, and without.
Alternates with safetensors and torch's reader for the same files, which verify nothing, and with reading and discarding the bytes
with direct I/O, as the limit of the disk."""

import os
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from checkpoint_ranks import TENSORS, Ranks
from measure import check_limit, median_interval
from safetensors import safe_open

BYTES = 10**9
ROUNDS = 7
LIMITS = {"cold": 0.9, "warm": 0.15}  # seconds


def drop(folder: Path) -> None:
    for file in folder.rglob("*.safetensors"):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def by_safetensors(folder: Path, model: dict[str, torch.Tensor]) -> float:
    """Copies rows to their places."""
    started = time.perf_counter()
    done = dict.fromkeys(model, 0)
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as shard:
            for name in shard.keys():  # noqa: SIM118, the object is not a mapping
                rows = shard.get_tensor(name)
                model[name][done[name] : done[name] + len(rows)].copy_(rows)
                done[name] += len(rows)
    return time.perf_counter() - started


def by_dcp(folder: Path, model: dict[str, torch.Tensor]) -> float:
    started = time.perf_counter()
    dcp.load(model, storage_reader=dcp.HuggingFaceStorageReader(str(folder)), no_dist=True)
    return time.perf_counter() - started


def main() -> None:
    rows = BYTES // TENSORS // 4 // 64
    model = {f"layer{i}.weight": torch.ones(rows, 64) for i in range(TENSORS)}
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as box, Ranks(Path(box) / "ckpt", BYTES, TENSORS, 2) as ranks:
        ranks.tell("save")
        folder = Path(box) / "ckpt/step-1/model"
        ways = {
            "cold": lambda: ranks.tell("cold", 0)[0],
            "cold safetensors": lambda: (drop(folder), by_safetensors(folder, model))[1],
            "cold dcp": lambda: (drop(folder), by_dcp(folder, model))[1],
            "cold raw": lambda: (drop(folder), ranks.tell("scan", 0)[0])[1],
            "warm": lambda: (ranks.tell("load", 0), ranks.tell("load", 0)[0])[1],
            "warm safetensors": lambda: by_safetensors(folder, model),
            "warm dcp": lambda: by_dcp(folder, model),
        }
        for turn in range(-1, ROUNDS):  # the first round is not measured
            for name, way in ways.items():
                took = way()
                if turn >= 0:
                    times.setdefault(name, []).append(took)
    for name in ways:
        if name not in LIMITS:
            print(f"       {name}: {median_interval(times[name])} s")
    met = [
        check_limit(f"loading 1 GB, {name}", median_interval(times[name]), limit, "s") for name, limit in LIMITS.items()
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
