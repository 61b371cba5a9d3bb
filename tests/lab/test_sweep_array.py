"""`stoker sweep run` in the tasks of an array: one study on a shared folder, used from several nodes of a real cluster."""

import json

import pytest
from labs import BIN
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")

SWEEP = """
space: {lr: {min: 0.001, max: 1, log: true}, width: [16, 32]}
objectives: {loss: minimize}
sampler: tpe
trials: 12
"""
SCRIPT = f"""#!/bin/bash
#SBATCH --array=1-14%4
#SBATCH --cpus-per-task=1
#SBATCH --output=task-%a.out
{BIN}/stoker sweep run lr.yaml --trials 1 -- sh -c 'sleep 0.3; echo loss: {{lr}}'
"""


def trials(runs: Runs) -> list[dict]:
    return json.loads(runs.stoker("sweep", "show", "lr.study", "--top", "0", "--json").out)


def test_the_tasks_of_an_array_share_a_study(runs: Runs):
    (runs.folder / "lr.yaml").write_text(SWEEP)
    (runs.folder / "train.sh").write_text(SCRIPT)
    runs.lab.run("sbatch", "train.sh", cwd=runs.folder)
    wait_until(lambda: runs.lab.run("squeue", "--noheader").out == "", "the queue is empty")
    found = trials(runs)
    assert sorted(trial["number"] for trial in found) == list(range(12))
    assert {trial["state"] for trial in found} == {"complete"}
    for trial in found:
        assert trial["values"]["loss"] == pytest.approx(trial["params"]["lr"])
    assert len({(trial["params"]["lr"], trial["params"]["width"]) for trial in found}) == 12
    # Two tasks came when all trials had started.
    logs = [(runs.folder / f"task-{task}.out").read_text() for task in range(1, 15)]
    assert sum("lr: no trial is left" in log for log in logs) == 2


def test_a_cancelled_task_fails_its_trial(runs: Runs):
    (runs.folder / "lr.yaml").write_text(SWEEP)
    (runs.folder / "train.sh").write_text(SCRIPT.replace("1-14%4", "1-1").replace("sleep 0.3", "sleep 600"))
    job = runs.lab.run("sbatch", "--parsable", "train.sh", cwd=runs.folder).out.strip()
    wait_until(lambda: (runs.folder / "lr.study/study.json").exists() and trials(runs), "the trial has started")
    runs.lab.run("scancel", "--signal=TERM", "--full", job)
    wait_until(lambda: trials(runs)[0]["state"] != "running", "the trial has ended")
    (trial,) = trials(runs)
    assert (trial["state"], trial["message"]) == ("failed", "stopped by SIGTERM")
