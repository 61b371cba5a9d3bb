"""`stoker sweep FILE` inside an allocation with trials of several nodes: each on its own nodes, never more than fit, and a driver that
is killed."""

import json
from collections import Counter

import pytest
from labs import BIN
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")

SWEEP = """
job: job.yaml
space: {lr: {min: 0.001, max: 1, log: true}}
objectives: {loss: minimize}
sampler: sobol
"""
JOB = """
name: toy
run: sh train.sh ${params.lr}
params: {lr: 0.1}
resources: {nodes: 2, ranks_per_node: 1, cpus_per_rank: 2, time: 5m}
"""
# Each rank notes its node, and how many ranks of all trials run on it.
TRAIN = """
mkdir -p at/$SLURMD_NODENAME/$STOKER_RUN_ID
echo $(ls at/$SLURMD_NODENAME | wc -l) >> together
echo $STOKER_RUN_ID $SLURMD_NODENAME $WORLD_SIZE >> ranks
sleep 2
rmdir at/$SLURMD_NODENAME/$STOKER_RUN_ID
echo loss: $1
"""


@pytest.fixture
def sweep(runs: Runs):
    def write(more: str = "", job: str = JOB) -> None:
        (runs.folder / "lr.yaml").write_text(SWEEP + more)
        (runs.folder / "job.yaml").write_text(job)
        (runs.folder / "train.sh").write_text(TRAIN)

    runs.write = write
    runs.trials = lambda: json.loads(runs.stoker("sweep", "show", "lr.study", "--top", "0", "--json").out)
    return runs


def check(sweep: Runs, count: int, together: int) -> None:
    found = sweep.trials()
    assert sorted(trial["number"] for trial in found) == list(range(count))
    assert {(trial["state"], trial["attempt"]) for trial in found} == {("complete", 0)}
    ranks = [line.split() for line in (sweep.folder / "ranks").read_text().splitlines()]
    assert set(Counter(run for run, _, _ in ranks).values()) == {2}
    assert len({(run, node) for run, node, _ in ranks}) == 2 * count
    assert {size for _, _, size in ranks} == {"2"}
    assert {node for _, node, _ in ranks} == {"n1", "n2", "n3", "n4"}
    assert max(map(int, (sweep.folder / "together").read_text().split())) == together


def test_trials_of_two_nodes_share_an_allocation_of_four(sweep):
    sweep.write("trials: 5\nat_once: 8\n")
    command = ["salloc", "--quiet", "--nodes=4", "--exclusive", "--time=10", f"{BIN}/stoker", "sweep", "lr.yaml"]
    done = sweep.lab.run(*command, cwd=sweep.folder)
    assert "at_once: 2 trials of 2 nodes at a time fit into the allocation, not 8\n" in done.err
    assert done.out.startswith("lr: 5 complete trials\n")
    check(sweep, 5, together=1)


@pytest.mark.soak
def test_several_trials_fit_on_the_same_nodes(sweep):
    sweep.write("trials: 8\nat_once: 4\n", job=JOB.replace("cpus_per_rank: 2", "cpus_per_rank: 1"))
    command = ["salloc", "--quiet", "--nodes=4", "--exclusive", "--time=10", f"{BIN}/stoker", "sweep", "lr.yaml"]
    done = sweep.lab.run(*command, cwd=sweep.folder)
    assert "fit into" not in done.err
    check(sweep, 8, together=2)


@pytest.mark.soak
def test_after_kill_9_of_the_driver_each_trial_of_two_nodes_has_run_once(sweep):
    sweep.write("trials: 4\nat_once: 4\n")
    script = f"""#!/bin/bash
{BIN}/stoker sweep lr.yaml & driver=$!
while [ "$(ls lr.study/runs/*/attempts/1/rank-0000.log | wc -l)" -lt 2 ]; do sleep 0.1; done
kill -9 $driver
{BIN}/stoker sweep lr.yaml
"""
    (sweep.folder / "batch.sh").write_text(script)
    sweep.lab.run("sbatch", "--nodes=4", "--exclusive", "--time=10", "batch.sh", cwd=sweep.folder)
    wait_until(lambda: sweep.lab.run("squeue", "--noheader").out == "", "the queue is empty")
    check(sweep, 4, together=1)


@pytest.mark.parametrize(
    ("words", "job", "error"),
    [
        (["--nodes=2"], JOB.replace("nodes: 2", "nodes: 3"), "a trial needs 3, and the allocation has 2 (place: here)"),
        (["--nodes=2"], JOB.replace("cpus_per_rank: 2", "cpus_per_rank: 64"), "a trial needs 64 cores on each node"),
    ],
)
def test_a_trial_that_does_not_fit_is_refused_first(sweep, words, job, error):
    sweep.write("trials: 1\n", job=job)
    command = ["salloc", "--quiet", *words, "--exclusive", f"{BIN}/stoker", "sweep", "lr.yaml"]
    done = sweep.lab.run(*command, cwd=sweep.folder, code=2)
    assert error in done.err
    assert not (sweep.folder / "lr.study").exists()
