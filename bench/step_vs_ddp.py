"""What a training step costs beside computing, two ranks: CPU of communication and memory against DistributedDataParallel,
the wait for data, and recording.

CPU of communication is what two ranks that train together spend beyond two that train alone, side by side on the same
cores; start-up cancels out because a short and a long run are subtracted."""

import statistics
import sys
import tempfile
from pathlib import Path

from measure import Interval, median_interval, ratio_interval
from training import prepare, pytorch_alone, pytorch_steps, stoker_alone, stoker_steps

SHORT, LONG = 10, 50


def per_step(together: tuple[float, float], alone: tuple[float, float]) -> float:
    """CPU seconds per step of one rank, from (short, long) runs of two."""
    return ((together[1] - together[0]) - (alone[1] - alone[0])) / (LONG - SHORT) / 2


def report(what: str, found: Interval, limit: float) -> bool:
    met = found.value <= limit
    print(f"{'ok' if met else 'MISSED':7}{what}: {found}, limit {limit:g}")
    return met


def main(rounds: int = 6) -> None:
    communication, memory, waits = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for _ in range(rounds):
            ours = [stoker_steps(folder, n) for n in (SHORT, LONG)]
            theirs = [pytorch_steps(folder, n) for n in (SHORT, LONG)]
            ours_alone = (stoker_alone(folder, SHORT), stoker_alone(folder, LONG))
            theirs_alone = (pytorch_alone(folder, SHORT), pytorch_alone(folder, LONG))
            communication.append(
                (
                    per_step((ours[0].cpu_s, ours[1].cpu_s), ours_alone),
                    per_step((theirs[0].cpu_s, theirs[1].cpu_s), theirs_alone),
                )
            )
            memory.append((ours[1].peak_bytes, theirs[1].peak_bytes))
            rows = ours[1].rows[5:]
            waits.append(100 * sum(row["data_s"] for row in rows) / sum(row["step_s"] for row in rows))
    mine, peer = [1000 * a for a, _ in communication], [1000 * b for _, b in communication]
    print(f"CPU of communication per step and rank: {median_interval(mine)} ms, Python DDP {median_interval(peer)} ms")
    # A difference of differences may be below zero where it is small.
    less = [a - b for a, b in zip(mine, peer, strict=True)]
    results = [
        report("CPU of communication less Python's, ms", median_interval(less), 0),
        report("peak memory of a rank, of Python's", ratio_interval(memory), 0.7),
        report("wait for data, percent of the step", median_interval(waits), 1),
    ]
    print(f"step: median {statistics.median(row['step_s'] for row in rows) * 1000:.0f} ms (recording: recording_bench)")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
