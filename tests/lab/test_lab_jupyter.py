"""stoker jupyter: a real Jupyter server on a node of the lab, and its end."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest
from labs import BIN
from running import Process, wait_until
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.needs("jupyter")]


class Session:
    """A `stoker jupyter --json` that is there."""

    def __init__(self, runs: Runs, *words: str):
        self.runs = runs
        env = runs.lab.env | {"PATH": f"{Path(sys.executable).parent}:{runs.lab.env['PATH']}"}
        self.process = Process(
            [BIN / "stoker", "jupyter", "job.yaml", "--json", *words],
            cwd=runs.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(runs.folder / "stderr").open("w"),
            text=True,
            start_new_session=True,
        )
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(f"exit {self.process.wait()}: {(runs.folder / 'stderr').read_text()}")
        self.report = json.loads(line)

    def ask(self, path: str, token: str | None = None) -> tuple[int, str]:
        """As a browser would through the tunnel, which ends on the login node: from this machine to the node."""
        request = urllib.request.Request(f"http://{self.report['address']}:{self.report['port']}{path}")
        if token:
            request.add_header("Authorization", f"token {token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refused:
            return refused.code, ""

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def session(runs: Runs):
    runs.job("true", "nodes: 1, time: 10m")
    session = Session(runs)
    yield session
    session.close()


def queue(runs: Runs) -> str:
    return runs.lab.run("squeue", "--noheader", "--format=%i").out.strip()


def test_it_answers_to_its_token_alone_and_ctrl_c_gives_the_allocation_back(session, runs):
    report = session.report
    assert report["program"] in ("jupyter-lab", "jupyter-server", "jupyter-notebook")
    assert report["job"] == queue(runs)
    assert report["host"] in runs.lab.nodes
    if runs.lab.mode == "namespaces":
        assert report["address"] != "127.0.0.1"
    assert f"-L {report['port']}:{report['address']}:{report['port']} " in report["tunnel"]
    assert report["url"].endswith(f"?token={report['token']}")
    assert session.ask("/api/status")[0] == 403
    assert session.ask("/api/contents")[0] == 403
    status, text = session.ask("/api/contents", report["token"])
    assert status == 200
    # It works in the job's folder.
    assert "job.yaml" in {entry["name"] for entry in json.loads(text)["content"]}
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert report["token"].encode() not in each.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    os.killpg(session.process.pid, signal.SIGINT)
    assert session.process.wait() == 0
    wait_until(lambda: queue(runs) == "", "the allocation is given back")


def test_it_ends_with_its_allocation(session, runs):
    runs.lab.run("scancel", session.report["job"])
    session.process.wait()  # in order or not: Slurm may be faster
    wait_until(lambda: queue(runs) == "", "the allocation is over")


def test_the_allocation_does_not_outlive_whoever_holds_it(session, runs):
    session.process.kill()
    wait_until(lambda: queue(runs) == "", "the allocation is given back", timeout=120)


def test_ctrl_c_withdraws_a_job_that_still_waits(runs):
    runs.job("true", "nodes: 1, time: 10m", "slurm: {extra: [--begin=now+1hour]}\n")
    env = runs.lab.env | {"PATH": f"{Path(sys.executable).parent}:{runs.lab.env['PATH']}"}
    process = Process(
        [BIN / "stoker", "jupyter", "job.yaml"],
        cwd=runs.folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: queue(runs), "it waits")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.read().splitlines()[-1] == "jupyter: interrupted before the server started"
    wait_until(lambda: queue(runs) == "", "it is withdrawn")
