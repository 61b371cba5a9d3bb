"""Reads the order receipts of a run (docs/formats/receipts.md) and checks that each sample was seen exactly once.

python tests/receipts.py RUN SAMPLES        exits with 1 and prints the errors"""

import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEAD = struct.Struct("<III")


@dataclass(frozen=True)
class Receipt:
    """What one rank took in one step. `step` counts on over epochs and attempts."""

    epoch: int
    step: int
    samples: tuple[int, ...]


def read_receipts(data: bytes) -> Iterator[Receipt]:
    """The whole receipts; one that a kill cut short is left out."""
    at = 0
    while at + HEAD.size <= len(data):
        epoch, step, count = HEAD.unpack_from(data, at)
        at += HEAD.size
        if at + 8 * count > len(data):
            return
        yield Receipt(epoch, step, struct.unpack_from(f"<{count}Q", data, at))
        at += 8 * count


def receipts_of(run: Path) -> list[list[Receipt]]:
    """Per rank, the steps that count: of a step done again after a resume, the last time."""
    attempts = sorted((path for path in (run / "attempts").iterdir() if path.name.isdigit()), key=lambda p: int(p.name))
    done: dict[str, list[Receipt]] = {}
    for attempt in attempts:
        fresh = {path.name: list(read_receipts(path.read_bytes())) for path in sorted(attempt.glob("receipts-*.bin"))}
        begun = [receipts[0].step for receipts in fresh.values() if receipts]
        if not begun:
            continue
        for name in done:
            done[name] = [receipt for receipt in done[name] if receipt.step < min(begun)]
        for name, receipts in fresh.items():
            done.setdefault(name, []).extend(receipts)
    return [done[name] for name in sorted(done)]


def padding_of(epoch: int, ranks: list[list[Receipt]], samples: int) -> int:
    """How many of an epoch's samples come twice so that the ranks of its last steps have equally many of what other
    numbers of ranks left to them."""
    taken: dict[int, list[int]] = {}  # by step: what each rank took
    for rank in ranks:
        for receipt in rank:
            if receipt.epoch == epoch:
                taken.setdefault(receipt.step, []).append(len(receipt.samples))
    last = len(taken[max(taken)])
    before = 0  # the last step that another number of ranks took
    for step in sorted(taken):
        if len(taken[step]) != last:
            before = step
    return -(samples - sum(sum(own) for step, own in taken.items() if step <= before)) % last


def mistakes(ranks: list[list[Receipt]], samples: int) -> list[str]:
    """What contradicts "each of `samples` samples was seen once in each epoch"; empty if nothing does. Where they do
    not divide by the ranks, each epoch may repeat as many as make them divide. Attempts may have had more ranks or
    fewer."""
    found = []
    if not ranks or not ranks[0]:
        return ["no receipts"]
    steps = [[receipt.step for receipt in rank] for rank in ranks]
    for number, own in enumerate(steps):
        if own != sorted(set(own)):
            found.append(f"rank {number}: a step appears twice or out of order")
        if number > 0 and not set(own) <= set(steps[number - 1]):
            found.append(f"rank {number}: has other steps than rank {number - 1}")
    counts: dict[int, Counter[int]] = {}
    for rank in ranks:
        for receipt in rank:
            counts.setdefault(receipt.epoch, Counter()).update(receipt.samples)
    if sorted(counts) != list(range(len(counts))):
        found.append(f"epochs {sorted(counts)} are not all there")
    for epoch, count in sorted(counts.items()):
        missing = samples - sum(sample < samples for sample in count)
        foreign = sum(sample >= samples for sample in count)
        repeated = count.total() - len(count)
        if missing:
            found.append(f"epoch {epoch}: {missing} samples were not seen")
        if foreign:
            found.append(f"epoch {epoch}: {foreign} samples are not of the dataset")
        padding = padding_of(epoch, ranks, samples)
        if repeated != padding:
            found.append(f"epoch {epoch}: {repeated} samples were seen again, expected {padding}")
    return found


def main() -> int:
    run, samples = Path(sys.argv[1]), int(sys.argv[2])
    ranks = receipts_of(run)
    wrong = mistakes(ranks, samples)
    for line in wrong:
        print(f"{run}: {line}")
    if not wrong:
        epochs = 1 + max(receipt.epoch for receipt in ranks[0])
        print(f"{run}: {len(ranks)} ranks, {epochs} epochs, each of {samples} samples seen once in each")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
