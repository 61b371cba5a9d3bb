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
