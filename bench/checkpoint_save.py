"""Saving 1 GB in 2405 tensors from two ranks until it is committed and durable, including every CRC. Alternates with writing the
same bytes from the same two processes with direct I/O, preallocated space and one fsync each, as the limit of the disk. Also
measured: how long the training is blocked at the first and at later saves, and the time to copy the bytes."""

import sys
import tempfile
from pathlib import Path

from checkpoint_ranks import TENSORS, Ranks
from measure import check_limit, median_interval, ratio_interval

BYTES = 10**9
ROUNDS = 11
FIRSTS = 4  # additional processes that save once
DURABLE_LIMIT = 1.25  # of raw
STALL_LIMIT = 0.08  # seconds


def first_stall(folder: Path) -> float:
    with Ranks(folder, BYTES, TENSORS, 2) as ranks:
        return ranks.tell("save")[0]


def main() -> None:
    pairs, stalls, copies = [], [], []
    with tempfile.TemporaryDirectory() as box:
        with Ranks(Path(box) / "ckpt", BYTES, TENSORS, 2) as ranks:
            firsts = [ranks.tell("save")[0]]
            ranks.tell("raw")
            ranks.tell("copy")
            for turn in range(ROUNDS):
                words = ("save", "raw") if turn % 2 == 0 else ("raw", "save")
                times = {word: ranks.tell(word) for word in words}
                stalls.append(times["save"][0])
                copies.append(ranks.tell("copy")[0])
                pairs.append((times["save"][1], times["raw"][0]))
        for turn in range(FIRSTS):
            firsts.append(first_stall(Path(box) / f"first-{turn}"))
    saved, raw = median_interval([a for a, _ in pairs]), median_interval([b for _, b in pairs])
    print(f"1 GB, 2 ranks: saved and committed in {saved} s, raw {raw} s; copied alone in {median_interval(copies)} s")
    met = check_limit("saving 1 GB / writing it raw", ratio_interval(pairs), DURABLE_LIMIT)
    met &= check_limit("stall of first saves", median_interval(firsts), STALL_LIMIT, "s")
    met &= check_limit("stall of the later ones", median_interval(stalls), STALL_LIMIT, "s")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
