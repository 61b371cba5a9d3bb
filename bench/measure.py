"""Helpers for all benchmarks: alternating pairs, ratios with their uncertainty, and the final line of each benchmark.

A benchmark is bench/<workload>.py, run by script/bench. It measures one thing, prints the result and its limit, and exits with 1
if the limit is missed. Two compared things alternate in one run, so that a slowdown of the machine affects both."""

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
    """A value and its 95 % confidence interval."""

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
    """Geometric mean of first/second over the pairs, with a deterministic bootstrap interval."""
    logs = [math.log(first / second) for first, second in pairs]
    chance = random.Random(len(logs))
    means = sorted(statistics.fmean(chance.choices(logs, k=len(logs))) for _ in range(resamples))
    low, high = means[int(0.025 * resamples)], means[int(0.975 * resamples) - 1]
    return Interval(math.exp(statistics.fmean(logs)), math.exp(low), math.exp(high))


def in_turns(first: Callable[[], float], second: Callable[[], float], pairs: int) -> list[tuple[float, float]]:
    """Measures both `pairs` times in alternating order, after one unmeasured round."""
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
    """Wall time of a command that must succeed; its output is discarded."""
    started = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, **options)
    return time.perf_counter() - started


def start_times(command: Sequence[str | Path], count: int) -> Interval:
    """Milliseconds of a short command, median of `count` runs after five unmeasured ones."""
    for _ in range(5):
        seconds_of(command)
    return median_interval([1000 * seconds_of(command) for _ in range(count)])


def check_limit(what: str, found: Interval, limit: float, unit: str = "") -> bool:
    """Prints the result and its maximum; True if it is within the limit."""
    met = found.value <= limit
    print(f"{'ok' if met else 'MISSED':7}{what}: {found}{unit and ' ' + unit}, limit {limit:g}{unit and ' ' + unit}")
    return met


def conclude(what: str, found: Interval, limit: float, unit: str = "") -> None:
    """Prints the result and its maximum, and exits with 0 within the limit, otherwise 1."""
    sys.exit(0 if check_limit(what, found, limit, unit) else 1)
