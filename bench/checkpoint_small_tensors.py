"""Saving 10 000 tensors of 4 KB from one process, alternating with torch.save, to /dev/shm, where a sync is free. Stoker plans,
copies, checksums, writes and commits; torch.save writes one file."""

import sys
import tempfile
import time
from pathlib import Path

import torch
from checkpoint_ranks import Ranks
from measure import check_limit, in_turns, median_interval, ratio_interval

COUNT = 10_000
EACH = 4096
PAIRS = 15
LIMIT = 0.05  # seconds


def main() -> None:
    tensors = {f"layer{i}.weight": torch.randn(EACH // 4 // 64, 64) for i in range(COUNT)}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as box, Ranks(Path(box) / "ckpt", COUNT * EACH, COUNT, 1) as ranks:

        def by_torch() -> float:
            started = time.perf_counter()
            torch.save(tensors, f"{box}/torch.pt")
            return time.perf_counter() - started

        def bound() -> float:
            """Time for the bytes only: one copy, and writing one file."""
            return ranks.tell("copy")[0] + ranks.tell("raw")[0]

        pairs = in_turns(lambda: ranks.tell("save")[1], by_torch, PAIRS)
        bounds = [bound() for _ in range(PAIRS)]
    print(f"of torch.save ({median_interval([b for _, b in pairs])} s): {ratio_interval(pairs)}")
    print(f"bound, the bytes copied and written alone: {median_interval(bounds)} s")
    sys.exit(0 if check_limit("saving 10 000 x 4 KB", median_interval([a for a, _ in pairs]), LIMIT, "s") else 1)


if __name__ == "__main__":
    main()
