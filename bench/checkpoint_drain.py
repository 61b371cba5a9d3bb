"""Saving 512 MB from two ranks through the node-local disk (checkpoint.local), compared with saving directly to the directory,
alternating, both on the disk of the temporary folder: how long the training is blocked, how much slower its steps are until the
step is saved, and how long that takes. A step reads 8 MiB of memory. Through the local disk everything is written twice and read
once; the benefit is memory that is free earlier if shared storage is slow."""

import sys
import tempfile
from pathlib import Path

from checkpoint_ranks import TENSORS, Ranks
from measure import check_limit, median_interval, ratio_interval

BYTES = 512 * 10**6
ROUNDS = 9
STALL_LIMIT, SLOWER_LIMIT = 0.08, 1.2


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        box = Path(name)
        with (
            Ranks(box / "straight", BYTES, TENSORS, 2) as straight,
            Ranks(box / "shared", BYTES, TENSORS, 2, box / "node") as local,
        ):
            ways = {"straight": straight, "by the node's disk": local}
            found: dict[str, list[list[float]]] = {way: [] for way in ways}
            for turn in range(-1, ROUNDS):  # the first round is not measured
                for way in list(ways)[:: 1 if turn % 2 else -1]:
                    figures = ways[way].tell("steps")
                    if turn >= 0:
                        found[way].append(figures)
    columns = {way: list(zip(*rows, strict=True)) for way, rows in found.items()}
    for way, (stall, slower, took) in columns.items():
        print(f"       {way}: stands still {median_interval(stall)} s, steps x {median_interval(slower)}")
        print(f"       {way}: saved after {median_interval(took)} s")
    ours, plain = columns["by the node's disk"], columns["straight"]
    for index, what in enumerate(("stall", "steps", "time until saved")):
        print(
            f"       {what}, by the node's disk / straight: {ratio_interval(list(zip(ours[index], plain[index], strict=True)))}"
        )
    met = check_limit("stall with the local disk", median_interval(ours[0]), STALL_LIMIT, "s")
    met &= check_limit("steps while it drains / before", median_interval(ours[1]), SLOWER_LIMIT)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
