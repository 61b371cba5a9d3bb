"""`stoker sweep FILE`: trials as runs of a job file on this machine; kill -9 of the driver, failures, pruning, limits."""

import json
import os
import re
import signal
import sys
import time

import pytest
from running import wait_until

SWEEP = """
job: job.yaml
space: {lr: {min: 0.001, max: 1, log: true}, params.width: [16, 32]}
objectives: {loss: minimize}
sampler: sobol
"""
JOB = f"""
name: toy
run: {sys.executable} train.py ${{params.lr}} ${{params.width}} ${{seed}}
params: {{lr: 0.1, width: 16}}
"""
TRAIN = """
import sys
print(f"loss: {float(sys.argv[1]) + int(sys.argv[2])}")
"""
# Continues where it was: its "checkpoint" is a file in the run's folder.
SLOW = """
import os, pathlib, sys, time
place = pathlib.Path(os.environ["STOKER_ATTEMPT_DIR"]).parent / "progress"
done = int(place.read_text()) if place.exists() else 0
for step in range(done, 12):
    time.sleep(0.1)
    place.with_suffix(".new").write_text(str(step + 1))
    place.with_suffix(".new").rename(place)
print("started at", done)
print(f"loss: {float(sys.argv[1])}")
"""


@pytest.fixture
def sweep(stoker):
    """`stoker sweep lr.yaml` in a folder with lr.yaml, job.yaml and train.py."""

    def write(more="", train=TRAIN, job=JOB, base=SWEEP):
        (stoker.folder / "lr.yaml").write_text(base + more)
        (stoker.folder / "job.yaml").write_text(job.replace(" ${seed}", ""))
        (stoker.folder / "train.py").write_text(train)

    def command(*words, **options):
        return stoker("sweep", "lr.yaml", *words, **options)

    def trials():
        return json.loads(stoker("sweep", "show", "lr.study", "--top", "0", "--json", code=0).out)

    command.write, command.trials, command.folder, command.stoker = write, trials, stoker.folder, stoker
    command.runs = lambda: sorted(p for p in (stoker.folder / "lr.study/runs").iterdir() if p.is_dir())
    command.start = lambda *words: stoker.start("sweep", "lr.yaml", *words)
    return command


def test_each_trial_is_a_run_with_its_parameters(sweep):
    sweep.write("trials: 4\nat_once: 2\n")
    done = sweep("--json", code=0)
    trials = sweep.trials()
    assert [trial["state"] for trial in trials] == ["complete"] * 4
    names = [json.loads((run / "run.json").read_text())["name"] for run in sweep.runs()]
    assert sorted(names) == ["lr-0", "lr-1", "lr-2", "lr-3"]
    for trial in trials:
        assert trial["values"]["loss"] == pytest.approx(trial["params"]["lr"] + trial["params"]["params.width"])
    summary = json.loads(done.out)
    best = min(trials, key=lambda trial: trial["values"]["loss"])
    assert (summary["complete"], summary["best"]["number"]) == (4, best["number"])
    assert "trial 0: complete, loss " in done.err
    assert sweep(code=0).out.startswith("lr: 4 complete trials\n  best  trial ")
    assert len(sweep.runs()) == 4


def test_at_once_limits_the_runs_and_may_change_while_they_run(sweep):
    sweep.write("trials: 6\nat_once: 1\n", train=SLOW)
    driver = sweep.start()
    wait_until(lambda: (sweep.folder / "lr.study/study.json").exists() and sweep.trials(), "a trial has started")
    assert sum(trial["state"] == "running" for trial in sweep.trials()) == 1
    sweep.write("trials: 6\nat_once: 3\n", train=SLOW)
    wait_until(lambda: sum(trial["state"] == "running" for trial in sweep.trials()) == 3, "three trials run")
    _, err = driver.communicate(timeout=120)
    assert driver.returncode == 0
    assert "at_once: 3\n" in err
    assert {trial["state"] for trial in sweep.trials()} == {"complete"}


def test_after_kill_9_of_the_driver_each_trial_has_run_exactly_once(sweep):
    sweep.write("trials: 8\nat_once: 3\n", train=SLOW)
    for _ in range(4):
        driver = sweep.start()
        time.sleep(0.7)
        driver.kill()
        driver.wait()
    sweep(code=0)
    trials = sweep.trials()
    assert sorted(trial["number"] for trial in trials) == list(range(8))
    assert {(trial["state"], trial["attempt"]) for trial in trials} == {("complete", 0)}
    names = [json.loads((run / "run.json").read_text())["name"] for run in sweep.runs()]
    assert sorted(names) == sorted(f"lr-{number}" for number in range(8))
    for run in sweep.runs():
        assert [folder.name for folder in (run / "attempts").iterdir() if folder.is_dir()] == ["1"]


def test_ctrl_c_stops_the_trials_and_the_next_call_resumes_them(sweep):
    sweep.write("trials: 2\nat_once: 2\n", train=SLOW)
    driver = sweep.start()
    files = sweep.folder / "lr.study/runs"
    wait_until(lambda: len(list(files.glob("*/attempts/progress"))) == 2, "both trials run")
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "stopping 2 trials, to be resumed by the next stoker sweep\n" in err
    assert [trial["state"] for trial in sweep.trials()] == ["running"] * 2
    again = sweep(code=0)
    assert again.err.count("resumed\n") == 2, again.err
    assert [trial["state"] for trial in sweep.trials()] == ["complete"] * 2, again.err
    for run in sweep.runs():
        assert sorted(folder.name for folder in (run / "attempts").iterdir() if folder.is_dir()) == ["1", "2"]
        assert "started at 0" not in (run / "attempts/2/rank-0000.log").read_text()


def test_a_failed_trial_is_retried_under_its_number(sweep):
    train = """
import os, pathlib, sys
first = pathlib.Path(sys.argv[1] + ".seen")
if not first.exists():
    first.write_text("")
    sys.exit(7)
print("loss: 1")
"""
    sweep.write("trials: 2\nretries: 1\n", train=train)
    done = sweep(code=0)
    trials = sweep.trials()
    assert [(trial["number"], trial["attempt"], trial["state"]) for trial in trials] == [
        (0, 1, "complete"),
        (1, 1, "complete"),
    ]
    assert re.search(r"trial 0: failed, rank 0 .*: exit code 7\n", done.err)
    names = [json.loads((run / "run.json").read_text())["name"] for run in sweep.runs()]
    assert sorted(names) == ["lr-0", "lr-0.1", "lr-1", "lr-1.1"]


def test_the_sweep_ends_when_trials_fail_in_turn(sweep):
    sweep.write("trials: 20\n", train="raise SystemExit('no data')")
    refused = sweep(code=2)
    assert "lr: the last 3 trials failed (--max-failed)\n  try: stoker sweep show lr.study\n" in refused.err
    assert len(sweep.trials()) == 3


def test_a_trial_without_its_objective_is_a_failed_one(sweep):
    sweep.write("trials: 1\n", train="print('accuracy: 1')")
    assert "trial 0: failed, no loss in its metrics and its log\n" in sweep("--max-failed", "1", code=2).err


def test_a_pruned_trial_is_stopped_and_recorded_as_pruned(sweep, module_environment):
    train = """
import stoker, sys, time
lr = float(sys.argv[1])
for step in range(40):
    stoker.log({"loss": lr}, step=step)
    time.sleep(0.05 if lr < 0.1 else 0.5)
"""
    base = (
        SWEEP.replace("sampler: sobol", "sampler: grid")
        .replace("{min: 0.001, max: 1, log: true}", "[0.01, 0.02, 0.03, 0.04, 0.05, 0.9]")
        .replace(", params.width: [16, 32]", "")
    )
    sweep.write("pruner: median\nat_once: 2\n", train=train, base=base)
    done = sweep(code=0, env=module_environment)
    trials = {trial["params"]["lr"]: trial for trial in sweep.trials()}
    assert trials[0.9]["state"] == "pruned"
    assert all(trials[lr]["state"] == "complete" for lr in (0.01, 0.02))
    assert "lr: 5 complete trials, 1 pruned\n" in done.out
    assert f"trial {trials[0.9]['number']}: pruned at step " in done.err


def test_one_process_at_a_time_drives_a_study(sweep):
    sweep.write("trials: 1\n", train=SLOW)
    driver = sweep.start()
    wait_until(lambda: (sweep.folder / "lr.study/driver.json").exists(), "the driver runs")
    refused = sweep(code=1)
    assert f"lr.study: process {driver.pid} on {os.uname().nodename} already drives its trials\n" in refused.err
    driver.communicate(timeout=60)
    assert driver.returncode == 0
    assert not (sweep.folder / "lr.study/driver.json").exists()


def test_trials_of_other_processes_are_left_to_them(sweep):
    sweep.write("trials: 3\n")
    sweep.stoker("sweep", "ask", "lr.yaml", code=0)
    sweep(code=0)
    states = {trial["number"]: trial["state"] for trial in sweep.trials()}
    assert states == {0: "running", 1: "complete", 2: "complete"}


def test_no_trial_starts_when_the_budget_is_spent(sweep):
    sweep.write("trials: 1000\nbudget: {time: 2s}\n")
    done = sweep(code=0)
    assert "the budget is spent (budget.time, 2s): no trial starts any more\n" in done.err
    assert 0 < len(sweep.trials()) < 1000
    assert {trial["state"] for trial in sweep.trials()} == {"complete"}


@pytest.mark.parametrize(
    ("more", "job", "words", "error"),
    [
        ("job: other.yaml\n", JOB, [], "lr.yaml:6:1"),
        ("", JOB.replace("toy", "toy\nmodle: x"), [], "modle"),
        ("", JOB + "array: {over: t.csv}\n", [], "array"),
        ("at_once: 0\n", JOB, [], "at_once"),
        ("place: moon\n", JOB, [], "'moon' is unknown"),
        ("budget: {time: 30}\n", JOB, [], "'30' has no unit"),
        ("budget: {cost: 3}\n", JOB, [], "cost"),
        ("", JOB, ["--job", "missing.yaml"], "missing.yaml"),
        ("", JOB, ["--place", "moon"], "--place: 'moon' is unknown"),
        ("", JOB, ["--at-once", "-1"], "--at-once: -1 is below 1"),
        ("place: here\n", "#!/bin/bash\ntrue\n", [], "a batch script runs only as a job (place: here)"),
        ("arguments: ['--lr={rate}']\n", "#!/bin/bash\ntrue\n", [], "rate"),
    ],
)
def test_what_would_fail_in_each_trial_is_refused_first(sweep, more, job, words, error):
    sweep.write(more, job=job)
    refused = sweep(*words)
    assert refused.code in (1, 2)
    assert error in refused.err
    assert not (sweep.folder / "lr.study").exists()


def test_a_sweep_file_without_a_job_names_the_option(sweep):
    sweep.write(base=SWEEP.replace("job: job.yaml\n", ""))
    assert "try: stoker sweep lr.yaml --job job.yaml\n" in sweep(code=2).err
    assert sweep("--job", "job.yaml", "--dry-run", code=0).out.startswith("would run job.yaml, 1 at once, here\n")


def test_the_best_trial_runs_again_with_the_same_result(sweep):
    sweep.write("trials: 3\n")
    sweep(code=0)
    best = min(sweep.trials(), key=lambda trial: trial["values"]["loss"])
    done = sweep.stoker("sweep", "best", "lr.yaml", "--rerun", code=0)
    assert done.out == f"trial {best['number']}: {best['values']['loss']:.4g}   same result, difference 0.00 %\n"
    (again,) = (sweep.folder / "lr.study/reruns").iterdir()
    assert json.loads((again / "run.json").read_text())["name"] == f"rerun-of-lr-{best['number']}"


def test_a_different_result_is_explained_by_what_changed(sweep):
    sweep.write("trials: 1\n")
    sweep(code=0)
    (sweep.folder / "train.py").write_text(TRAIN.replace("int(sys.argv[2])", "1000"))
    done = sweep.stoker("sweep", "best", "lr.yaml", "--rerun", "--json", code=1)
    (rerun,) = json.loads(done.out)
    assert (rerun["verdict"], rerun["reruns"]) == ("different", 3)
    assert rerun["difference"] > 10


def test_a_rerun_that_fails_has_its_reason(sweep):
    sweep.write("trials: 1\n")
    sweep(code=0)
    (sweep.folder / "train.py").write_text("raise SystemExit('no data')")
    failed = sweep.stoker("sweep", "best", "lr.yaml", "--rerun", code=3)
    assert re.search(r"trial 0: its rerun \S+ failed .*\n  try: stoker explain ", failed.err)


def test_a_trial_without_a_run_cannot_be_repeated(sweep):
    sweep.write("trials: 1\n")
    sweep.stoker("sweep", "ask", "lr.yaml", code=0)
    sweep.stoker("sweep", "tell", "lr.yaml", "0", "0.5", code=0)
    assert (
        "trial 0 has no run, so it cannot be repeated"
        in sweep.stoker("sweep", "best", "lr.yaml", "--rerun", code=1).err
    )
