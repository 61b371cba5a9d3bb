"""`stoker sweep FILE` on a real cluster: trials as jobs of the queue, as steps of one allocation, as batch scripts; ends of trials
that the scheduler knows."""

import json
import subprocess

import pytest
from labs import BIN
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")

SWEEP = """
job: job.yaml
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
TRAIN = "sleep 0.5; hostname; echo loss: $1\n"


@pytest.fixture
def sweep(runs: Runs):
    def write(more: str = "", train: str = TRAIN) -> None:
        (runs.folder / "lr.yaml").write_text(SWEEP + more)
        (runs.folder / "job.yaml").write_text(JOB)
        (runs.folder / "train.sh").write_text(train)

    def trials() -> list[dict]:
        if not (runs.folder / "lr.study/study.json").exists():
            return []
        return json.loads(runs.stoker("sweep", "show", "lr.study", "--top", "0", "--json").out)

    runs.write, runs.trials = write, trials
    return runs


def check_complete(sweep, count: int) -> None:
    found = sweep.trials()
    assert sorted(trial["number"] for trial in found) == list(range(count))
    for trial in found:
        assert (trial["state"], trial["attempt"]) == ("complete", 0)
        assert trial["values"]["loss"] == pytest.approx(trial["params"]["lr"])


def test_trials_are_jobs_of_the_queue(sweep):
    sweep.write("trials: 8\nat_once: 4\n")
    done = sweep.stoker("sweep", "lr.yaml")
    assert done.out.startswith("lr: 8 complete trials\n")
    check_complete(sweep, 8)
    runs = [path for path in (sweep.folder / "lr.study/runs").iterdir() if path.is_dir()]
    assert len(runs) == 8
    assert all((run / "attempts/1/job.sbatch").exists() for run in runs)


def test_an_allocation_runs_trials_as_steps_on_its_nodes(sweep):
    sweep.write("trials: 6\nat_once: 2\n")
    (sweep.folder / "all.sh").write_text(
        f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --cpus-per-task=1 --output=all.out\n{BIN}/stoker sweep lr.yaml\n"
    )
    sweep.lab.run("sbatch", "all.sh", cwd=sweep.folder)
    wait_until(lambda: sweep.lab.run("squeue", "--noheader").out == "", "the queue is empty")
    assert "lr: 6 complete trials\n" in (sweep.folder / "all.out").read_text()
    check_complete(sweep, 6)
    logs = [path.read_text() for path in (sweep.folder / "lr.study/runs").glob("*/attempts/1/rank-0000.log")]
    assert len({log.split()[0] for log in logs}) == 2  # both nodes


def test_a_batch_script_is_a_trial(sweep):
    sweep.write("trials: 3\nat_once: 2\narguments: ['{lr}', 'w={params.width}']\n".replace("job.yaml", "job.sh"))
    (sweep.folder / "job.sh").write_text('#!/bin/bash\n#SBATCH --time=5\necho "got $2"\necho "loss: $1"\n')
    done = sweep.stoker("sweep", "lr.yaml", "--job", "job.sh")
    assert done.out.startswith("lr: 3 complete trials\n")
    check_complete(sweep, 3)


def test_each_seed_of_a_trial_is_a_job_of_a_batch_script(sweep):
    sweep.write("trials: 2\nat_once: 4\nseeds: [1, 5]\narguments: ['{seed}', '{lr}']\n".replace("job.yaml", "job.sh"))
    (sweep.folder / "job.sh").write_text('#!/bin/bash\n#SBATCH --time=5\necho "loss: $1"\n')
    done = sweep.stoker("sweep", "lr.yaml", "--job", "job.sh")
    assert done.out.startswith("lr: 2 complete trials\n")
    for trial in sweep.trials():
        assert trial["values"] == {"loss": 3}
        assert trial["seeds"] == {"1": {"loss": 1}, "5": {"loss": 5}}


def test_a_cancelled_trial_failed_and_a_requeued_one_continues(sweep):
    sweep.write(
        "trials: 3\nat_once: 2\n", train=f"while [ ! -e {sweep.folder}/go ]; do sleep 0.2; done; echo loss: $1\n"
    )
    words = [BIN / "stoker", "sweep", "lr.yaml"]
    driver = subprocess.Popen(words, cwd=sweep.folder, env=sweep.lab.env, stderr=subprocess.PIPE, text=True)

    def running() -> list[str]:
        return sweep.lab.run("squeue", "--noheader", "--states=R", "--format=%i").out.split()

    wait_until(lambda: len(running()) == 2, "two jobs run")
    first, second = sorted(running())
    sweep.lab.run("scancel", first)
    sweep.lab.run("scontrol", "requeue", second)
    (sweep.folder / "go").touch()
    _, err = driver.communicate(timeout=180)
    assert driver.returncode == 0, err
    states = [trial["state"] for trial in sorted(sweep.trials(), key=lambda trial: trial["number"])]
    assert sorted(states) == ["complete", "complete", "complete", "failed"]  # a failed one is replaced
    assert {trial["attempt"] for trial in sweep.trials()} == {0}
