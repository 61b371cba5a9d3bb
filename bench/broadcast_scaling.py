"""A broadcast of 200 TB to 16 to 1 024 nodes, simulated with the scheduling code of the nodes: its time beside the bound, the share of
the time until all nodes have the first piece, and how often the source is read. Deterministic. The table is in docs/commands/stage.md.

    bench/broadcast_scaling.py"""

import json
import subprocess
import sys

from measure import BIN, REPOSITORY, Interval, check_limit


def main() -> None:
    subprocess.run([REPOSITORY / "script/build", "broadcast_scaling_bench"], check=True, stdout=subprocess.DEVNULL)
    command = [BIN / "broadcast_scaling_bench", "--benchmark_filter=200_tb", "--benchmark_format=json"]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["benchmarks"]
    for row in rows:
        _, nodes, source, *_ = row["name"].split("/")
        shown = f"{row['hours']:.2f} h, {row['of_bound']:.3f} x the bound, first piece after {row['first_piece']:.1%}"
        print(f"{nodes} nodes, source {source} GB/s: {shown}")
    is_met = True
    for what, key, limit in (
        ("time of the bound", "of_bound", 1.3),
        ("first piece, share of the time", "first_piece", 0.1),
        ("readings of each piece", "read", 1.0),
    ):
        values = [row[key] for row in rows]
        is_met &= check_limit(what, Interval(max(values), min(values), max(values)), limit)
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
