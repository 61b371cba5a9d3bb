"""comm_profiler: the collectives of each rank."""

import re
from typing import Any

from stoker import notebook_collectives, notebook_figures
from stoker.errors import InvalidError, NotFoundError
from stoker.notebook_collectives import TYPES, Collective
from stoker.notebook_logs import first, package

_SHOWN_STEPS = 10
_ZOOM_BYTES = 100
# Collectives in a figure. More names are not readable, and take matplotlib minutes.
_MAX_SHOWN = 300


def comm_profiler(jobid: Any, n_display: int | None = None, zoom: bool = False) -> Any:
    """Shows the bytes of each collective in their order, one color for each rank: those before the first step, of the steps 1 to
    10 and of the validation. A second figure sums them by step and collective.

    n_display: show only that many collectives from the start, and that many from the end
    zoom: show small collectives, up to 100 bytes

    Returns a DataFrame with all collectives, indexed by opCount, with the columns local_rank, coll_operation, comm, Count,
    datatype, op, root, stream, sendbuff, recvbuff, train_step, global_rank, nranks, bus_bytes. Count is the bytes of the rank's
    buffer, bus_bytes what the rank sends at least. The log has no times of collectives."""
    if n_display is not None and (isinstance(n_display, bool) or not isinstance(n_display, int) or n_display < 1):
        raise InvalidError(f"comm_profiler: n_display={n_display!r}: must be an integer from 1")
    job = first(jobid, "comm_profiler")
    collectives, notes = notebook_collectives.read(job)
    if not collectives:
        raise NotFoundError(
            f"{job.out[0]}: has no collectives of NCCL\n"
            "  try: gpu_jobs_submitter(..., verbose=1), which sets NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL"
        )
    for note in notes:
        print(f"{job.out[0]}: {note}")
    shown = [each for each in collectives if _is_shown(each.train_step)]
    left_out = sorted({_step(each.train_step) for each in collectives if not _is_shown(each.train_step)})
    if left_out:
        print(
            f"the figure shows steps 1 to {_SHOWN_STEPS}; the DataFrame also has steps {left_out[0]} to {left_out[-1]}"
        )
    if shown:
        _draw(shown, n_display, zoom)
    return _table(collectives)


def _is_shown(step: str) -> bool:
    return step in ("init.", "valid.") or _step(step) <= _SHOWN_STEPS


def _step(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else 0


def _draw(shown: list[Collective], n_display: int | None, zoom: bool) -> None:
    table = _by_rank(shown)
    top = _ZOOM_BYTES if zoom else None
    title = f"Collective Communication Profiler - Nbr of operations: {len(shown)}"
    if n_display is None and len(table) > _MAX_SHOWN:
        n_display = _MAX_SHOWN // 2
        print(f"the figures show the first and the last {n_display} of {len(table)} collectives of a rank (n_display)")
    ranges = [slice(n_display), slice(-n_display, None)] if n_display and len(table) > n_display else [slice(None)]
    for each in ranges:
        notebook_figures.bars("comm_profiler", title, "communications Bytes", table.iloc[each], top)
    if zoom:
        return
    total = sum(each.payload or 0 for each in shown)
    sums = table.groupby("operations", sort=False).sum()
    title = f"Aggregate Collective Communication Profiler - global count: {total} Bytes"
    notebook_figures.bars("comm_profiler", title, "communications Bytes", sums)


def _by_rank(shown: list[Collective]) -> Any:
    """A column of bytes for each rank. Rows are the collectives of a rank in their order, named as on the lowest rank."""
    pandas = package("pandas", "comm_profiler")
    ranks: dict[tuple[bool, int, str], list[Collective]] = {}
    for each in shown:
        rank = each.global_rank
        ranks.setdefault((rank is None, rank or 0, ":".join(each.process) if rank is None else ""), []).append(each)
    names = [""] * max(map(len, ranks.values()))
    columns: dict[str, Any] = {}
    for is_unknown, rank, process in sorted(ranks):
        operations = ranks[is_unknown, rank, process]
        payloads = [each.payload for each in operations] + [None] * (len(names) - len(operations))
        columns[process if is_unknown else f"rank: {rank}"] = payloads
        for place, each in enumerate(operations):
            kind = TYPES.get(each.datatype, f"type {each.datatype}")
            names[place] = names[place] or f"{each.train_step} - {each.coll_operation} ({kind})"
    return pandas.DataFrame(columns | {"operations": names}).set_index("operations").astype("float64")


def _table(collectives: list[Collective]) -> Any:
    pandas = package("pandas", "comm_profiler")
    rows = [
        {
            "opCount": each.opCount,
            "local_rank": each.local_rank,
            "coll_operation": each.coll_operation,
            "comm": each.comm,
            "Count": each.payload,
            "datatype": each.datatype,
            "op": each.op,
            "root": each.root,
            "stream": each.stream,
            "sendbuff": each.sendbuff,
            "recvbuff": each.recvbuff,
            "train_step": each.train_step,
            "global_rank": each.global_rank,
            "nranks": each.nranks,
            "bus_bytes": each.bus_bytes,
        }
        for each in collectives
    ]
    whole = dict.fromkeys(("Count", "op", "root", "global_rank", "nranks"), "Int64")
    return pandas.DataFrame(rows).astype(whole).set_index("opCount")
