"""What `stoker logs`, `status`, `wait`, `cancel` and `resume` for unknown runs and finished runs."""

from pathlib import Path

import pytest
from running import Job, wait_for


@pytest.fixture
def run(stoker) -> Path:
    """The folder of a run of one rank that is done."""
    (stoker.folder / "job.yaml").write_text("name: small\nrun: echo hello\n")
    stoker("run", "job.yaml", code=0)
    (folder,) = (stoker.folder / "runs").iterdir()
    return folder


def test_logs_that_are_not_there_are_named(stoker, run: Path):
    def refused(*words: str, code: int) -> str:
        output = stoker("logs", "last", *words, code=code)
        assert output.out == ""
        return output.err

    assert refused("--rank", "-1", code=2) == "logs: --rank -1: ranks are counted from 0\n"
    assert refused("--rank", "7", code=1) == "attempt 1: rank 7 has no log (ranks 0 to 0 have)\n"
    assert refused("--attempt", "-2", code=2) == "logs: --attempt -2: attempts are counted from 1\n"
    assert refused("--attempt", "4", code=1) == f"run {run.name}: no attempt 4 (1 to 1 exist)\n"
    assert refused("--grep", "(", code=2) == "logs: --grep '(': missing ): (\n"


def test_an_unknown_run_is_an_error_that_lists_the_runs(stoker, run: Path):
    for command in ("cancel", "logs", "resume", "status", "wait"):
        output = stoker(command, "other", code=1)
        assert output.err == f"run 'other': not found in runs (newest: {run.name})\n"
    assert stoker("status", "--count", "0", code=2).err == "status: --count 0: must be at least 1\n"
    assert stoker("wait", "--timeout", "5", code=2).err == "wait: --timeout: '5' has no unit (write 5s, 5m or 5h)\n"


def test_cancel_needs_a_run(stoker, run: Path):
    assert stoker("cancel", code=2).err == (
        "cancel: names no run\n  try: stoker cancel --last for the newest run, stoker status for their ids\n"
    )
    assert stoker("cancel", "last", "--last", code=2).err == "cancel: 'last' and --last exclude each other\n"
    assert stoker("cancel", run.name, code=0).out == f"run {run.name}: has already ended (done)\n"


def test_a_run_that_is_done_is_neither_ended_nor_begun_again(stoker, run: Path):
    assert stoker("wait", code=0).out == f"run {run.name}: done\n"
    assert stoker("cancel", "--last", code=0).out == f"run {run.name}: has already ended (done)\n"
    assert stoker("resume", code=2).err == (
        f"run {run.name}: is done, there is nothing to resume\n  try: stoker rerun {run.name}      (starts a new run)\n"
    )
    assert stoker("run", run / "attempts/1", code=2).err == f"run {run.name}: is done already\n"
    assert (
        stoker("run", run, code=2).err == f"{run}: is a folder, but no attempt of a run\n  try: stoker run job.yaml\n"
    )
    assert [attempt.name for attempt in (run / "attempts").iterdir()] == ["1"]


def test_a_run_without_attempt_has_nothing_to_show(stoker, run: Path):
    (run / "attempts/1").rename(stoker.folder / "elsewhere")
    assert stoker("logs", code=1).err == f"run {run.name}: no attempt has started\n"
    assert stoker("cancel", "last", code=2).err == f"run {run.name}: has not started, nothing to cancel\n"
    assert stoker("wait", "--timeout", "100ms", code=1).err.splitlines()[-1] == f"run {run.name}: still created"


def test_a_running_attempt_is_not_started_twice(stoker):
    job = Job(stoker.folder, "sleep 300", ranks=1)
    stoker.start("run", job.path)
    wait_for(lambda: job.pid(0, "sleep"))
    run = job.run_folder()
    output = stoker("run", run / "attempts/1", code=2).err
    assert output == f"run {run.name}: is still running\n  try: stoker logs -f {run.name}\n"
    assert stoker("resume", code=2).err == output


def test_a_task_of_what_is_no_array_is_refused(stoker, run: Path):
    for command in ("logs", "top"):
        assert stoker(command, "--task", "1", code=2).err == f"{command}: --task: run {run.name} is not an array\n"
