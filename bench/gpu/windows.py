"""Measuring on a GPU: windows of steps that alternate between variants, and JSON lines."""

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch

Step = Callable[[], object]


def print_line(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def print_machine(device: str) -> None:
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print_line(machine=name, torch=torch.__version__, cuda=torch.version.cuda, python=sys.version.split()[0])


def wait_for(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(step: Step, count: int, device: str) -> float:
    wait_for(device)
    started = time.perf_counter()
    for _ in range(count):
        step()
    wait_for(device)
    return time.perf_counter() - started


def steps_for(step: Step, seconds: float, device: str) -> int:
    """Number of steps that take about `seconds`, after the clock of the GPU has risen."""
    seconds_of(step, 5, device)
    return max(3, round(seconds / (seconds_of(step, 10, device) / 10)))


def alternate(steps: dict[str, Step], windows: int, seconds: float, device: str = "cuda") -> dict[str, list[float]]:
    """Steps per second of each variant in `windows` windows. Each round measures all variants; every second
    round runs in reverse order."""
    counts = {name: steps_for(step, seconds, device) for name, step in steps.items()}
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(windows):
        for name in list(steps)[:: -1 if turn % 2 else 1]:
            rates[name].append(counts[name] / seconds_of(steps[name], counts[name], device))
    return rates


def images_per_s(rates: list[float], batch: int) -> dict[str, float]:
    """Median of the windows with their spread."""
    images = [batch * rate for rate in rates]
    return {
        "images_per_s": round(statistics.median(images), 1),
        "low": round(min(images), 1),
        "high": round(max(images), 1),
    }


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
