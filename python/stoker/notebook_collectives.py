"""The collectives that NCCL logs with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL.

NCCL prints `HOST:PID:TID [DEVICE] NCCL INFO AllReduce: opCount 5 ... count 1000 datatype 7 op 0 root 0 comm 0x... [nranks=4]`
before each collective, and `... comm 0x... rank 1 nranks 4 ... - Init COMPLETE` after a communicator was created. Fields are
found by their names. A communicator's address is unique only in its process."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

from stoker.notebook_logs import Job

# NCCL_DEBUG_TIMESTAMP_FORMAT, torchrun and `srun --label` add prefixes, and RCCL a time after the device.
_PROCESS = re.compile(
    r"([^\s:\]]+):(\d+):\d+ \[(\d{1,9})\] (?:\d+ )?NCCL INFO (.*?)(?=\S+:\d+:\d+ \[\d+\] NCCL INFO |$)"
)
_LABEL = re.compile(r"^ *(\d{1,9}): ")
_COMM = re.compile(r"\bcomm (0x[0-9a-f]+)")
_INIT = re.compile(r"\bcomm (0x[0-9a-f]+) rank (\d{1,9}) nranks (\d{1,9})\b.*Init COMPLETE")
_PROCESSES = re.compile(r"Training on +\d+ +nodes? and +(\d{1,9}) +process")
_GLOBAL_RANK = re.compile(r"\bglobalrank (\d{1,9})\b")  # of RCCL
_MARK = re.compile(r"Train step (\d{1,15}) - rank (\d{1,9})")
# ncclDataType_t. Before NCCL 2.24, 10 was the number of types.
_BYTES = {0: 1, 1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2, 10: 1, 11: 1}
TYPES = dict(
    enumerate(
        (
            *("ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64", "ncclFloat16"),
            *("ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"),
        )
    )
)
_NUMBERS = ("count", "datatype", "op", "root")
# The scripts print this step before the validation.
_VALIDATION = 100


@dataclass(slots=True)
class Collective:
    local_rank: int
    coll_operation: str
    opCount: int  # noqa: N815 (a column of the course)
    comm: str
    count: int
    datatype: int
    op: int | None
    root: int | None
    stream: str
    sendbuff: str
    recvbuff: str
    process: tuple[str, str]
    train_step: str = "init."
    global_rank: int | None = None
    nranks: int | None = None

    @property
    def payload(self) -> int | None:
        """Bytes of this rank's buffer; None for an unknown data type."""
        size = _BYTES.get(self.datatype)
        return None if size is None else self.count * size

    @property
    def bus_bytes(self) -> float | None:
        """Bytes that each rank sends at least, as nccl-tests counts them; None for an unknown number of ranks."""
        ranks, payload = self.nranks, self.payload
        if payload is None or not ranks:
            return None
        if self.coll_operation == "AllReduce":
            return 2 * (ranks - 1) / ranks * payload
        if self.coll_operation in ("AllGather", "ReduceScatter"):
            return float((ranks - 1) * payload)  # the count is one rank's part
        if self.coll_operation in ("AlltoAll", "AllToAll"):
            return float((ranks - 1) * payload)
        return float(payload)


@dataclass
class _Scan:
    """The parsed lines in their order. Ranks are known only after the last line."""

    events: list[Collective | tuple[int, int]] = field(default_factory=list)  # or step and rank
    ranks: dict[tuple[str, str], int] = field(default_factory=dict)  # of processes
    world: dict[tuple[str, str], int] = field(default_factory=dict)  # size of the communicator that gave the rank
    sizes: dict[tuple[tuple[str, str], str], int] = field(default_factory=dict)  # of communicators
    early: dict[tuple[tuple[str, str], str], list[Collective]] = field(default_factory=lambda: defaultdict(list))
    labels: dict[tuple[str, str], int] = field(default_factory=dict)  # ranks by the prefix or the name of the log
    processes: int | None = None
    damaged: int = 0

    def line(self, rank: int | None, line: str) -> None:
        for mark in _MARK.finditer(line):  # ranks share the log: two of their lines may be one
            self.events.append((int(mark[1]), int(mark[2])))
        if found := _PROCESSES.search(line):
            self.processes = int(found[1])
        for found in _PROCESS.finditer(line) if "NCCL INFO" in line else ():
            process = (found[1], found[2])
            if rank is not None:
                self.labels[process] = rank
            elif label := _LABEL.match(line):
                self.labels[process] = int(label[1])
            if found_rank := _GLOBAL_RANK.search(found[4]):
                self.labels[process] = int(found_rank[1])
            if "opCount" in found[4]:
                self._collective(process, int(found[3]), found[4])
            elif init := _INIT.search(found[4]):
                self._communicator(process, init[1], int(init[2]), int(init[3]))

    def process_ranks(self) -> dict[tuple[str, str], int]:
        """Ranks by the communicator of all processes, else by the labels."""
        largest = max(self.world.values(), default=0)
        if self.processes not in (None, largest):
            return self.labels
        known = {process: rank for process, rank in self.ranks.items() if self.world[process] == largest}
        if self.processes is None and len(set(known.values())) < len(known):
            return self.labels  # communicators of groups
        return self.labels | known

    def _communicator(self, process: tuple[str, str], comm: str, rank: int, size: int) -> None:
        self.sizes[process, comm] = size
        for collective in self.early.pop((process, comm), []):
            collective.nranks = size
        # A split communicator numbers the ranks of its group.
        if size > self.world.get(process, 0):
            self.world[process], self.ranks[process] = size, rank

    def _collective(self, process: tuple[str, str], device: int, text: str) -> None:
        name = re.match(r"(\w+): opCount ([0-9a-f]{1,15})\b", text)
        fields = dict(re.findall(r"\b(sendbuff|recvbuff|count|datatype|op|root|stream) (\S+)", text))
        comm = _COMM.search(text)
        numbers = {key: int(fields[key]) for key in _NUMBERS if re.fullmatch(r"-?\d{1,15}", fields.get(key, ""))}
        if not name or not comm or not {"count", "datatype"} <= numbers.keys():
            self.damaged += 1
            return
        size = re.search(r"\bnranks=(\d{1,9})\b", text)
        collective = Collective(
            device,
            name[1],
            int(name[2], 16),
            comm[1],
            numbers["count"],
            numbers["datatype"],
            numbers.get("op"),
            numbers.get("root"),
            fields.get("stream", ""),
            fields.get("sendbuff", ""),
            fields.get("recvbuff", ""),
            process,
            nranks=int(size[1]) if size else self.sizes.get((process, comm[1])),
        )
        if collective.nranks is None:
            self.early[process, comm[1]].append(collective)
        self.events.append(collective)


def read(job: Job) -> tuple[list[Collective], list[str]]:
    """The collectives of all ranks in the order of the log, and notes about missing facts."""
    scan = _Scan()
    for rank, line in job.lines():
        scan.line(rank, line)
    known = scan.process_ranks()
    steps, collectives = _Steps([event for event in scan.events if isinstance(event, tuple)]), []
    for event in scan.events:
        if isinstance(event, tuple):
            steps.mark(*event)
        else:
            event.global_rank = known.get(event.process)
            event.train_step = steps.of(event.global_rank)
            collectives.append(event)
    return collectives, _notes(collectives, scan.damaged)


class _Steps:
    """The step that each rank is in."""

    def __init__(self, marks: list[tuple[int, int]]) -> None:
        self._of: dict[int, str] = {}
        self._real = _real_hundreds(marks)

    def mark(self, step: int, rank: int) -> None:
        text = f"step {step}" if step else "init."
        if step == _VALIDATION:
            if rank in self._real:
                self._real.remove(rank)
            else:
                text = "valid."
        self._of[rank] = text

    def of(self, rank: int | None) -> str:
        return self._of.get(rank, "init.") if rank is not None else "init."


def _real_hundreds(marks: list[tuple[int, int]]) -> set[int]:
    """Ranks whose first mark of step 100 is that of a step: it comes after step 99. Others mark the validation."""
    previous: dict[int, int] = {}
    real: set[int] = set()
    for step, rank in marks:
        if step == _VALIDATION and previous.get(rank) == _VALIDATION - 1:
            real.add(rank)
        previous[rank] = step
    return real


def _notes(collectives: list[Collective], damaged: int) -> list[str]:
    notes = []
    if damaged:
        notes.append(
            f"{damaged} damaged lines of NCCL with 'opCount'"
            if damaged > 1
            else "1 damaged line of NCCL with 'opCount'"
        )
    unknown = sorted({each.datatype for each in collectives if each.payload is None})
    if unknown:
        notes.append(f"unknown NCCL data types {', '.join(map(str, unknown))}: their bytes are missing")
    without = sorted({":".join(each.process) for each in collectives if each.global_rank is None})
    if without:
        notes.append(
            f"ranks of {', '.join(without)} are unknown: no line 'Init COMPLETE' of a communicator of all ranks"
        )
    return notes
