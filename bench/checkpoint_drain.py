"""Saving 512 MB from two ranks by way of the node's own disk (checkpoint.local) beside saving straight to the directory, in
turns, both on the disk that holds the temporary folder: how long the training stands still, how much slower its steps
are until the step is saved, and how long that takes. A step passes over 8 MiB in memory. By way of the node everything is
written twice and read once: what it gains is memory that is free again sooner, where shared storage is slow."""

import sys
import tempfile
from pathlib import Path

from checkpoint_ranks import TENSORS, Ranks
from measure import median_interval, ratio_interval, told

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
            for turn in range(-1, ROUNDS):  # one unmeasured round first
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
    met = told("stall by the node's disk", median_interval(ours[0]), STALL_LIMIT, "s")
    met &= told("steps while it drains / before", median_interval(ours[1]), SLOWER_LIMIT)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
