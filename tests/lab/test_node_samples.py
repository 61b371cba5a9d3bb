"""One process of the run samples each of its nodes, whichever launcher started the ranks, and ends with the run."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY
from running import wait_until
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.timeout(300)]

BUSY = """
import os
while not os.path.exists("go"): sum(range(100_000))
"""


def submit(runs: Runs) -> None:
    runs.submit(env={"PATH": f"{Path(sys.executable).parent}:{runs.lab.env['PATH']}"})


def rows(runs: Runs, node: int) -> list[dict[str, float]]:
    file = runs.run / f"attempts/1/system-{node:04}.csv"
    if not file.exists():
        return []
    with file.open() as lines:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(lines)]


def events(runs: Runs, kind: str) -> list[dict]:
    files = (runs.run / "attempts/1").glob("events-*.jsonl")
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [event for event in found if event["kind"] == kind]


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_both_nodes_are_sampled_and_shown(runs: Runs, launcher: str):
    program = runs.folder / "busy.py"
    program.write_text(BUSY)
    runs.job(f"{sys.executable} busy.py", "nodes: 2, ranks_per_node: 2, cpus_per_rank: 1", f"launcher: {launcher}\n")
    submit(runs)
    wait_until(lambda: min(len(rows(runs, node)) for node in (0, 1)) >= 3, "both nodes have samples", 60)
    nodes = runs.status()["node_use"]
    assert [(node["node"], node["host"]) for node in nodes] == [(0, "n1"), (1, "n2")]
    for node in nodes:
        assert node["cpu_cores"] > 0.1
        assert node["memory_bytes"] > 1e6
        assert node["cpus"] >= 1
        assert node["age_s"] < 30
    top = json.loads(runs.stoker("top", "last", "--json").out)
    assert [node["host"] for node in top["nodes"]] == ["n1", "n2"]
    assert all(rank["memory_bytes"] > 1e5 for rank in top["ranks"])
    assert {"n1", "n2"} <= {line.split(" ")[0] for line in runs.stoker("top", "last").out.splitlines()}
    (runs.folder / "go").touch()
    runs.wait()

    names = sorted(file.name for file in (runs.run / "attempts/1").glob("system-*"))
    assert names == ["system-0000.csv", "system-0001.csv"]
    for node in (0, 1):
        own = {f"rank{rank}.cpu_cores" for rank in range(4) if f"rank{rank}.cpu_cores" in rows(runs, node)[0]}
        assert own == {f"rank{2 * node}.cpu_cores", f"rank{2 * node + 1}.cpu_cores"}
        last = rows(runs, node)[-1]
        assert last["ranks.cpu_s"] > 0.2
        # The bound is 0.5 % of a core; a sample of this machine costs far less.
        assert last["sampler_cpu_s"] < 0.25
        times = [row["time"] for row in rows(runs, node)]
        assert times == sorted(times)
    assert sorted((event["node"], event["host"]) for event in events(runs, "node_sampled")) == [(0, "n1"), (1, "n2")]
    (report,) = json.loads(runs.stoker("report", "last", "--format", "json").out)["runs"]
    assert [node["host"] for node in report["nodes"]] == ["n1", "n2"]
    assert all(node["ranks_cpu_s"] > 0.2 for node in report["nodes"])
    assert 0 < report["efficiency"]["cpu_share"] <= 1.1
    assert report["efficiency"]["memory_node"] in ("n1", "n2")
    text = runs.stoker("report", "last", "--format", "text").out
    assert "\nnodes (attempts/*/system-*.csv)\n" in text
    assert "\nefficiency (attempts/*/system-*.csv, job.yaml)\n" in text


def test_a_peer_continues_the_samples_of_a_rank_that_ended(runs: Runs):
    runs.job(
        "while [ ! -e go$RANK ]; do sleep 0.1; done",
        "nodes: 1, ranks_per_node: 2, cpus_per_rank: 1",
        "record: {sample_every: 200ms}\n",
    )
    runs.submit()
    wait_until(lambda: len(rows(runs, 0)) >= 2, "samples", 60)
    (runs.folder / "go0").touch()

    def after() -> list[dict[str, float]]:
        return [row for row in rows(runs, 0) if math.isnan(row["rank0.rss_bytes"])]

    wait_until(lambda: len(after()) >= 2, "samples without rank 0", 60)
    (runs.folder / "go1").touch()
    runs.wait()
    assert after()[1]["rank1.rss_bytes"] > 0
    assert len(events(runs, "node_sampled")) == 2


def test_gpus_of_both_nodes_and_their_errors_are_recorded(runs: Runs):
    library = runs.folder / "nvml/libnvidia-ml.so.1"
    library.parent.mkdir()
    source = REPOSITORY / "tests/programs/fake_nvml.c"
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", library, source], check=True)
    gpus = runs.folder / "gpus"
    gpus.write_text("gpus 2\n")
    variables = json.dumps({"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML": str(gpus)})
    runs.job(
        "while [ ! -e go ]; do sleep 0.1; done",
        "nodes: 2, ranks_per_node: 1, cpus_per_rank: 1",
        f"environment: {{variables: {variables}}}\nrecord: {{sample_every: 200ms}}\n",
    )
    runs.submit()
    wait_until(lambda: len(events(runs, "gpu_found")) == 4, "the GPUs of both nodes are recorded", 60)
    wait_until(lambda: all(rows(runs, node) for node in (0, 1)), "the first samples", 60)
    gpus.write_text("gpus 2\n0.energy 9000\nxid.1 79\n")
    wait_until(lambda: len(events(runs, "gpu_xid")) == 2, "the error is recorded on both nodes", 60)
    wait_until(lambda: all(rows(runs, node)[-1]["gpu0.energy_j"] == 2 for node in (0, 1)), "energy", 60)
    top = json.loads(runs.stoker("top", "last", "--json").out)
    assert [(gpu["node"], gpu["gpu"], gpu["xids"]) for gpu in top["gpus"]] == [
        (0, 0, []),
        (0, 1, [79]),
        (1, 0, []),
        (1, 1, [79]),
    ]
    assert "GPU 1 of n2  93 % busy" in runs.stoker("top", "last").out
    (runs.folder / "go").touch()
    runs.wait()
    assert "GPU 1 (n2, 00000000:3C:00.0) reported Xid 79: it has fallen off the bus" in runs.batch_log()
    (report,) = json.loads(runs.stoker("report", "last", "--format", "json").out)["runs"]
    assert [(node["host"], node["energy"]["gpu_j"]) for node in report["nodes"]] == [("n1", 2), ("n2", 2)]


@pytest.mark.parametrize("launcher", ["srun", pytest.param("torchrun", marks=pytest.mark.soak)])
def test_nothing_is_left_when_the_supervisor_is_killed(runs: Runs, launcher: str):
    runs.job("sleep 300", "nodes: 2, ranks_per_node: 1, cpus_per_rank: 1", f"launcher: {launcher}\n")
    submit(runs)
    wait_until(lambda: min(len(rows(runs, node)) for node in (0, 1)) >= 2, "both nodes have samples", 60)
    ours = set(runs.processes("stoker")) | set(runs.processes("sleep"))
    assert len(runs.processes("sleep")) == 2
    (supervisor,) = {event["pid"] for event in events(runs, "attempt_started")}
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ours), "no process is left", 60)
