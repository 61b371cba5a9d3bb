"""Staging a dataset on two to four nodes of a lab: seconds until all have it, and bytes read from the shared filesystem, beside `srun cp`, an
`sbcast` loop and `srun rsync`. The rates are fixed, so that this machine's cores do not decide: the source is a FUSE mount of 150 MB/s
without a page cache, the link of a node carries 300 MB/s in each direction, its disk is a tmpfs. The links of the peers have no limit.
The bound: the source must be read once. The ranks start with the first shards; their delay is compared with the time of staging,
and the time of staging 2 GB with the simulation of docs/commands/stage.md.

    bench/broadcast_on_nodes.py [--nodes 4] [--gigabytes 2] [--rounds 3] [--only WAY]"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cache_vs_rsync import make_dataset
from measure import BIN, REPOSITORY, Interval, check_limit, median_interval

sys.path.insert(0, str(REPOSITORY / "tests"))
from labs import Lab, start_lab, stop_lab

SOURCE, LINK = 150_000_000, 300_000_000
CORES = 2  # of each node; with one, Slurm binds all nodes of a lab to the same core
LIMIT = 1.3  # of the bound
MAX_READ = 1.02  # of the dataset's bytes
MAX_FIRST = 0.1  # of the time of staging
MAX_OFF = 0.15  # of the simulation
# The ranks end when all shards are on their node.
UNTIL_COMPLETE = "while find $STOKER_DATA_TRAIN -lname '/*' | grep -q .; do sleep 0.1; done"


class Source:
    """A slow mount that counts the bytes read from it."""

    def __init__(self, folder: Path, mount: Path, *more: str):
        mount.mkdir()
        options = ["-f", f"--read-rate={SOURCE}", *more]
        self.process = subprocess.Popen(["bindfs", *options, folder, mount])
        # A file server does not compete with the nodes for processors.
        os.setpriority(os.PRIO_PROCESS, self.process.pid, -20)
        self.mount = mount
        while not os.path.ismount(mount):
            time.sleep(0.05)

    def bytes_read(self) -> int:
        fields = dict(line.split(": ") for line in Path(f"/proc/{self.process.pid}/io").read_text().splitlines())
        return int(fields["rchar"])

    def close(self) -> None:
        subprocess.run(["umount", "-l", self.mount], check=True)
        self.process.wait()


def on_all_nodes(lab: Lab, nodes: int, script: str) -> float:
    began = time.perf_counter()
    lab.run(
        "srun",
        "--quiet",
        f"-N{nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={CORES}",
        "bash",
        "-c",
        script,
        timeout=580,
    )
    return time.perf_counter() - began


def start_of_ranks(events: list[dict]) -> float:
    (began,) = [one["time"] for one in events if one["kind"] == "attempt_started"]
    return max(one["time"] for one in events if one["kind"] == "rank_started") - began


def run_job(lab: Lab, nodes: int, more: str, command: str) -> list[dict]:
    """The events of a job."""
    (lab.shared / "job.yaml").write_text(
        f'run: {{shell: "{command}"}}\nresources: {{nodes: {nodes}, cpus_per_rank: {CORES}}}\n{more}'
    )
    # Not submitted: the checks before a submission measure the source.
    allocate = ("salloc", "--quiet", f"-N{nodes}", f"--cpus-per-task={CORES}")
    lab.run(*allocate, BIN / "stoker", "run", "job.yaml", cwd=lab.shared, timeout=580)
    files = (lab.shared / "runs").glob("*/attempts/1/events-*.jsonl")
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    subprocess.run(["rm", "-rf", lab.shared / "runs"], check=True)
    return events


def broadcast(lab: Lab, nodes: int, source: Path, disks: str, starts: list[float]) -> float:
    """Seconds of staging on the slowest node. Appends to `starts` how much later the ranks start than without staging, as a part."""
    data = f"data: {{train: {{source: {source}, place: local, start: first-shards}}}}"
    stage = f"stage: {{directory: {disks}, node_rate: {LINK}B}}"
    plain = start_of_ranks(run_job(lab, nodes, "", "true"))
    events = run_job(lab, nodes, f"{data}\n{stage}\n", UNTIL_COMPLETE)
    staged = [one for one in events if one["kind"] == "staged" and one["bytes"] > 0]
    assert len(staged) == nodes
    print("  ", [(round(one["seconds"], 1), one["received"]) for one in staged])
    seconds = max(one["seconds"] for one in staged)
    started = start_of_ranks(events)
    starts.append((started - plain) / seconds)
    print(f"   the last rank started after {started:.1f} s, without staging after {plain:.1f} s")
    return seconds


def simulated(nodes: int) -> float:
    """Seconds for 2 GB."""
    subprocess.run([REPOSITORY / "script/build", "broadcast_scaling_bench"], check=True, stdout=subprocess.DEVNULL)
    command = [BIN / "broadcast_scaling_bench", f"--benchmark_filter=2_gb/{nodes}", "--benchmark_format=json"]
    (row,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["benchmarks"]
    return row["seconds"]


def sbcast(lab: Lab, nodes: int, source: Path, disks: str) -> float:
    names = " ".join(sorted(path.name for path in source.iterdir()))
    loop = f"for f in {names}; do sbcast -f {source}/$f {disks}/$f || exit 1; done"
    began = time.perf_counter()
    lab.run("salloc", "--quiet", f"-N{nodes}", f"--cpus-per-task={CORES}", "bash", "-c", loop, timeout=580)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="one way: stoker, 'srun cp', sbcast or 'srun rsync'")
    options = parser.parse_args()
    nodes = options.nodes
    disks = f"/dev/shm/stoker-bench-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="lb-", dir="/tmp") as name:
        box = Path(name)
        box.chmod(0o755)
        make_dataset(box, options.gigabytes, "32MB")
        size = sum(path.stat().st_size for path in (box / "data").iterdir())
        source = Source(box / "data", box / "source", "-o", "direct_io")
        mapped = Source(box / "data", box / "mapped")  # sbcast maps its file, and reads it once
        os.environ["STOKER_LAB_DIR"] = str(box / "lab")
        lab = start_lab(f"b{os.getpid()}")
        seconds: dict[str, list[float]] = {}
        reads: dict[str, list[float]] = {}
        starts: list[float] = []
        ways = {
            "stoker": lambda: broadcast(lab, nodes, source.mount, disks, starts),
            "srun cp": lambda: on_all_nodes(lab, nodes, f"cp -r {source.mount} {disks}/copy"),
            "sbcast": lambda: sbcast(lab, nodes, mapped.mount, disks),
            "srun rsync": lambda: on_all_nodes(lab, nodes, f"rsync -a {source.mount}/ {disks}/copy/"),
        }
        ways = {name: way for name, way in ways.items() if options.only in (None, name)}
        try:
            for _ in range(options.rounds):
                for way, measure in ways.items():
                    on_all_nodes(lab, nodes, f"rm -rf {disks}; mkdir {disks}")
                    before = source.bytes_read() + mapped.bytes_read()
                    seconds.setdefault(way, []).append(measure())
                    read = source.bytes_read() + mapped.bytes_read() - before
                    reads.setdefault(way, []).append(read / size)
                    print(f"{way}: {seconds[way][-1]:.1f} s, {reads[way][-1]:.3f} x the dataset read", flush=True)
            on_all_nodes(lab, nodes, f"rm -rf {disks}")
        finally:
            stop_lab(lab.name)
            source.close()
            mapped.close()
    bound = size / SOURCE
    print(f"\nbound: {bound:.1f} s ({size / 1e9:.2f} GB at {SOURCE / 1e6:.0f} MB/s)")
    for way in ways:
        print(f"{way}: {median_interval(seconds[way])} s, reads {median_interval(reads[way])} x the dataset")
    of_bound = median_interval([one / bound for one in seconds["stoker"]])
    good = check_limit("time of the bound", of_bound, LIMIT)
    good &= check_limit(
        "bytes read of the dataset",
        Interval(max(reads["stoker"]), min(reads["stoker"]), max(reads["stoker"])),
        MAX_READ,
    )
    good &= check_limit("start of the ranks, of the time of staging", median_interval(starts), MAX_FIRST)
    if options.gigabytes == 2:
        expected = simulated(nodes)
        off = median_interval([abs(one / expected - 1) for one in seconds["stoker"]])
        print(f"simulation: {expected:.1f} s")
        good &= check_limit("difference to the simulation", off, MAX_OFF)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
