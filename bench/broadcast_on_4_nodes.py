"""Staging a dataset on four nodes of a lab: seconds until all have it, and bytes read from the shared filesystem, beside `srun cp`, an
`sbcast` loop and `srun rsync`. The rates are fixed, so that this machine's cores do not decide: the source is a FUSE mount of 150 MB/s
without a page cache, the link of a node carries 300 MB/s in each direction, its disk is a tmpfs. The links of the peers have no limit.
The bound: the source must be read once. The ranks start with the first shards; their delay is compared with the time of staging.

    bench/broadcast_on_4_nodes.py [--gigabytes 2] [--rounds 3] [--only WAY]"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cache_vs_rsync import make_dataset
from measure import REPOSITORY, Interval, check_limit, median_interval

sys.path.insert(0, str(REPOSITORY / "tests"))
from labs import Lab, start_lab, stop_lab

SOURCE, LINK = 150_000_000, 300_000_000
NODES = ("n1", "n2", "n3", "n4")
LIMIT = 1.3  # of the bound
MAX_READ = 1.02  # of the dataset's bytes
MAX_FIRST = 0.1  # of the time of staging
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


def on_all_nodes(lab: Lab, script: str) -> float:
    began = time.perf_counter()
    lab.run("srun", "--quiet", "-N4", "--ntasks-per-node=1", "bash", "-c", script, timeout=580)
    return time.perf_counter() - began


def broadcast(lab: Lab, source: Path, disks: str, starts: list[float]) -> float:
    """Seconds of staging on the slowest node. Appends to `starts` after which part of them the last rank has started."""
    data = f"data: {{train: {{source: {source}, place: local, start: first-shards}}}}"
    stage = f"stage: {{directory: {disks}, node_rate: {LINK}B}}"
    (lab.shared / "job.yaml").write_text(
        f'run: {{shell: "{UNTIL_COMPLETE}"}}\nresources: {{nodes: 4}}\n{data}\n{stage}\n'
    )
    lab.stoker("submit", "job.yaml", cwd=lab.shared)
    lab.stoker("wait", "last", cwd=lab.shared, timeout=580)
    events = [
        json.loads(line)
        for file in (lab.shared / "runs").glob("*/attempts/1/events-*.jsonl")
        for line in file.read_text().splitlines()
    ]
    staged = [one for one in events if one["kind"] == "staged" and one["bytes"] > 0]
    assert len(staged) == 4
    print("  ", [(round(one["seconds"], 1), one["received"]) for one in staged])
    (began,) = [one["time"] for one in events if one["kind"] == "attempt_started"]
    started = max(one["time"] for one in events if one["kind"] == "rank_started") - began
    seconds = max(one["seconds"] for one in staged)
    starts.append(started / seconds)
    print(f"   the last rank started after {started:.1f} s")
    subprocess.run(["rm", "-rf", lab.shared / "runs"], check=True)
    return seconds


def sbcast(lab: Lab, source: Path, disks: str) -> float:
    names = " ".join(sorted(path.name for path in source.iterdir()))
    loop = f"for f in {names}; do sbcast -f {source}/$f {disks}/$f || exit 1; done"
    began = time.perf_counter()
    lab.run("salloc", "--quiet", "-N4", "bash", "-c", loop, timeout=580)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="one way: stoker, 'srun cp', sbcast or 'srun rsync'")
    options = parser.parse_args()
    disks = f"/dev/shm/stoker-bench-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="lb-", dir="/tmp") as name:
        box = Path(name)
        box.chmod(0o755)
        make_dataset(box, options.gigabytes)
        size = sum(path.stat().st_size for path in (box / "data").iterdir())
        source = Source(box / "data", box / "source", "-o", "direct_io")
        mapped = Source(box / "data", box / "mapped")  # sbcast maps its file, and reads it once
        os.environ["STOKER_LAB_DIR"] = str(box / "lab")
        lab = start_lab(f"b{os.getpid()}")
        seconds: dict[str, list[float]] = {}
        reads: dict[str, list[float]] = {}
        starts: list[float] = []
        ways = {
            "stoker": lambda: broadcast(lab, source.mount, disks, starts),
            "srun cp": lambda: on_all_nodes(lab, f"cp -r {source.mount} {disks}/copy"),
            "sbcast": lambda: sbcast(lab, mapped.mount, disks),
            "srun rsync": lambda: on_all_nodes(lab, f"rsync -a {source.mount}/ {disks}/copy/"),
        }
        ways = {name: way for name, way in ways.items() if options.only in (None, name)}
        try:
            for _ in range(options.rounds):
                for way, measure in ways.items():
                    on_all_nodes(lab, f"rm -rf {disks}; mkdir {disks}")
                    before = source.bytes_read() + mapped.bytes_read()
                    seconds.setdefault(way, []).append(measure())
                    read = source.bytes_read() + mapped.bytes_read() - before
                    reads.setdefault(way, []).append(read / size)
                    print(f"{way}: {seconds[way][-1]:.1f} s, {reads[way][-1]:.3f} x the dataset read", flush=True)
            on_all_nodes(lab, f"rm -rf {disks}")
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
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
