"""Ten thousand tasks on a cluster with Slurm's usual limits: MaxArraySize 1 001, MaxJobCount 10 000."""

import json
import os
import re
from pathlib import Path

import pytest
from running import wait_until
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.soak, pytest.mark.timeout(3600)]

TASKS = 10_000


@pytest.fixture
def usual(make_lab):
    lab = make_lab(f"u{os.getpid()}", "--max-array-size", "1001", "--mode", "processes")
    folder = lab.shared / "project"
    folder.mkdir()
    return Runs(lab, folder)


def wait_for_empty_queue(runs: Runs) -> None:
    wait_until(lambda: runs.lab.run("squeue", "--noheader").out == "", "the queue is empty", timeout=3000, every=2)


def test_a_farm_runs_ten_thousand_tasks_in_few_jobs(usual: Runs):
    config = usual.lab.run("scontrol", "show", "config").out
    assert re.search(r"MaxArraySize += 1001\n", config)
    assert re.search(r"MaxJobCount += 10000\n", config)
    (usual.folder / "tasks.txt").write_text("".join(f"true {n}\n" for n in range(TASKS)))
    words = ("farm", "tasks.txt", "--time", "30m", "--cpus-per-node", "2", "--allocations", "3", "--json")
    sent = json.loads(usual.stoker(*words).out)
    assert (sent["tasks"], sent["allocations"]) == (TASKS, 3)
    wait_for_empty_queue(usual)
    status = json.loads(usual.stoker("farm", "tasks.txt", "--status", "--json").out)
    assert (status["done"], status["waiting"], status["claimed"]) == (TASKS, 0, 0)
    assert len(list((usual.folder / "tasks.farm").glob("**/*.*"))) < 30


def test_an_array_of_ten_thousand_tasks_is_refused_as_single_jobs_and_runs_in_bundles(usual: Runs):
    (usual.folder / "configs.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(TASKS)))
    (usual.folder / "job.yaml").write_text(
        'name: many\nrun: "true ${params.n}"\nresources: {nodes: 1, ranks_per_node: 1, cpus_per_rank: 1, time: 6m}\n'
        "array: {over: configs.csv, at_once: 8, bundle: 1}\n"
    )
    refused = usual.stoker("submit", "job.yaml", "--force", code=2).err
    assert "10 000 tasks need 10 000 jobs, but the queue of all users holds fewer than 10000 (MaxJobCount)" in refused
    cure = re.search(r"try: (--set array\.bundle=\d+)", refused)
    assert cure, refused
    dry = usual.stoker("submit", "job.yaml", "--force", "--dry-run", *cure[1].split()).out
    assert "--array=1-1000%8" in dry
    sent = json.loads(usual.stoker("submit", "job.yaml", "--force", "--json", "--set", "array.bundle=8").out)
    assert sent["tasks"] == TASKS
    arrays = usual.lab.run("squeue", "--noheader", "--format=%F").out.split()
    assert len(set(arrays)) == 2  # 1 250 jobs
    assert usual.stoker("wait", Path(sent["folder"]), timeout=3000, code=None).out.endswith(
        f"done ({TASKS} of {TASKS} done)\n"
    )
    assert len(list((Path(sent["folder"]) / "tasks").glob("*.jsonl"))) == TASKS
