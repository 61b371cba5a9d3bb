"""The figures of stoker.notebook, drawn with matplotlib. In a notebook, they appear below the cell."""

import math
from collections.abc import Iterable
from typing import Any

from stoker.notebook_logs import package

# Of the gauge, in units per second: ranges of the course's figure.
_GAUGE_END, _SLOW, _MEDIUM = 10000.0, 1200.0, 2800.0
# More single steps are drawn as a line.
_MAX_BARS = 200


def pyplot(function: str) -> Any:
    return package("matplotlib.pyplot", function)


def dashboard(title: str, unit: str, throughput: float, inside: str, texts: list[tuple[str, str]]) -> None:
    """A gauge with one big number, and named texts to the right of it."""
    plt = pyplot("controle_technique")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 5))
    figure.suptitle(_literal(title))
    end = max(_GAUGE_END, 10 ** math.ceil(math.log10(max(throughput, 1))))
    wedges = package("matplotlib.patches", "controle_technique").Wedge
    for low, high, color in ((0.0, _SLOW, "lightgray"), (_SLOW, _MEDIUM, "gray"), (_MEDIUM, end, "whitesmoke")):
        left.add_patch(wedges((0, 0), 1, _angle(high / end), _angle(low / end), width=0.3, facecolor=color))
    left.add_patch(wedges((0, 0), 0.95, _angle(throughput / end), 180, width=0.2, facecolor="green"))
    for tick in range(0, 11, 2):
        angle = math.radians(_angle(tick / 10))
        left.text(1.12 * math.cos(angle), 1.12 * math.sin(angle), f"{end * tick / 10000:g} k", ha="center", fontsize=9)
    left.text(0, 0.08, f"{throughput:,.0f}".replace(",", " "), ha="center", fontsize=34)
    left.text(0, -0.2, f"{unit.capitalize()}/second", ha="center", fontsize=14)
    left.text(0, -0.5, inside, ha="center", va="top", fontsize=14)
    left.set(xlim=(-1.35, 1.35), ylim=(-1, 1.3), aspect="equal")
    for axes in (left, right):
        axes.axis("off")
    top = 1.0
    for name, text in texts:
        right.text(0, top, name, fontsize=10, color="gray", va="top")
        right.text(0, top - 0.06, _literal(text), fontsize=11, va="top", family="monospace")
        top -= 0.13 + 0.05 * (text.count("\n") + 1)
    plt.show()


def overheated(title: str, what: str, why: str) -> None:
    """What the gauge is replaced with when the training failed: a car that stands, under steam."""
    plt = pyplot("controle_technique")
    patches = package("matplotlib.patches", "controle_technique")
    figure, axes = plt.subplots(figsize=(9.8, 4))
    figure.suptitle(_literal(title))
    for patch in (
        patches.FancyBboxPatch((2, 1), 5, 1, boxstyle="round,pad=0.2", facecolor="firebrick"),
        patches.Polygon(
            ((3, 2.1), (3.6, 3.1), (5.2, 3.1), (5.9, 2.1)), facecolor="lightblue", edgecolor="firebrick", lw=5
        ),
        *(patches.Circle((x, 0.8), 0.55, facecolor="black", edgecolor="gray", lw=5) for x in (3, 6)),
        *(
            patches.Circle((7.3 + x, 2.5 + y), 0.3 + x / 3, facecolor="lightgray")
            for x, y in ((0, 0), (0.6, 0.6), (1.3, 1.1))
        ),
    ):
        axes.add_patch(patch)
    axes.text(5, 5.2, _literal(what), ha="center", fontsize=22, color="red")
    axes.text(5, 4.6, _literal(why), ha="center", fontsize=10, va="top", wrap=True)
    axes.set(xlim=(0, 10), ylim=(0, 6), aspect="equal")
    axes.axis("off")
    plt.show()


def times(title: str, series: dict[str, list[float]]) -> None:
    """Times of the single iterations. A bar that the axis cuts has its value above it."""
    plt = pyplot("turbo_profiler")
    _, axes = plt.subplots(figsize=(18, 4), layout="constrained")
    width = 0.8 / max(len(series), 1)
    top = _readable_top(series.values())
    for number, (name, values) in enumerate(series.items()):
        if len(values) > _MAX_BARS:
            axes.plot(range(len(values)), values, label=name)
        else:
            axes.bar([place + number * width for place in range(len(values))], values, width, label=name)
        for place, value in enumerate(values):
            if value > top:
                axes.text(
                    place + number * width, top, f"{value:.3g} s", ha="center", va="bottom", rotation=90, fontsize=9
                )
    axes.set_ylim(0, top)
    axes.set_title(title, fontsize=16, pad=30)
    axes.set_xlabel("Iterations", fontsize=14)
    axes.set_ylabel("Time in seconds", fontsize=14)
    axes.legend()
    plt.show()


def _readable_top(series: Iterable[list[float]]) -> float:
    """Upper end of the axis: above all values, but not far above those after the first iteration, which warms up."""
    values = list(series)
    later = max((value for each in values for value in each[1:]), default=0.0)
    largest = max((value for each in values for value in each), default=0.0)
    return 1.05 * (later if 0 < 4 * later < largest else largest) or 1.0


def bars(function: str, title: str, label: str, table: Any, top: float | None = None) -> None:
    """A DataFrame as bars, with the texts of its index below them."""
    axes = table.plot.bar(figsize=(15, 3), rot=90, title=title, ylabel=label)
    if top is not None:
        axes.set_ylim(0, top)
    pyplot(function).show()


def layers(names: list[str], means: dict[str, list[list[float]]], labels: list[str] | None) -> None:
    """Four panels with a line for each job: means over the parameters of each layer."""
    plt = pyplot("BatchNorm_view")
    figure, panels = plt.subplots(2, 2, figsize=(24, 12), sharex=True)
    places = {"running_mean": (0, 0), "running_var": (1, 0), "weight": (0, 1), "bias": (1, 1)}
    for name, place in places.items():
        axes = panels[place]
        axes.set_title(name, fontsize=16)
        for number, line in enumerate(means[name]):
            axes.plot(range(len(names)), line, label=_literal(str(labels[number])) if labels else None)
        if labels:
            axes.legend(fontsize=14)
    for axes in panels[1]:
        axes.set_xticks(range(len(names)), names, rotation="vertical", fontsize=12)
    figure.tight_layout()
    plt.show()


def _literal(text: str) -> str:
    """Without math between dollar signs, which matplotlib would set as a formula."""
    return text.replace("$", r"\$")


def _angle(share: float) -> float:
    """Degrees of a place on the gauge, from 0 on the left to 1 on the right."""
    return 180 * (1 - min(max(share, 0.0), 1.0))
