"""Failures on a real cluster, and that `stoker explain` names the right cause first."""

import json
import sys

import pytest
from lab_jobs import fault
from labs import Lab
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")

EAT = "import time; x = bytearray(400 << 20); time.sleep(60)"
BIND = (
    "import os, socket, time\n"
    "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
    "t = socket.socket(); t.bind(s.getsockname())\n"
)
GLOO = (
    "import os, datetime\nos.environ['GLOO_SOCKET_IFNAME'] = 'ib7'\nimport torch.distributed as d\n"
    "d.init_process_group('gloo', timeout=datetime.timedelta(seconds=60))\n"
)


def explain(lab: Lab, *words: str, code: int | None = 0, **options) -> dict:
    return json.loads(lab.stoker("explain", *words, "--json", code=code, **options).out)


def explain_run(runs: Runs) -> dict:
    return explain(runs.lab, "last", cwd=runs.folder)["diagnosis"]


def test_a_killed_rank_is_named(runs: Runs):
    runs.job("exec sleep 300")
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "both ranks sleep")
    fault(runs.lab, "kill", job, "--rank", "1")
    runs.wait(code=None)
    found = explain_run(runs)
    assert found["rank"] == 1
    assert found["rule"] in ("killed-by-signal-9", "rank-connection-broke"), found


def test_lack_of_memory_is_named(runs: Runs):
    runs.job(f"exec python3 -c '{EAT}'", "nodes: 1, memory_per_node: 200MiB")
    runs.submit()
    runs.wait(code=137)
    found = explain_run(runs)
    assert (found["rule"], found["certainty"]) == ("memory-limit-exceeded", "known"), found


def test_the_rank_that_took_too_much_memory_is_named_and_not_its_peer(runs: Runs):
    runs.job(f"[ $RANK = 0 ] && exec sleep 60; exec python3 -c '{EAT}'", "nodes: 2, memory_per_node: 200MiB")
    runs.submit()
    runs.wait(code=137)
    found = explain_run(runs)
    assert (found["rule"], found["certainty"]) == ("memory-limit-exceeded", "known"), found
    events = [json.loads(line) for line in (runs.run / "attempts/1/events-node-0000.jsonl").open()]
    (host,) = {event["host"] for event in events if event["kind"] == "rank_started" and event["rank"] == 1}
    assert (found["rank"], found["node"]) == (1, host), found


def test_a_cancelled_run_was_cancelled(runs: Runs):
    runs.job("exec sleep 300", "nodes: 1")
    job = runs.submit()
    wait_until(lambda: runs.processes("sleep"), "the rank sleeps")
    runs.lab.run("scancel", job)
    runs.wait(code=130)
    found = explain_run(runs)
    assert found["rule"] in ("job-cancelled", "state-cancelled"), found


def test_an_exception_of_one_rank_is_the_cause_on_two_nodes(runs: Runs):
    (runs.folder / "train.py").write_text(
        "import os, time\n"
        "if os.environ['RANK'] == '1':\n    raise KeyError('learning rate')\n"
        "time.sleep(60)\nprint('ConnectionResetError: [Errno 104] Connection reset by peer')\n"
    )
    runs.job("exec python3 train.py")
    runs.submit()
    runs.wait(code=1)
    found = explain_run(runs)
    assert found["cause"] == "the program raised KeyError: 'learning rate' (train.py:3)"
    assert (found["rank"], found["certainty"]) == (1, "known")


def test_a_port_in_use_is_named(runs: Runs):
    (runs.folder / "bind.py").write_text(BIND)
    runs.job("exec python3 bind.py", "nodes: 1")
    runs.submit()
    runs.wait(code=1)
    assert explain_run(runs)["rule"] == "port-of-program-in-use"


def test_a_program_that_no_node_has_is_named(runs: Runs):
    runs.job("trainer train.py")
    runs.submit()
    runs.wait(code=127)
    assert explain_run(runs)["rule"] == "sh-command-not-found"


def test_a_job_of_ones_own_that_is_killed_for_memory_is_explained_by_its_id(lab: Lab):
    job = lab.submit(f"srun --mem=64M {sys.executable} -c '{EAT}'", "--nodelist=n1", "--mem=64M", "--output=job-%j.log")
    lab.wait_for(job, "FAILED")
    found = explain(lab, job)["diagnosis"]
    assert (found["rule"], found["certainty"]) == ("memory-limit-exceeded", "known"), found


WAITING = [
    (("--begin=now+1hour",), "BeginTime"),
    (("--hold",), "JobHeldUser"),
    (("--dependency=singleton", "--job-name=first"), "Dependency"),
]


@pytest.mark.parametrize(("options", "reason"), WAITING)
def test_pending_reasons_are_explained_in_plain_words(lab: Lab, options, reason):
    if reason == "Dependency":
        lab.wait_for(lab.submit("sleep 300", "--job-name=first"), "RUNNING")
    job = lab.submit("true", *options)

    def waiting() -> dict | None:
        report = explain(lab, job)["waiting"]
        return report if report["reason"] == reason else None

    report = wait_until(waiting, f"{job} waits for {reason}")
    assert report["description"] and report["advice"]
    assert report["permanent"] == (reason == "JobHeldUser")


@pytest.mark.soak
@pytest.mark.needs("namespaces")
def test_a_node_that_is_cut_off_is_named(runs: Runs):
    runs.job("exec sleep 300")
    runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "both ranks sleep")
    node = runs.status()["nodes"]
    assert node
    fault(runs.lab, "cut", "n2" if "n2" in node or "1-2" in node else "n1")
    wait_until(
        lambda: runs.status()["state"] not in ("running", "queued") or runs.status()["attempts"] > 1, "it ended", 180
    )
    found = explain(runs.lab, "last", "--attempt", "1", cwd=runs.folder, code=None)["diagnosis"]
    assert found["rule"] in ("node-gone", "rank-connection-broke", "node-failure", "state-node-failed", "requeued"), (
        found
    )


@pytest.mark.soak
def test_an_interface_that_is_not_there_is_named(runs: Runs):
    (runs.folder / "gloo.py").write_text(GLOO)
    runs.job("exec $PYTHON gloo.py", more=f"environment: {{variables: {{PYTHON: {sys.executable}}}}}\n")
    runs.submit()
    runs.wait(code=None)
    assert explain_run(runs)["rule"] == "gloo-no-interface"


def test_a_run_whose_time_limit_slurm_set_to_now_ran_out_of_time(runs: Runs):
    runs.job("exec sleep 300", "nodes: 1")
    job = runs.submit()
    wait_until(lambda: runs.processes("sleep"), "the rank sleeps")
    fault(runs.lab, "expire", job)
    runs.wait(code=124)
    found = explain_run(runs)
    assert (found["rule"], found["certainty"]) == ("time-limit", "known"), found
    report = explain(runs.lab, job)["diagnosis"]  # seen from a folder without runs: a job like any other
    assert (report["rule"], report["certainty"]) == ("time-limit", "known"), report


def test_a_run_reports_its_own_timeout(runs: Runs):
    runs.job("exec sleep 300", "nodes: 1, time: 3s", "timeouts: {grace: 1s}\n")
    job = runs.submit()
    runs.wait(code=124)
    for found in (explain_run(runs), explain(runs.lab, job, cwd=runs.folder)["diagnosis"]):
        assert found["certainty"] == "known", found
        assert found["cause"] == "its time limit was reached: 3s (resources.time)", found


def test_a_job_of_ones_own_that_ran_out_of_time_is_explained_by_its_id(lab: Lab):
    job = lab.submit("echo begun; srun --overlap sleep 300", "--nodelist=n1")
    wait_until(lambda: f"{job}.0" in lab.run("squeue", "--steps", "--noheader", "--format=%i").out, "its step runs")
    fault(lab, "expire", job)
    lab.stoker("wait", job, code=124)
    found = explain(lab, job)["diagnosis"]
    assert (found["rule"], found["certainty"]) == ("time-limit", "known"), found


def test_a_step_that_came_after_the_end_of_its_job_is_not_blamed(lab: Lab):
    job = lab.submit("sleep 2; srun --overlap true", "--nodelist=n1")
    lab.wait_for(job, "RUNNING")
    fault(lab, "expire", job)
    lab.stoker("wait", job, code=1)
    assert explain(lab, job)["diagnosis"]["rule"] == "job-already-ending"


def test_an_array_is_explained_by_the_task_that_failed(runs: Runs):
    (runs.folder / "configs.csv").write_text("n\n1\n2\n3\n")
    (runs.folder / "train.py").write_text("import sys\nprint({'1': 1, '3': 3}[sys.argv[1]])\n")
    (runs.folder / "job.yaml").write_text(
        "name: many\nrun: python3 train.py ${params.n}\narray: {over: configs.csv, at_once: 3}\n"
    )
    runs.submit()
    runs.wait(code=1)
    found = explain_run(runs)
    assert found["cause"] == "the program raised KeyError: '2' (train.py:2)"
    assert found["evidence"][0]["where"].startswith("tasks/00002.log:")
