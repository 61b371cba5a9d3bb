"""Trackers of a job file: the process beside a run, started and ended with it. A tracker that is down or slow delays no run."""

import json
import os
import signal
import sys
import time
import zipfile
from pathlib import Path

import pytest
import tracker_files
from conftest import MODULE
from fake_mlflow import FakeMlflow
from running import Job, python, wait_for

WITH_MODULE = {"PYTHONPATH": str(MODULE)}
LOGS = """
import os, pathlib, stoker, time
state = pathlib.Path(f"state-{os.environ['RANK']}.txt")
first = int(state.read_text()) + 1 if state.exists() else 1
for step in range(first, first + 20):
    stoker.log({"loss": 1 / step}, step=step)
state.write_text(str(step))
print("logged", flush=True)
while pathlib.Path("wait").exists(): time.sleep(0.02)
raise SystemExit(1 if first == 1 and pathlib.Path("fails").exists() else 0)
"""


def job(folder: Path, record: str, ranks: int = 1) -> Job:
    python(folder, "train.py", LOGS)
    return Job(folder, f"{sys.executable} train.py", ranks=ranks, more=f"record: {{{record}}}\n")


def test_all_trackers_of_the_job_file_get_the_run(stoker, tmp_path):
    with FakeMlflow() as server:
        made = job(tmp_path, f"mlflow: '{server.url}', tensorboard: true, wandb: mine, comet: mine, csv: true", ranks=2)
        done = stoker("run", "job.yaml", code=0, env=WITH_MODULE)
        assert "not delivered" not in done.err
        steps = list(range(1, 21))
        assert [step for step, _ in server.values("loss")] == steps
        assert [step for step, _ in server.values("rank1/loss")] == steps
        (run,) = server.runs.values()
        assert run["info"]["status"] == "FINISHED"
        assert server.experiments == {"test": "1"}
        folder = made.run_folder() / "track"
        (events,) = (folder / "tensorboard").iterdir()
        assert [step for tag, step, _ in tracker_files.scalars(events) if tag == "loss"] == steps
        (offline,) = (folder / "wandb").glob("*/*.wandb")
        assert [row["step"] for row in tracker_files.wandb_rows(offline) if "loss" in row] == steps
        assert (folder / "points.csv").exists()
        (archive,) = (folder / "comet").iterdir()
        with zipfile.ZipFile(archive) as archive:
            assert json.loads(archive.read("experiment.json"))["project_name"] == "mine"
        assert not list(folder.glob("*.lock"))
        log = made.run_folder() / "attempts/1/track.log"
        assert log.read_text() == "mlflow: job.yaml is not sent: it contains variables or secrets\n"


def test_points_arrive_while_the_run_runs_and_a_resume_continues(stoker, tmp_path):
    (tmp_path / "wait").touch()
    (tmp_path / "fails").touch()
    with FakeMlflow() as server:
        made = job(tmp_path, f"mlflow: '{server.url}', mlflow_experiment: mine")
        started = stoker.start("run", "job.yaml", env=WITH_MODULE)
        wait_for(lambda: len(server.values("loss")) == 20)
        (run,) = server.runs.values()
        assert run["info"]["status"] == "RUNNING"
        (tmp_path / "wait").unlink()
        started.communicate()
        assert run["info"]["status"] == "FAILED"
        stoker("resume", "last", "--from-start", code=0, env=WITH_MODULE)
        assert [step for step, _ in server.values("loss")] == list(range(1, 41))
        assert len(server.runs) == 1
        assert run["info"]["status"] == "FINISHED"
        assert server.repeated() == []
        assert server.experiments == {"mine": "1"}
        assert made.processes() == []


def test_a_server_that_is_down_for_the_whole_run_changes_nothing_but_a_message(stoker, tmp_path):
    with FakeMlflow() as server:
        url = server.url
    made = job(tmp_path, f"mlflow: '{url}', csv: true")
    begin = time.monotonic()
    done = stoker("run", "job.yaml", code=0, env=WITH_MODULE)
    assert time.monotonic() - begin < 60
    (line,) = [line for line in done.err.splitlines() if "not delivered" in line]
    assert line.startswith("mlflow: ")
    assert f" points not delivered: {url}: " in line
    identity = made.run_folder().name
    assert f"  try: stoker track push {identity}\n" in done.err
    log = (made.run_folder() / "attempts/1/track.log").read_text()
    assert log.startswith(f"mlflow: {url}: ")
    assert (made.run_folder() / "track/points.csv").exists()
    state = json.loads(stoker("status", "last", "--json", code=0).out)["runs"][0]
    assert state["state"] == "done"
    with FakeMlflow() as server:
        stoker("track", "push", identity, "--to", f"mlflow={server.url}", code=0)
        assert [step for step, _ in server.values("loss")] == list(range(1, 21))


def test_a_server_without_answers_does_not_keep_the_run(stoker, tmp_path):
    with FakeMlflow() as server:
        server.hang_s = 300
        server.fail("", *["hang"] * 100)
        job(tmp_path, f"mlflow: '{server.url}'")
        begin = time.monotonic()
        done = stoker("run", "job.yaml", code=0, env=WITH_MODULE)
        assert time.monotonic() - begin < 60
        assert "trackers: they did not receive all points (" in done.err
        assert "  try: stoker track push " in done.err


def test_a_killed_supervisor_leaves_no_process(stoker, tmp_path):
    (tmp_path / "wait").touch()
    with FakeMlflow() as server:
        made = job(tmp_path, f"mlflow: '{server.url}'")
        started = stoker.start("run", "job.yaml", env=WITH_MODULE)
        wait_for(lambda: len(server.values("loss")) == 20)

        def trackers() -> list[int]:
            run = str(made.run_folder().resolve()).encode()
            found = []
            for entry in Path("/proc").iterdir():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[1:3] == [b"track", b"push"] and run in words:
                    found.append(int(entry.name))
            return found

        assert len(trackers()) == 1
        os.kill(started.pid, signal.SIGKILL)
        wait_for(lambda: trackers() == [])
        (tmp_path / "wait").unlink()
        wait_for(lambda: made.processes() == [])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("mlflow: 'sqlite:///x.db'", "record.mlflow: 'sqlite:///x.db' does not begin with http:// or https://"),
        ("mlflow_register: a/b", "record.mlflow_register: 'a/b' contains / or :, which names of models must not"),
        (
            "mlflow_register_path: a",
            "record.mlflow_register_path: needs record.mlflow_register, the name of the model",
        ),
        ("tensorboard: 5", "record.tensorboard: expected true or false, got '5'"),
        ("mlfow: x", "unknown key 'mlfow'; did you mean 'mlflow'?"),
    ],
)
def test_a_bad_value_is_an_error_of_the_job_file(stoker, tmp_path, record, message):
    job(tmp_path, record)
    refused = stoker("run", "job.yaml", code=2).err.splitlines()[0]
    assert refused.split(": ", 1)[1] == message
