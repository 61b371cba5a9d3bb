"""The table at the end of script/gpu-check: Stoker beside its peers in Python, with targets."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_check_run import Line

EAGER, COMPILED, GRAPH = ("eager", "foreach", "torchvision", "dcp"), ("compile",), ("graph",)
PEERS = (*EAGER, *COMPILED, *GRAPH, "dcp-staged")
HEAD = ("workload", "Stoker", "Python eager", "compile", "graph", "to best", "to eager", "target", "met")


@dataclass(frozen=True)
class Workload:
    """`field` of the lines is compared; for times, a ratio above 1 still means that Stoker is faster."""

    name: str
    field: str = "images_per_s"
    at_least: float = 1.0  # ratio to `against`
    against: str = "best"  # best, eager, or a mode of the lines
    stoker_modes: tuple[str, ...] = ()  # all

    @property
    def is_time(self) -> bool:
        return self.field in ("stall_s", "p99_s", "seconds")

    @property
    def target(self) -> str:
        return f"{self.at_least:.2f} of {self.against}"


WORKLOADS = (
    *(
        Workload(name, at_least=0.98, stoker_modes=("eager", "graph"))
        for name in (
            "resnet50-256",
            "resnet50-32",
            "resnet18-64",
            "cifar-resnet20-128",
            "cifar-resnet20-128-fp32",
        )
    ),
    Workload("feed-resnet50", at_least=0.95, against="synthetic", stoker_modes=("stoker-train",)),
    Workload("feed-resnet18", at_least=0.9, against="synthetic", stoker_modes=("stoker-train",)),
    Workload("feed-resnet50", at_least=0.95, against="synthetic", stoker_modes=("stoker.Loader",)),
    Workload("feed-resnet18", at_least=0.9, against="synthetic", stoker_modes=("stoker.Loader",)),
    Workload("checkpoint-1gb", "stall_s", at_least=1.0),
    Workload("checkpoint-1gb", "p99_s", at_least=1.0),
    Workload("start", "seconds", at_least=2.0),
)


def values(lines: Iterable[Line], workload: Workload, who: str, modes: tuple[str, ...] = ()) -> list[float]:
    return [
        float(str(line[workload.field]))
        for line in lines
        if line.get("workload") == workload.name
        and line.get("who") == who
        and workload.field in line
        and (not modes or line.get("mode") in modes)
    ]


def best(found: list[float], workload: Workload) -> float | None:
    return None if not found else min(found) if workload.is_time else max(found)


def ratio(stoker: float | None, peer: float | None, workload: Workload) -> float | None:
    if stoker is None or peer is None or stoker <= 0 or peer <= 0:
        return None
    return peer / stoker if workload.is_time else stoker / peer


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def compared_row(lines: list[Line], workload: Workload) -> tuple[str, ...] | None:
    """None without any line of this workload."""
    stoker = best(values(lines, workload, "stoker", workload.stoker_modes), workload)
    eager, compiled, graph, any_peer = (
        best(values(lines, workload, "python", modes), workload) for modes in (EAGER, COMPILED, GRAPH, PEERS)
    )
    if stoker is None and any_peer is None:
        return None
    to_best, to_eager = ratio(stoker, any_peer, workload), ratio(stoker, eager, workload)
    against = {"best": to_best, "eager": to_eager}.get(workload.against)
    if workload.against not in ("best", "eager"):
        against = ratio(stoker, best(values(lines, workload, "python", (workload.against,)), workload), workload)
    name = f"{workload.name} {workload.field}" if workload.is_time else workload.name
    if len(workload.stoker_modes) == 1:
        name += f" {workload.stoker_modes[0]}"
    return (
        name,
        *(number(value) for value in (stoker, eager, compiled, graph)),
        *(f"{value:.2f}" if value is not None else "-" for value in (to_best, to_eager)),
        workload.target,
        "-" if against is None else "yes" if against >= workload.at_least else f"NO ({against:.2f})",
    )


def parity_row(line: Line) -> tuple[str, ...]:
    settings = line.get("settings") or []
    name = " ".join([str(line["workload"]), *map(str, settings if isinstance(settings, list) else [])])
    identical = f"{line['identical_losses']}/{line['steps']} identical"
    target = f"within {line['limit']}"
    met = "yes" if line["met"] else f"NO ({float(str(line['largest_difference'])):.1g})"
    return (name, identical, "-", "-", "-", "-", "-", target, met)


ACCURACY = 0.94


def accuracy_row(line: Line) -> tuple[str, ...]:
    top1 = float(str(line["top1"]))
    found = f"{100 * top1:.2f} % in {line['seconds']} s"
    met = "yes" if top1 >= ACCURACY else "NO"
    return (str(line["workload"]), found, "-", "-", "-", "-", "-", f"{100 * ACCURACY:.0f} %", met)


def rows(lines: list[Line]) -> list[tuple[str, ...]]:
    found = [parity_row(line) for line in lines if "identical_losses" in line]
    found += [row for workload in WORKLOADS if (row := compared_row(lines, workload)) is not None]
    return found + [accuracy_row(line) for line in lines if "top1" in line]


def table(lines: list[Line]) -> str:
    """Columns of text are left-aligned, of numbers right-aligned."""
    grid = [HEAD, *rows(lines)]
    widths = [max(len(row[column]) for row in grid) for column in range(len(HEAD))]
    left = (0, len(HEAD) - 2, len(HEAD) - 1)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in grid
    )
