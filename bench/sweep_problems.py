"""Five problems for samplers, each minimised: four from the literature, and one with the shape of a validation error over
learning rate, weight decay, depth, width, dropout, optimizer and schedule. SPACES are in the form of a sweep file."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

Params = Mapping[str, Any]


def _box(names: int, low: float, high: float) -> dict[str, dict]:
    return {f"x{i}": {"min": low, "max": high, "type": "float"} for i in range(names)}


def _vector(params: Params) -> list[float]:
    return [params[f"x{i}"] for i in range(len(params))]


def branin(params: Params) -> float:
    x, y = _vector(params)
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


_HARTMANN = [
    (1.0, (10, 3, 17, 3.5, 1.7, 8), (1312, 1696, 5569, 124, 8283, 5886)),
    (1.2, (0.05, 10, 17, 0.1, 8, 14), (2329, 4135, 8307, 3736, 1004, 9991)),
    (3.0, (3, 3.5, 1.7, 10, 17, 8), (2348, 1451, 3522, 2883, 3047, 6650)),
    (3.2, (17, 8, 0.05, 10, 0.1, 14), (4047, 8828, 8732, 5743, 1091, 381)),
]


def hartmann6(params: Params) -> float:
    x = _vector(params)
    return -sum(
        weight * math.exp(-sum(a * (v - p * 1e-4) ** 2 for a, v, p in zip(scales, x, centre, strict=True)))
        for weight, scales, centre in _HARTMANN
    )


def rosenbrock4(params: Params) -> float:
    x = _vector(params)
    return sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x))


def ackley8(params: Params) -> float:
    x = _vector(params)
    distance = math.sqrt(sum(v**2 for v in x) / len(x))
    waves = sum(math.cos(2 * math.pi * v) for v in x) / len(x)
    return -20 * math.exp(-0.2 * distance) - math.exp(waves) + 20 + math.e


_OPTIMIZERS = {"sgd": (-0.7, 0.0), "adam": (-2.9, 0.012), "adamw": (-2.7, 0.006), "rmsprop": (-3.2, 0.025)}
_SCHEDULES = {"constant": (0.020, 0.0), "cosine": (0.0, 0.15), "step": (0.008, 0.10)}


def mlmixed(params: Params) -> float:
    """The best learning rate depends on optimizer, schedule and depth; far above it the training diverges."""
    best, offset = _OPTIMIZERS[params["optimizer"]]
    schedule, shift = _SCHEDULES[params["schedule"]]
    z = math.log10(params["lr"]) - (best + shift - 0.06 * (params["layers"] - 4))
    width = params["log2_width"] - 4
    decay = -2.0 if params["optimizer"] == "adamw" else -4.0
    return min(
        0.9,
        0.060
        + offset
        + schedule
        + (0.030 if z < 0 else 0.060) * z**2
        + 0.55 / (1 + math.exp(-8 * (z - 0.9)))
        + 0.0025 * (params["layers"] - 6) ** 2
        + 0.12 * math.exp(-0.55 * width)
        + 0.25 * (params["dropout"] - 0.05 - 0.06 * width) ** 2
        + 0.006 * (math.log10(params["wd"]) - decay) ** 2,
    )


FUNCTIONS: dict[str, Callable[[Params], float]] = {
    "branin": branin,
    "hartmann6": hartmann6,
    "rosenbrock4": rosenbrock4,
    "ackley8": ackley8,
    "mlmixed": mlmixed,
}
SPACES: dict[str, dict[str, Any]] = {
    "branin": {"x0": {"min": -5, "max": 10, "type": "float"}, "x1": {"min": 0, "max": 15, "type": "float"}},
    "hartmann6": _box(6, 0, 1),
    "rosenbrock4": _box(4, -2.048, 2.048),
    "ackley8": _box(8, -32.768, 32.768),
    "mlmixed": {
        "lr": {"min": 1e-5, "max": 10, "log": True, "type": "float"},
        "wd": {"min": 1e-6, "max": 0.1, "log": True, "type": "float"},
        "layers": {"min": 1, "max": 12},
        "log2_width": {"min": 4, "max": 11},
        "dropout": {"min": 0, "max": 0.7, "type": "float"},
        "optimizer": ["sgd", "adam", "adamw", "rmsprop"],
        "schedule": ["constant", "cosine", "step"],
    },
}
