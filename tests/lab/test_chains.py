"""Chains: a run longer than a job may be, as one job after the other on a real cluster; and runs that wait for others."""

import csv
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from lab_jobs import COUNTER, fault
from running import wait_until
from submitted import Runs
from test_training import copy_small_dataset, weights
from test_training import submit as submit_main_job

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.timeout(400)]


def chain(time_per_link: str, links: int, more: str = "") -> str:
    return f"chain: {{until: done, time_per_link: {time_per_link}, links: {links}}}\ntimeouts: {{grace: 1s}}\n{more}"


def queue(runs: Runs) -> str:
    return runs.lab.run("squeue", "--noheader", "--format=%i %T").out


def attempts_of(run: Path) -> list[Path]:
    return sorted((run / "attempts").iterdir(), key=lambda attempt: int(attempt.name))


def test_a_chain_of_short_links_counts_on_where_the_one_before_stopped(runs: Runs):
    (runs.folder / "count.py").write_text(COUNTER)
    runs.job(f"exec {sys.executable} count.py 40", "nodes: 1", chain("3s", 30, "restart: {without_progress: 10}\n"))
    output = runs.stoker("submit", "job.yaml").out
    assert re.match(r"submitted \d+ \(1 node x 1 rank, 3s a link\)\n", output)
    assert "\n  chain 30 links at most, until done (chain.links)\n" in output
    assert "\n#SBATCH --array=1-30%1\n" in (runs.run / "attempts/1/job.sbatch").read_text()
    assert runs.wait() == f"run {runs.run.name}: done\n"
    logs = [(attempt / "rank-0000.log").read_text() for attempt in attempts_of(runs.run)]
    starts = [int(re.match(r"from (\d+)\n", log)[1]) for log in logs]
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert len(set(starts)) >= 2  # it was interrupted, and resumed
    assert logs[-1].endswith("counted to 40\n")
    # The links that were not needed are gone.
    wait_until(lambda: queue(runs) == "", "the queue is empty")
    now = runs.status()
    assert (now["state"], now["attempts"]) == ("done", len(starts))


def test_two_links_without_progress_end_a_chain(runs: Runs):
    runs.job("sleep 60", "nodes: 1", chain("2s", 9))
    runs.submit()
    assert runs.wait(code=124) == (
        f"run {runs.run.name}: timeout (time limit 2s (chain.time_per_link); 2 attempts in a row without progress: "
        "no checkpoint yet (restart.without_progress: 2))\n"
    )
    assert [attempt.name for attempt in attempts_of(runs.run)] == ["1", "2"]
    wait_until(lambda: queue(runs) == "", "the queue is empty")
    assert "does not continue: 2 attempts in a row without progress" in runs.batch_log()


def test_a_link_that_fails_ends_its_chain_and_is_named(runs: Runs):
    runs.job("exit 7", "nodes: 1", chain("1m", 4))
    runs.submit()
    output = runs.wait(code=7)
    assert re.fullmatch(rf"run {runs.run.name}: failed \(.* exit code 7; failed \(restart.failed: 0\)\)\n", output)
    wait_until(lambda: queue(runs) == "", "the queue is empty")
    assert len(attempts_of(runs.run)) == 1


def test_failures_are_retried_up_to_the_configured_limit(runs: Runs):
    runs.job("exit 7", "nodes: 1", chain("1m", 9, "restart: {failed: 2, without_progress: 9}\n"))
    runs.submit()
    assert "; failed 3 times (restart.failed: 2))" in runs.wait(code=7)
    assert len(attempts_of(runs.run)) == 3


def test_a_run_that_failed_is_started_again_by_slurm_without_a_chain(runs: Runs):
    runs.job("[ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || exit 7; echo here", "nodes: 1", "restart: {failed: 1}\n")
    job = runs.submit()
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert runs.log(0, attempt=2) == "here\n"
    assert f"job {job} is requeued" in runs.batch_log()


def test_between_two_links_a_chain_waits_and_can_be_cancelled(runs: Runs):
    runs.job("trap 'kill $!; exit 75' USR1; sleep 300 & wait", "nodes: 1", chain("10m", 3))
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 1, "the rank sleeps")
    runs.lab.run("scontrol", "hold", job)
    runs.lab.run("scancel", "--batch", "--signal=USR1", f"{job}_1", code=None)
    wait_until(lambda: "link 1 of 3 ends here, the next one continues" in runs.batch_log(), "the link ends")
    now = runs.wait_for("queued")
    assert now["job"] == job
    assert now["reason"].startswith("link 2 of 3 is next, ")
    refused = runs.stoker("resume", "last", code=2).err
    assert refused.startswith(f"run {runs.run.name}: is queued as job {job}\n")
    assert runs.stoker("cancel", "--last").out == f"cancelling job {job} (queued), run {runs.run.name}\n"
    assert "cancelled" in runs.wait(code=None)
    wait_until(lambda: queue(runs) == "", "the queue is empty")


def test_links_that_may_not_withdraw_others_leave_them_nothing_to_do(runs: Runs, wrapper):
    path = wrapper("scancel", "exit 1")
    runs.job("echo ran", "nodes: 1", chain("10m", 3))
    runs.submit(env={"PATH": f"{path.split(':')[0]}:{runs.lab.env['PATH']}"})
    assert runs.wait() == f"run {runs.run.name}: done\n"
    wait_until(lambda: queue(runs) == "", "all links have had their turn", timeout=120)
    assert runs.batch_log().count("is done, nothing is left for this job") == 2
    assert len(attempts_of(runs.run)) == 1


CIFAR = """\
name: main-job
train: {model: cifar-resnet20, epochs: 4, batch: 16, seed: 3, optimizer: {lr: 0.05}}
data:
  train: {source: small, split: train}
resources: {nodes: 2, ranks_per_node: 1, cpus_per_rank: 1}
checkpoint: {every: 1 epoch, keep_last: 3}
"""


@pytest.fixture
def project(runs: Runs, example_images: Path) -> Runs:
    """A folder that all nodes see, with a small dataset: 16 images of each class, so 5 steps of two ranks an epoch."""
    return copy_small_dataset(runs, example_images)


def test_a_chain_of_four_links_trains_to_the_weights_of_the_uncut_run(project: Runs):
    (project.folder / "job.yaml").write_text(CIFAR)
    uncut = Path(json.loads(project.stoker("submit", "job.yaml", "--json").out)["folder"])
    assert project.wait(uncut) == f"run {uncut.name}: done\n"
    (project.folder / "job.yaml").write_text(CIFAR + "chain: {until: done, time_per_link: 10m, links: 4}\n")
    run = Path(json.loads(project.stoker("submit", "job.yaml", "--json").out)["folder"])
    for link in (1, 2, 3):
        attempt = run / f"attempts/{link}"
        metrics = attempt / "metrics-0000.csv"
        wait_until(lambda file=metrics: file.exists() and file.read_text().count("\n") > 2, f"link {link} trains", 180)
        # As the batch script does before the time is over; scancel may take 5 s to signal a job that has just begun.
        started = json.loads((attempt / "events-node-0000.jsonl").read_text().splitlines()[0])
        os.kill(started["pid"], signal.SIGUSR1)
        text = f"link {link} of 4 ends here, the next one continues"
        wait_until(lambda text=text: text in (run / "attempts/1/slurm.log").read_text(), text, 120)
    assert project.wait(run) == f"run {run.name}: done\n"
    assert len(attempts_of(run)) == 4
    assert weights(run) == weights(uncut)


def rate_of(run: Path) -> float:
    """Epochs per second of a run's trained steps."""
    with (run / "attempts/1/metrics-0000.csv").open() as file:
        rows = list(csv.DictReader(file))
    return len({row["epoch"] for row in rows}) / sum(float(row["step_s"]) for row in rows)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_chain_of_four_links_cut_by_a_limit_of_a_minute_trains_to_the_weights_of_the_uncut_run(project: Runs):
    def submit_long(epochs: int, more: str = "") -> Path:
        text = CIFAR.replace("epochs: 4", f"epochs: {epochs}").replace("1 epoch", "50 steps")
        (project.folder / "job.yaml").write_text(text + more)
        return Path(json.loads(project.stoker("submit", "job.yaml", "--json").out)["folder"])

    trial = submit_long(20)
    project.stoker("wait", trial, timeout=600)
    # A link trains for 75 s at most: it is warned after three quarters of its minute, or up to 30 s late.
    epochs = round(3.2 * 75 * rate_of(trial))
    uncut = submit_long(epochs)
    project.stoker("wait", uncut, timeout=1800)
    run = submit_long(epochs, "chain: {until: done, time_per_link: 1m, links: 40}\n")
    assert project.stoker("wait", run, timeout=3000).out == f"run {run.name}: done\n"
    links = len(attempts_of(run))
    assert links >= 4
    log = (run / "attempts/1/slurm.log").read_text()
    assert [link for link in range(1, links) if f"link {link} of 40 ends here, the next one continues" not in log] == []
    assert weights(run) == weights(uncut)


@pytest.mark.soak
def test_a_preempted_run_restarts_up_to_its_limit(runs: Runs):
    runs.job(
        "[ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || sleep 600; echo attempt $(basename $STOKER_ATTEMPT_DIR)",
        "nodes: 1",
        "slurm: {partition: low}\nrestart: {preempted: 1}\n",
    )
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 1, "the rank sleeps")
    fault(runs.lab, "preempt", job)
    wait_until(lambda: runs.lab.state(job) != "RUNNING", "it is preempted", 120)
    fault(runs.lab, "heal", job)
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert runs.log(0, attempt=2) == "attempt 2\n"


@pytest.mark.soak
@pytest.mark.needs("namespaces")
def test_a_run_restarts_after_a_node_failure(runs: Runs):
    runs.job(
        "[ $(basename $STOKER_ATTEMPT_DIR) = 2 ] || sleep 600; echo attempt $(basename $STOKER_ATTEMPT_DIR)", "nodes: 2"
    )
    runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "all ranks sleep")
    fault(runs.lab, "kill", "n2")
    try:
        assert runs.stoker("wait", timeout=300).out == f"run {runs.run.name}: done\n"
    finally:
        fault(runs.lab, "heal", "n2")
    assert runs.log(1, attempt=2) == "attempt 2\n"


@pytest.mark.soak
@pytest.mark.needs("namespaces")
@pytest.mark.timeout(900)
def test_a_node_lost_in_mid_epoch_costs_time_and_nothing_else(project: Runs):
    uncut = submit_main_job(project, 2, epochs=60)
    project.stoker("wait", uncut, timeout=600)
    run = submit_main_job(project, 2, epochs=60)
    wait_until(lambda: list(run.glob("checkpoints/step-*")), "the first checkpoint", 180)
    fault(project.lab, "cut", "n2")
    try:
        assert project.stoker("wait", run, timeout=600).out == f"run {run.name}: done\n"
    finally:
        fault(project.lab, "heal", "n2")
    assert "is requeued" in (run / "attempts/1/slurm.log").read_text()
    assert len(attempts_of(run)) == 2
    assert weights(run) == weights(uncut)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_controller_restarted_under_a_run_changes_nothing_in_it(project: Runs):
    uncut = submit_main_job(project, 2, epochs=80)
    project.stoker("wait", uncut, timeout=600)
    run = submit_main_job(project, 2, epochs=80)
    began = time.monotonic()
    metrics = run / "attempts/1/metrics-0001.csv"
    wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 2, "the run trains", 180)
    wait_until(lambda: time.monotonic() - began > 7, "the controller has written down that it runs")
    fault(project.lab, "kill", "controller")
    steps = metrics.read_text().count("\n")
    wait_until(lambda: metrics.read_text().count("\n") > steps + 5, "it trains without a controller", 180)
    assert project.status(str(run))["state"] == "running"
    fault(project.lab, "heal", "controller")
    assert project.stoker("wait", run, timeout=600).out == f"run {run.name}: done\n"
    assert len(attempts_of(run)) == 1
    assert weights(run) == weights(uncut)


# --- after: runs that wait for others ---------------------------------------------------------------------------------


def write_job(runs: Runs, name: str, run: str, more: str = "") -> str:
    (runs.folder / f"{name}.yaml").write_text(f"name: {name}\nrun: {{shell: {json.dumps(run)}}}\n{more}")
    return f"{name}.yaml"


def submit(runs: Runs, file: str) -> dict:
    return json.loads(runs.stoker("submit", file, "--json").out)


def test_a_run_begins_when_those_it_waits_for_are_done(runs: Runs):
    etl = submit(runs, write_job(runs, "etl", "while [ ! -e go ]; do sleep 0.1; done; date > etl.done"))
    pack = write_job(runs, "pack", "test -e etl.done && date > pack.done", "after: [etl.yaml]\n")
    output = runs.stoker("submit", pack).out
    assert f"\n  after {etl['run']}\n" in output
    train = submit(runs, write_job(runs, "train", "test -e pack.done && echo trained", "after: [pack, etl]\n"))
    script = Path(train["script"]).read_text()
    assert re.search(rf"\n#SBATCH --dependency=afterok:\d+,afterok:{etl['job']}\n", script)
    assert runs.wait_for("queued", run=train["run"])["reason"].startswith("after run ")
    (runs.folder / "go").touch()
    assert runs.wait(train["run"]) == f"run {train['run']}: done\n"
    # A finished predecessor is not waited for.
    again = submit(runs, "train.yaml")
    assert "--dependency" not in Path(again["script"]).read_text()
    assert runs.wait(again["run"]) == f"run {again['run']}: done\n"


def test_a_failed_predecessor_is_reported_and_ends_the_wait(runs: Runs):
    etl = submit(runs, write_job(runs, "etl", "while [ ! -e go ]; do sleep 0.1; done; exit 3"))
    train = submit(runs, write_job(runs, "train", "echo trained", "after: [etl]\n"))
    (runs.folder / "go").touch()
    output = runs.wait(train["run"], code=130)
    assert re.match(
        rf"run {train['run']}: cancelled \(after run {etl['run']}, which is failed: .*exit code 3\)\n", output
    )
    wait_until(lambda: queue(runs) == "", "the queue is empty")
    refused = runs.stoker("submit", "train.yaml", code=2).err
    assert re.fullmatch(
        rf"after: run {etl['run']}: failed: .*exit code 3\n  try: stoker resume {etl['run']}\n", refused
    )


def test_a_run_behind_a_chain_begins_when_the_chain_is_done_and_not_when_it_gave_up(runs: Runs):
    work = "while [ ! -e go ]; do sleep 0.1; done; test ! -e bad"
    submit(runs, write_job(runs, "etl", work, chain("10m", 2)))
    good = submit(runs, write_job(runs, "train", "echo trained", "after: [etl]\n"))
    assert "--dependency=afterany:" in Path(good["script"]).read_text()
    (runs.folder / "go").touch()
    assert runs.wait(good["run"]) == f"run {good['run']}: done\n"
    (runs.folder / "go").unlink()
    (runs.folder / "bad").touch()
    etl = submit(runs, "etl.yaml")
    late = submit(runs, "train.yaml")
    (runs.folder / "go").touch()
    assert f"(after: run {etl['run']}: failed: " in runs.wait(late["run"], code=1)


def test_what_is_no_run_yet_is_refused_with_what_makes_one(runs: Runs):
    write_job(runs, "etl", "true")
    write_job(runs, "train", "true", "after: [etl.yaml]\n")
    refused = runs.stoker("submit", "train.yaml", code=1).err
    assert refused == (
        f"after: etl.yaml: no run of it in {runs.folder}/runs yet\n  try: stoker submit {runs.folder}/etl.yaml\n"
    )
    assert not (runs.folder / "runs").exists()
