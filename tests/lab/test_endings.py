"""Endings of runs and jobs on a real cluster, and how status, wait and the report distinguish them."""

import json
import re

import pytest
from lab_jobs import wait_for_written_state
from labs import Lab
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")

EAT = "import time; x = bytearray(400 << 20); time.sleep(60)"


def attempts(runs: Runs) -> list[dict]:
    (run,) = json.loads(runs.stoker("report", "last", "--json").out)["runs"]
    return run["attempts"]


def test_a_run_reports_out_of_memory(runs: Runs):
    runs.job(f"exec python3 -c '{EAT}'", "nodes: 1, memory_per_node: 200MiB")
    runs.submit()
    ended = runs.wait(code=137)
    assert ended.startswith(f"run {runs.run.name}: out of memory (took ")
    assert runs.status()["state"] == "out of memory"
    assert attempts(runs)[0]["ending"] == "out of memory"


def test_a_cancelled_run_has_a_distinct_exit_code(runs: Runs):
    runs.job("sleep 300", "nodes: 1")
    job = runs.submit()
    wait_until(lambda: runs.processes("sleep"), "the rank sleeps")
    runs.lab.run("scancel", job)
    assert runs.wait(code=130).startswith(f"run {runs.run.name}: cancelled")
    assert attempts(runs)[0]["ending"] == "cancelled"


def test_a_run_that_failed_early_and_succeeded_reports_both(runs: Runs):
    runs.job("trainer train.py; echo cleaning up", "nodes: 1")
    runs.submit()
    output = runs.wait(code=0).splitlines()
    assert output[0] == f"run {runs.run.name}: done"
    assert output[1].startswith("  but runs/") and ": trainer: not found" in output[1]
    runs.stoker("wait", "last", "--strict", code=1)
    # Two pipes: the order of lines written at the same time is undefined.
    report = re.compile(r"rank-0000\.log:[12] contains a failure: /bin/sh: 1: trainer: not found")
    assert report.search(runs.stoker("status", "last").out)
    (run,) = json.loads(runs.stoker("report", "last", "--json").out)["runs"]
    assert any(report.search(note) for note in run["notes"])


def test_each_attempt_of_a_requeued_run_keeps_its_ending(runs: Runs):
    runs.job("[ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || sleep 300", "nodes: 1")
    job = runs.submit()
    wait_until(lambda: runs.processes("sleep"), "the rank sleeps")
    runs.lab.run("scontrol", "requeue", job)
    # By this a run knows that Slurm itself starts it again: SlurmCommands::requeue().
    assert "Job is pending execution" in runs.lab.run("scontrol", "requeue", job, code=1).err
    assert runs.wait() == f"run {runs.run.name}: done\n"
    first, second = attempts(runs)
    # Slurm ends rank and supervisor at once, and kills what lives 5 s later: whether the supervisor noticed it first, and had the
    # time to write it down on a busy machine, is chance.
    assert first["ending"] == "requeued" and first["state"] in ("stopped", "failed", "lost"), runs.batch_log()
    assert (second["ending"], second["state"]) == (None, "done")


def test_a_job_that_no_run_has_is_followed_to_its_end(lab: Lab):
    job = lab.submit("echo begun; [ -e go ] || sleep 300; exit 7", "--nodelist=n1")
    lab.wait_for(job, "RUNNING")
    (line,) = json.loads(lab.stoker("status", job, "--json").out)["jobs"]
    assert (line["state"], line["nodes"], line["name"]) == ("running", "n1", "job.sh")
    wait_until(lambda: lab.stoker("logs", job).out == "begun\n", "its log is there")
    assert lab.stoker("cancel", job).out == f"cancelling job {job} (running)\n"
    assert lab.stoker("wait", job, code=130).out.startswith(f"job {job}: cancelled")


def test_a_foreign_job_that_fails_gives_its_exit_code_and_log(lab: Lab):
    job = lab.submit("echo no data; exit 7")
    assert lab.stoker("wait", job, code=7).out == f"job {job}: failed (exit code 7)\n"
    assert lab.stoker("logs", "-f", job).out == "no data\n"


def test_a_user_script_that_ignored_a_failure_is_flagged(lab: Lab):
    job = lab.submit("trainer train.py\nsrun -n1 false\necho done")
    ended = lab.stoker("wait", job, code=0).out.splitlines()
    assert ended[0] == f"job {job}: done (its script exited with 0, but a step ended with exit code 1)"
    assert ended[1].startswith(f"  but slurm-{job}.out:1: ")
    assert ended[1].endswith("line 2: trainer: command not found")


def test_an_array_of_somebody_is_one_question(lab: Lab):
    job = lab.submit("exit $((SLURM_ARRAY_TASK_ID == 2))", "--array=0-5", "--output=/dev/null")
    ended = lab.stoker("wait", job, code=1).out
    assert ended == f"array {job} (6 tasks): 5 done, 1 failed\n"
    shown = json.loads(lab.stoker("status", job, "--json").out)
    assert shown["scheduler"]["calls"] == 1
    assert {task["job"]: task["exit_code"] for task in shown["jobs"] if task["state"] == "failed"} == {f"{job}_2": None}


def test_watching_a_run_ends_with_it(runs: Runs):
    runs.job("sleep 1", "nodes: 1")
    runs.submit()
    watched = runs.stoker("status", "last", "--watch").out.splitlines()
    assert " done " in watched[-1]


@pytest.mark.soak
def test_a_preempted_run_is_reported_and_restarts(runs: Runs):
    lab = runs.lab
    keep = "trap '' TERM; [ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || while :; do sleep 1; done"
    runs.job(keep, "nodes: 1", "slurm: {partition: low}\ntimeouts: {grace: 60s}\n")
    job = runs.submit()
    runs.wait_for("running")
    lab.stoker("lab", "fault", "preempt", job, "--name", lab.name)
    runs.wait_for("queued")
    lab.stoker("lab", "fault", "heal", "--name", lab.name)
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert [a["ending"] for a in attempts(runs)] == ["preempted", None]


@pytest.mark.soak
def test_a_node_failure_is_reported_and_the_run_restarts(runs: Runs):
    lab = runs.lab
    runs.job("[ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || sleep 300", "nodes: 1", "slurm: {extra: [--nodelist=n2]}\n")
    runs.submit()
    wait_until(lambda: runs.processes("sleep"), "the rank sleeps")
    lab.stoker("lab", "fault", "kill", "n2", "--name", lab.name)
    wait_until(lambda: runs.status()["state"] == "queued", "Slurm misses the node", 90)
    lab.stoker("lab", "fault", "heal", "n2", "--name", lab.name)
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert attempts(runs)[1]["ending"] is None


def test_a_killed_controller_is_reported(lab: Lab):
    job = lab.submit("sleep 60")
    lab.wait_for(job, "RUNNING")
    wait_for_written_state(lab)
    lab.stoker("lab", "fault", "kill", "controller", "--name", lab.name)
    try:
        down = lab.stoker("status", job, code=None)
        assert down.code in (1, 3)  # gives no answer, or cannot be reached
        assert down.err.startswith("squeue: ")
    finally:
        lab.stoker("lab", "fault", "heal", "controller", "--name", lab.name)
