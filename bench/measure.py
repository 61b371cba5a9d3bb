"""What the benches share: interleaved pairs, ratios with their uncertainty, and the line each bench ends with.

A bench is bench/<workload>.py, run by script/bench. It measures one thing, prints what it found and the limit it is
held to, and exits with 1 when the limit is missed. Two things are compared in one run, in turns, so that a machine
that gets slower in the middle slows both."""

import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("STOKER_BIN") or REPOSITORY / "build/release/bin")
PYTHON = REPOSITORY / ".venv/bin/python"


@dataclass(frozen=True)
class Interval:
    """A value and the range that holds it with 95 % confidence."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} (95 %: {self.low:.3g} to {self.high:.3g})"


def median_interval(values: Sequence[float]) -> Interval:
    """The median with the order statistics that bracket it (no assumption on the distribution)."""
    ordered = sorted(values)
    spread = 0.98 * math.sqrt(len(ordered))
    low = max(0, math.floor(len(ordered) / 2 - spread))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + spread) - 1)
    return Interval(statistics.median(ordered), ordered[low], ordered[max(low, high)])


def ratio_interval(pairs: Sequence[tuple[float, float]], resamples: int = 2000) -> Interval:
    """Geometric mean of first/second over the pairs, with a bootstrap interval; the same pairs give the same one."""
    logs = [math.log(first / second) for first, second in pairs]
    chance = random.Random(len(logs))
    means = sorted(statistics.fmean(chance.choices(logs, k=len(logs))) for _ in range(resamples))
    low, high = means[int(0.025 * resamples)], means[int(0.975 * resamples) - 1]
    return Interval(math.exp(statistics.fmean(logs)), math.exp(low), math.exp(high))


def in_turns(first: Callable[[], float], second: Callable[[], float], pairs: int) -> list[tuple[float, float]]:
    """Measures both `pairs` times, the one that goes first changing each time; one unmeasured round before."""
    first(), second()
    results = []
    for turn in range(pairs):
        if turn % 2:
            b, a = second(), first()
        else:
            a, b = first(), second()
        results.append((a, b))
    return results


def seconds_of(command: Sequence[str | Path], **options) -> float:
    """Wall time of a command that must succeed; its output is dropped."""
    started = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, **options)
    return time.perf_counter() - started


def start_times(command: Sequence[str | Path], count: int) -> Interval:
    """Milliseconds that a short command takes, the median of `count` runs after five unmeasured ones."""
    for _ in range(5):
        seconds_of(command)
    return median_interval([1000 * seconds_of(command) for _ in range(count)])


def told(what: str, found: Interval, limit: float, unit: str = "") -> bool:
    """Prints the result against its limit (at most that); whether it is within."""
    met = found.value <= limit
    print(f"{'ok' if met else 'MISSED':7}{what}: {found}{unit and ' ' + unit}, limit {limit:g}{unit and ' ' + unit}")
    return met


def conclude(what: str, found: Interval, limit: float, unit: str = "") -> None:
    """Prints the result against its limit and ends the bench: 0 within it, 1 over it."""
    sys.exit(0 if told(what, found, limit, unit) else 1)
