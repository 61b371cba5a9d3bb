"""stoker top: what each rank does, from what it records and from the machine."""

import json

import pytest
import run_folders
from running import Job, wait_for


def test_ranks_are_shown_with_speed_and_time_split(stoker):
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    for rank in (0, 1):
        folder.steps(1, rank, 1, 50, run_folders.BEGIN)
    folder.ended(1, run_folders.BEGIN + 40, "done", 0)
    shown = json.loads(stoker("top", "last", "--json", code=0).out)
    assert [rank["step"] for rank in shown["ranks"]] == [50, 50]
    shares = shown["ranks"][0]["shares"]
    assert shares["backward"] == pytest.approx(0.57, abs=0.1)
    assert sum(share for share in shares.values() if share) <= 1
    lines = stoker("top", "last", code=0).out.splitlines()
    assert lines[0].startswith(f"{folder.path.name}: done")
    assert lines[1].split()[:6] == ["RANK", "HOST", "PHASE", "EPOCH", "STEP", "STEPS/S"]
    assert lines[2].split()[0] == "0"
    assert "\x1b" not in "\n".join(lines)


def test_a_command_without_metrics_shows_machine_values(stoker):
    job = Job(stoker.folder, "sleep 600")
    stoker.start("run", "job.yaml")

    def cores() -> list:
        shown = stoker("top", "last", "--json")
        ranks = json.loads(shown.out).get("ranks", []) if shown.code == 0 else []
        return [rank["cpu_cores"] for rank in ranks if rank["memory_bytes"]]

    wait_for(lambda: len(cores()) == 2)
    once = stoker("top", "last", code=0).out.splitlines()
    assert ": running" in once[0]
    live = stoker.start("top", "last", "--every", "200ms")
    stoker("cancel", "last", code=0)
    out, _ = live.communicate()
    assert live.returncode == 0
    assert ": cancelled" in out
    wait_for(lambda: job.processes() == [])


def test_the_screen_is_cleared_on_request(stoker):
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    folder.ended(1, run_folders.BEGIN + 40, "done", 0)
    once = stoker("top", "last", "--redraw", code=0).out
    assert once.startswith(f"{folder.path.name}: done")
    repeated = stoker("top", "last", "--redraw", "--every", "100ms", code=0).out
    assert repeated == "\x1b[H\x1b[2J" + once


def test_an_interval_that_is_too_short_is_refused(stoker):
    assert stoker("top", "last", "--every", "1ms", code=2).err == "top: --every 1ms: must be at least 100ms\n"


STUDY = "space: {lr: [0.1, 0.01]}\nobjectives: {loss: minimize}\nsampler: grid\ntrials: 2\n"


def test_a_study_is_shown_by_its_file_and_its_folder(stoker):
    (stoker.folder / "lr.yaml").write_text(STUDY)
    stoker("sweep", "ask", "lr.yaml", code=0)
    stoker("sweep", "tell", "lr.yaml", "0", "0.5", code=0)
    stoker("sweep", "ask", "lr.yaml", code=0)
    stoker("sweep", "report", "lr.yaml", "1", "5", "0.7", code=0)
    for name in ("lr.yaml", "lr.study"):
        lines = stoker("top", name, code=0).out.splitlines()
        assert lines[0] == "lr: minimize loss, sampler grid, 1 complete of 2, 1 running"
        assert lines[1].startswith("best     loss 0.5 in trial 0, ")
        assert lines[-1].split()[0] == "1"
    shown = json.loads(stoker("top", "lr.yaml", "--json", code=0).out)
    assert shown["counts"] == {"complete": 1, "pruned": 0, "running": 1, "failed": 0}
    assert stoker("top", "lr.yaml", "--task", "1", code=2).err == "top: --task: lr.yaml is a study\n"
    (stoker.folder / "other.yaml").write_text(STUDY)
    assert "other.study" in stoker("top", "other.yaml", code=1).err


def test_a_study_is_followed_until_no_trial_runs(stoker):
    (stoker.folder / "lr.yaml").write_text(STUDY)
    stoker("sweep", "ask", "lr.yaml", code=0)
    live = stoker.start("top", "lr.yaml", "--every", "100ms")
    assert live.stdout.readline().endswith("1 running\n")
    stoker("sweep", "tell", "lr.yaml", "0", "0.5", code=0)
    out, _ = live.communicate()
    assert live.returncode == 0
    assert "lr: minimize loss, sampler grid, 1 complete of 2\n" in out


def test_running_studies_of_the_folder_follow_the_ranks(stoker):
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    folder.ended(1, run_folders.BEGIN + 40, "done", 0)
    (stoker.folder / "lr.yaml").write_text(STUDY)
    stoker("sweep", "ask", "lr.yaml", code=0)
    line = "lr.study  lr: minimize loss, sampler grid, 0 complete of 2, 1 running"
    assert stoker("top", "last", code=0).out.splitlines()[-1] == line
    stoker("sweep", "tell", "lr.yaml", "0", "0.5", code=0)
    assert "lr.study" not in stoker("top", "last", code=0).out
