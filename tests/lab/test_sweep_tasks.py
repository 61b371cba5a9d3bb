"""`stoker sweep FILE` with `place: array` on a real cluster: one array, a cap that changes while it runs, tasks that are requeued,
cancelled and killed, and trials that fail."""

import json
import sys
from collections import Counter

import pytest
from labs import BIN
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")

SWEEP = """
job: job.yaml
place: array
space: {lr: {min: 0.001, max: 1, log: true}, params.width: [16, 32]}
objectives: {loss: minimize}
sampler: sobol
"""
JOB = """
name: toy
run: sh train.sh ${params.lr} ${params.width}
params: {lr: 0.1, width: 16}
resources: {nodes: 1, ranks_per_node: 1, cpus_per_rank: 1, time: 5m}
"""


@pytest.fixture
def sweep(runs: Runs):
    def write(more: str, train: str) -> None:
        (runs.folder / "lr.yaml").write_text(SWEEP + more)
        (runs.folder / "job.yaml").write_text(JOB)
        (runs.folder / "train.sh").write_text(train + "echo $1 >> ends\necho loss: $1\n")

    runs.write = write
    return runs


def submit(sweep: Runs, *words: str) -> dict:
    return json.loads(sweep.stoker("sweep", "lr.yaml", "--json", *words).out)


def trials(sweep: Runs) -> list[dict]:
    return json.loads(sweep.stoker("sweep", "show", "lr.study", "--top", "0", "--json").out)


def wait_for_queue(sweep: Runs) -> None:
    wait_until(lambda: sweep.lab.run("squeue", "--noheader").out == "", "the queue is empty")


def running(sweep: Runs) -> list[str]:
    return sweep.lab.run("squeue", "--noheader", "--array", "--states=R", "--format=%i").out.split()


def states(sweep: Runs) -> Counter:
    return Counter(trial["state"] for trial in trials(sweep))


def check_each_once(sweep: Runs, count: int) -> None:
    found = [trial for trial in trials(sweep) if trial["state"] == "complete"]
    assert sorted(trial["number"] for trial in found) == list(range(count))
    assert {trial["attempt"] for trial in found} == {0}
    for trial in found:
        assert trial["values"]["loss"] == pytest.approx(trial["params"]["lr"])
    ends = Counter((sweep.folder / "ends").read_text().split())
    assert sorted(map(float, ends)) == sorted(trial["params"]["lr"] for trial in found)
    assert set(ends.values()) == {1}
    assert len([run for run in (sweep.folder / "lr.study/runs").iterdir() if run.is_dir()]) == count


def test_trials_are_tasks_of_one_array_whose_cap_changes(sweep):
    sweep.write("trials: 6\nat_once: 1\n", "sleep 2\n")
    first = sweep.stoker("sweep", "lr.yaml").out
    job = first.split()[2]
    assert first == f"lr: array {job} of 6 tasks, 1 at once\n  next  stoker sweep status lr.yaml\n"
    wait_until(lambda: running(sweep), "a task runs")
    again = sweep.stoker("sweep", "lr.yaml", "--at-once", "4").out
    assert again == f"lr: array {job} is in the queue, 4 at once\n  next  stoker sweep status lr.yaml\n"
    assert "ArrayTaskThrottle=4 " in sweep.lab.run("scontrol", "--oneliner", "show", "job", job).out
    wait_for_queue(sweep)
    check_each_once(sweep, 6)
    assert sweep.stoker("sweep", "lr.yaml").out.startswith("lr: no trial is left\n")


def interrupt(sweep: Runs, *command: str) -> None:
    """Two of three trials of an array: the first is requeued, the second gets the command and loses its task."""
    sweep.write("trials: 3\nat_once: 2\n", "sleep 6\n")
    assert submit(sweep)["tasks"] == 3
    # Before, a task that is interrupted may leave a folder that is no run yet.
    logs = sweep.folder / "lr.study/runs"
    wait_until(lambda: len(list(logs.glob("*/attempts/1/rank-0000.log"))) == 2, "two trials run")
    requeued, lost = sorted(running(sweep))
    sweep.lab.run("scontrol", "requeue", requeued)
    sweep.lab.run(*command, lost)
    wait_for_queue(sweep)
    assert states(sweep)["complete"] == 2
    assert submit(sweep)["tasks"] == 1
    wait_for_queue(sweep)
    check_each_once(sweep, 3)


def test_a_requeued_and_a_cancelled_task_leave_their_trials_to_the_next_tasks(sweep):
    interrupt(sweep, "scancel")


# Whether a process of a different node is gone shows after two minutes.
@pytest.mark.soak
def test_the_trial_of_a_killed_task_is_continued(sweep):
    interrupt(sweep, "scancel", "--signal=KILL", "--full")


def test_a_task_runs_all_seeds_of_its_trial(sweep):
    sweep.write("trials: 2\nat_once: 2\nseeds: [1, 5]\n", "")
    assert submit(sweep)["tasks"] == 2
    wait_for_queue(sweep)
    for trial in trials(sweep):
        assert trial["state"] == "complete"
        assert set(trial["seeds"]) == {"1", "5"}
    assert set(Counter((sweep.folder / "ends").read_text().split()).values()) == {2}


def test_a_task_asks_for_another_trial_after_one_that_failed(sweep):
    sweep.write("trials: 3\nat_once: 3\n", "mkdir failed-once 2>/dev/null && exit 7\n")
    submit(sweep)
    wait_for_queue(sweep)
    assert states(sweep) == {"complete": 3, "failed": 1}


def test_what_cannot_be_an_array_is_refused(sweep):
    sweep.write("", "")
    assert sweep.stoker("sweep", "lr.yaml", code=2).err == (
        "lr.study: new study\nlr: an array needs the number of trials (place: array)\n  try: trials: 50\n"
    )
    sweep.write("trials: 2\n", "")
    (sweep.folder / "lr.yaml").rename(sweep.folder / "two.yaml")
    (sweep.folder / "job.yaml").write_text(JOB.replace("nodes: 1", "nodes: 2"))
    assert (
        "runs a trial on one node, not 2 (place: array)\n  try: place: jobs\n"
        in sweep.stoker("sweep", "two.yaml", code=2).err
    )
    (sweep.folder / "job.sh").write_text("#!/bin/bash\n#SBATCH --time=5\ntrue\n")
    refused = sweep.stoker("sweep", "two.yaml", "--job", "job.sh", code=2).err
    assert "job.sh: a batch script runs only as a job (place: array)\n" in refused
    (sweep.folder / "job.yaml").write_text(JOB)
    outside = sweep.lab.run(f"{BIN}/stoker", "sweep", "two.yaml", "--task", cwd=sweep.folder, code=None)
    assert "this is no task of an array" in outside.err


@pytest.mark.soak
@pytest.mark.needs("optuna")
@pytest.mark.parametrize("place", ["array", "jobs"])
def test_trials_of_a_storage_of_optuna_are_tasks_or_jobs(sweep, place):
    address = f"journal://{sweep.folder}/studies.log"
    sweep.write(f"trials: 3\nat_once: 2\nstorage: {address}\n", "sleep 1\n")
    sweep.lab.env["STOKER_PYTHON"] = sys.executable
    sweep.stoker("sweep", "lr.yaml", "--place", place)
    wait_for_queue(sweep)
    shown = sweep.stoker("sweep", "show", f"{address}#lr", "--top", "0", "--json").out
    found = [trial for trial in json.loads(shown) if trial["state"] == "complete"]
    assert len(found) == 3
    ends = (sweep.folder / "ends").read_text().split()
    assert sorted(map(float, ends)) == sorted(trial["params"]["lr"] for trial in found)
    assert len([run for run in (sweep.folder / "lr.study/runs").iterdir() if run.is_dir()]) == 3
