"""stoker status: the exact contents of its table of runs."""

import json
import re
import subprocess
import sys

import pytest
import run_folders
from running import wait_for


def row_of(out: str, run: str) -> list[str]:
    """The cells of a run's line."""
    (line,) = (line for line in out.splitlines() if line.startswith(run))
    return re.split(r"\s{2,}", line.strip())


def test_a_done_run_shows_its_last_validation(stoker):
    folder = run_folders.killed_and_resumed(stoker.folder / "runs")
    row = row_of(stoker("status", "last", code=0).out, folder.path.name)
    assert row[-1] == "top-1 61.2 %, attempt 2"
    (run,) = json.loads(stoker("status", "--json", code=0).out)["runs"]
    assert run["validation_top1"] == 0.6124
    assert (run["state"], run["attempts"], run["epoch"], run["step"]) == ("done", 2, 2, 294)


def test_a_failed_run_shows_the_reason_instead_of_a_validation(stoker):
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    folder.steps(1, 0, 1, 130, run_folders.BEGIN)
    folder.epochs(1, [(0, 98, 1.71, 0.352, 1.52, 0.4412, 0.9021, 20.4, 893.0, 6.1)])
    folder.ended(1, run_folders.BEGIN + 40, "failed", 7, first_rank=1, reason="rank 1 (node1) left: exit code 7")
    row = row_of(stoker("status", code=0).out, folder.path.name)
    assert row[-1] == "rank 1 (node1) left: exit code 7"
    (run,) = json.loads(stoker("status", "--json", code=0).out)["runs"]
    assert (run["validation_top1"], run["exit_code"]) == (0.4412, 7)


def test_a_run_without_validation_has_an_empty_note(stoker):
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    folder.steps(1, 0, 1, 20, run_folders.BEGIN)
    folder.epochs(1, [])
    folder.ended(1, run_folders.BEGIN + 40, "done", 0)
    (run,) = json.loads(stoker("status", "--json", code=0).out)["runs"]
    assert run["validation_top1"] is None
    assert "top-1" not in stoker("status", code=0).out


def test_a_missing_runs_folder_is_not_an_empty_one(stoker):
    assert stoker("status", code=0).out == "no runs in runs/ (--runs DIR selects a different folder)\n"
    assert stoker("status", "--runs", "typo", code=1).err == "status: typo: no such folder (--runs)\n"
    (stoker.folder / "other").mkdir()
    assert (
        stoker("status", "--runs", "other", code=0).out == "no runs in other/ (--runs DIR selects a different folder)\n"
    )


# A run that samples the GPUs of a second node itself, all idle for a minute.
IDLE = """
import os, sys, time
busy = sys.argv[1]
with open(os.environ["STOKER_ATTEMPT_DIR"] + "/system-0001.csv", "w", buffering=1) as file:
    file.write("time,gpu0.busy_percent,gpu1.busy_percent\\n")
    for second in range(-60, 600):
        file.write(f"{time.time() + min(second, 0)},0,{busy if second % 2 else 0}\\n")
        if second >= 0:
            time.sleep(1)
"""


def start_run_with_gpus(stoker, busy: int):
    (stoker.folder / "gpus.py").write_text(IDLE)
    (stoker.folder / "job.yaml").write_text(
        f"name: gpus\nrun: {sys.executable} gpus.py {busy}\nrecord: {{sample_every: 1h}}\n"
    )
    run = stoker.start("run", "job.yaml")
    wait_for(lambda: list(stoker.folder.glob("runs/*/attempts/1/system-0001.csv")))
    return run


def test_a_run_with_idle_gpus_is_reported_and_cancelled_only_if_asked(stoker):
    run = start_run_with_gpus(stoker, 0)
    watch = stoker.start("status", "--watch", "--idle-gpus", "30s")
    assert re.search(r"its 2 GPUs have been idle for 1 min", watch.stderr.readline())
    assert "  try: stoker top " in watch.stderr.readline()
    assert run.poll() is None
    watch.kill()
    watch.communicate()
    watched = stoker("status", "--watch", "--idle-gpus", "30s", "--cancel-idle", code=0)
    assert "; cancelling it (--cancel-idle)" in watched.err
    run.communicate()
    assert run.returncode != 0


def test_a_run_that_uses_a_gpu_now_and_then_is_left_alone(stoker):
    run = start_run_with_gpus(stoker, 60)
    watch = stoker.start("status", "--watch", "--idle-gpus", "10s", "--cancel-idle")
    with pytest.raises(subprocess.TimeoutExpired):
        watch.communicate(timeout=6)
    watch.kill()
    assert "idle" not in watch.communicate()[1]
    assert run.poll() is None
    run.kill()
    run.communicate()


def test_options_of_idle_gpus_need_each_other(stoker):
    assert "--idle-gpus needs --watch" in stoker("status", "--idle-gpus", "10m", code=2).err
    assert "--cancel-idle needs --idle-gpus" in stoker("status", "--watch", "--cancel-idle", code=2).err
    assert "must be at least 10s" in stoker("status", "--watch", "--idle-gpus", "5s", code=2).err
