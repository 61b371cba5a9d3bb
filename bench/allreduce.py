"""An all-reduce through shared memory, compared with gloo: the same program and tensors.

Two ranks with 1 KiB and 64 MiB, then four ranks on the available cores (at most two, if taskset can limit them): first on one
host, then two on each of two simulated hosts, with shared memory within and gloo over the loopback between them. Each
measurement is the median of many all-reduces in new processes, measured by rank 0."""

import os
import sys
import tempfile
from pathlib import Path

import torch_steps
from measure import check_limit, in_turns, ratio_interval

PAIRS = 8
KIB, MIB = 1 << 10, 1 << 20
# one letter per rank for its host, bytes, sums per measurement, maximum ratio to gloo
CASES = (
    ("aa", KIB, 2000, 1 / 10),
    ("aa", 64 * MIB, 10, 1 / 3),
    ("aaaa", KIB, 200, 1 / 3),
    ("aaaa", MIB, 60, 1 / 3),
    ("aaaa", 64 * MIB, 6, 1 / 3),
    ("aabb", KIB, 200, 1),
    ("aabb", MIB, 60, 1),
    ("aabb", 64 * MIB, 6, 1),
)


def microseconds(transport: str, hosts: str, size: int, repeats: int, box: Path) -> float:
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    pinned = ["taskset", "-c", cores, *torch_steps.STOKER, "allreduce", size, repeats]
    torch_steps.run(
        lambda rank: ["env", f"PLACE={hosts[rank]}", *pinned, box / f"out-{rank}"], len(hosts), TRANSPORT=transport
    )
    return float((box / "out-0").read_text())


def measure(hosts: str, size: int, repeats: int, limit: float) -> bool:
    ours = "shm" if len(set(hosts)) == 1 else "auto"
    with tempfile.TemporaryDirectory() as name:
        box = Path(name)
        pairs = in_turns(
            lambda: microseconds(ours, hosts, size, repeats, box),
            lambda: microseconds("gloo", hosts, size, repeats, box),
            PAIRS,
        )
    many = len(set(hosts))
    what = f"{len(hosts)} ranks{f' of {many} hosts' if many > 1 else ''}, {size // KIB} KiB"
    for transport, column in ((ours, 0), ("gloo", 1)):
        print(f"       {what}, {transport}: {sorted(pair[column] for pair in pairs)[PAIRS // 2]:.1f} us (median)")
    return check_limit(f"all-reduce, {what}: ratio to gloo", ratio_interval(pairs), limit=limit)


def main() -> None:
    met = [measure(*case) for case in CASES]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
