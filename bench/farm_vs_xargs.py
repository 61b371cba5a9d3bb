"""Tasks per second and CPU time per task of `stoker farm` with its ledger, compared with xargs -P without one, with GNU parallel
and its job log, and with HyperQueue. Each pair runs the same lines with the same shell. Limit: 1.0 x xargs.

  bench/farm_vs_xargs.py [--tasks 2000] [--rounds 5]

`program`: lines without shell syntax. `shell`: lines with a redirection. `bash`: lines that only bash runs. Also the same command
again when all is done. HyperQueue is started through its Python package, which has the server and a worker in one process but no
`hq` command. It runs /bin/true, without its journal."""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measure import BIN, PYTHON, ratio_interval

HYPERQUEUE = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=int(sys.argv[2])))
    client = cluster.client()
    job = Job()
    for number in range(int(sys.argv[1])):
        job.program(["/bin/true", str(number)], stdout=None, stderr=None)
    start = time.perf_counter()
    client.wait_for_jobs([client.submit(job)])
    print("seconds", time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Cost:
    """Wall time of all tasks, and CPU time of all processes, in seconds."""

    wall: float
    cpu: float


def cost_of(command: str, folder: Path) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def hyperqueue(tasks: int, slots: int) -> Cost | None:
    ran = subprocess.run([PYTHON, "-c", HYPERQUEUE, str(tasks), str(slots)], capture_output=True, text=True)
    words = ran.stdout.split()
    return Cost(float(words[words.index("seconds") + 1]), 0) if "seconds" in words else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    slots = len(os.sched_getaffinity(0))
    folder = Path(tempfile.mkdtemp(prefix="farm-bench-"))
    lines = {"program": "true {}", "shell": "true {} > /dev/null", "bash": "[[ {} -ge 0 ]]"}
    for kind, line in lines.items():
        (folder / f"{kind}.txt").write_text("".join(line.format(n) + "\n" for n in range(options.tasks)))
    shells = {"shell": "sh", "bash": "bash"}
    xargs = {
        "program": f"sed 's/^true //' program.txt | xargs -P {slots} -n 1 true",
        **{
            kind: f"tr '\\n' '\\0' < {kind}.txt | xargs -0 -P {slots} -n 1 {shell} -c" for kind, shell in shells.items()
        },
    }
    costs: dict[str, list[Cost]] = {}

    def measure(name: str, run: Callable[[], Cost | None]) -> None:
        if cost := run():
            costs.setdefault(name, []).append(cost)

    def farm(kind: str) -> Cost:
        shutil.rmtree(folder / f"{kind}.farm", ignore_errors=True)
        return cost_of(f"{BIN}/stoker farm {kind}.txt", folder)

    def parallel(kind: str) -> Cost:
        (folder / "log").unlink(missing_ok=True)
        shell = shells.get(kind, "sh")
        return cost_of(
            f"PARALLEL_SHELL=$(command -v {shell}) parallel --will-cite --joblog log -j {slots} < {kind}.txt", folder
        )

    has_parallel = shutil.which("parallel") is not None
    for turn in range(options.rounds):
        for kind in lines:
            pair = [
                (f"farm, {kind}", lambda k=kind: farm(k)),
                (f"xargs, {kind}", lambda k=kind: cost_of(xargs[k], folder)),
            ]
            for name, run in pair if turn % 2 else reversed(pair):
                measure(name, run)
            if has_parallel:
                measure(f"parallel, {kind}", lambda k=kind: parallel(k))
        measure("farm again", lambda: cost_of(f"{BIN}/stoker farm program.txt", folder))
        measure("hyperqueue, program", lambda: hyperqueue(options.tasks, slots))
    shutil.rmtree(folder)

    print(f"{options.tasks} tasks, {slots} at once, median of {options.rounds}")
    print(f"  {'':20} {'tasks/s':>8}   {'lowest to highest':18} CPU ms/task")
    for name, found in costs.items():
        rates = [options.tasks / cost.wall for cost in found]
        cpu = 1000 * statistics.median(cost.cpu for cost in found) / options.tasks
        spread = f"{min(rates):.0f} to {max(rates):.0f}"
        print(f"  {name:20} {statistics.median(rates):8.0f}   {spread:18} {f'{cpu:.2f}' if cpu else '-'}")
    if not has_parallel:
        print("  GNU parallel is not installed (script/bootstrap --for peers)")
    if "hyperqueue, program" not in costs:
        print("  HyperQueue is not installed (script/bootstrap --for peers)")
    has_missed = False
    for kind in lines:
        pairs = list(zip(costs[f"xargs, {kind}"], costs[f"farm, {kind}"], strict=True))
        wall = ratio_interval([(theirs.wall, own.wall) for theirs, own in pairs])
        cpu = ratio_interval([(theirs.cpu, own.cpu) for theirs, own in pairs])
        missed = wall.value < 1
        has_missed = has_missed or missed
        print(f"{'MISSED' if missed else 'ok':7}{kind}: {wall} x xargs in tasks/s, {cpu} x less CPU time, limit 1 x")
    sys.exit(1 if has_missed else 0)


if __name__ == "__main__":
    main()
