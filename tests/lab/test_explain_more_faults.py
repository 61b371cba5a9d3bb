"""The faults that tests/lab/test_explain_faults.py does not cover: how `stoker explain` reports them."""

import json
import shutil
from pathlib import Path

import pytest
from lab_jobs import fault
from labs import Lab
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")


def explain(lab: Lab, *words: str, **options) -> dict:
    return json.loads(lab.stoker("explain", *words, "--json", **({"code": None} | options)).out)


def test_a_frozen_rank_is_named(runs: Runs):
    runs.job("exec sleep 300", more="timeouts: {stopped: 3s, grace: 1s}\n")
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "both ranks sleep")
    fault(runs.lab, "freeze", job, "--rank", "1")
    runs.wait(code=None)
    found = explain(runs.lab, "last", cwd=runs.folder)["diagnosis"]
    assert (found["rule"], found["rank"], found["certainty"]) == ("rank-stopped", 1, "known"), found


@pytest.mark.needs("namespaces")
def test_a_full_local_disk_is_named(runs: Runs):
    runs.job("until [ -e go ]; do sleep 0.1; done; head -c 4M /dev/zero > $SLURM_TMPDIR/batch.bin", "nodes: 1")
    runs.submit()
    status = runs.wait_for("running")
    node = status["nodes"]
    fault(runs.lab, "fill", node)
    (runs.folder / "go").touch()
    runs.wait(code=None)
    fault(runs.lab, "heal", node)
    found = explain(runs.lab, "last", cwd=runs.folder)["diagnosis"]
    assert (found["rule"], found["certainty"]) == ("disk-full", "known"), found


@pytest.mark.soak
def test_a_preempted_run_was_preempted(runs: Runs):
    runs.job(
        "trap '' TERM; while :; do sleep 1; done",
        "nodes: 1",
        "slurm: {partition: low}\nrestart: {preempted: 0}\ntimeouts: {grace: 60s}\n",
    )
    job = runs.submit()
    runs.wait_for("running")
    fault(runs.lab, "preempt", job)
    wait_until(lambda: runs.lab.state(job) != "RUNNING", "it is preempted", 120)
    fault(runs.lab, "heal")
    wait_until(lambda: runs.status()["state"] not in ("running", "queued"), "it ended", 120)
    found = explain(runs.lab, "last", "--attempt", "1", cwd=runs.folder)["diagnosis"]
    assert "preempt" in found["rule"], found


def test_the_pending_reason_of_a_drained_node_is_explained(lab: Lab):
    fault(lab, "drain", "n2")
    try:
        job = lab.submit("true", "--nodelist=n2")

        def waiting() -> dict | None:
            report = explain(lab, job)["waiting"]
            return report if report and report["reason"] not in ("None", "Priority") else None

        report = wait_until(waiting, f"{job} waits for its node")
        assert report["reason"].startswith("ReqNodeNotAvail"), report
        assert "n2" in report["description"] or "node" in report["description"], report
        assert report["advice"], report
    finally:
        fault(lab, "heal", "n2")
    lab.wait_for(job, "COMPLETED")


@pytest.mark.soak
@pytest.mark.needs("namespaces")
def test_a_node_whose_daemon_was_killed_is_named(runs: Runs):
    runs.job("exec sleep 300", "nodes: 1", "restart: {node_failed: 0}\n")
    runs.submit()
    wait_until(lambda: runs.processes("sleep"), "the rank sleeps")
    node = runs.status()["nodes"]
    fault(runs.lab, "kill", node)
    wait_until(lambda: runs.status()["state"] not in ("running", "queued"), "it ended", 180)
    fault(runs.lab, "heal", node)
    found = explain(runs.lab, "last", "--attempt", "1", cwd=runs.folder)["diagnosis"]
    assert found["rule"] in ("node-gone", "node-failure", "state-node-failed", "srun-node-failure"), found


@pytest.mark.soak
@pytest.mark.needs("namespaces")
def test_a_slow_cable_is_seen_in_the_steps(runs: Runs, example_images: Path):
    for kind in sorted((example_images / "train").iterdir()):
        (runs.folder / "images/train" / kind.name).mkdir(parents=True)
        for image in sorted(kind.iterdir())[:16]:
            shutil.copy(image, runs.folder / "images/train" / kind.name)
    runs.stoker("data", "pack", "images", "small")
    (runs.folder / "job.yaml").write_text(
        "name: slow\ntrain: {model: cifar-resnet20, epochs: 14, batch: 16, seed: 1}\n"
        "data: {train: {source: small, split: train}}\nresources: {nodes: 2, ranks_per_node: 1, cpus_per_rank: 1}\n"
        "checkpoint: {every: never}\n"
    )
    fault(runs.lab, "slow", "n2", "--rate", "20mbit")
    try:
        runs.submit()
        runs.wait()
    finally:
        fault(runs.lab, "heal", "n2")
    found = explain(runs.lab, "last", cwd=runs.folder)["diagnosis"]
    assert "communication-wait" in [each["rule"] for each in found["also"]], found
