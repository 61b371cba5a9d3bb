"""stoker.profile: the parts of the steps of a loop, in a run and outside, and what becomes of them after a kill or an error."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stoker
from conftest import MODULE
from running import wait_for

LOOP = """
import sys, time
import stoker
with stoker.profile(*sys.argv[1:]) as p:
    for epoch in range(2):
        for i in p.steps([0.004] * 5):
            with p.part("forward"):
                time.sleep(i)
                with p.part("communication"):
                    time.sleep(2 * i)
"""


def rows_of(file: Path) -> list[dict[str, float]]:
    header, *lines = file.read_text().splitlines()
    return [dict(zip(header.split(","), map(float, line.split(",")), strict=True)) for line in lines]


@pytest.fixture
def outside(monkeypatch):
    for name in ("STOKER_ATTEMPT_DIR", "RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def stoker_command(request):
    return request.getfixturevalue("stoker")


def test_a_run_is_profiled_by_rank_and_part(stoker_command, tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    (tmp_path / "job.yaml").write_text(
        f"name: loop\nrun: {sys.executable} loop.py\nresources: {{ranks_per_node: 2}}\n"
        f"environment: {{variables: {{PYTHONPATH: {MODULE}}}}}\n"
    )
    stoker_command("run", "job.yaml", code=0)
    found = json.loads(stoker_command("profile", "--steps", "1..10", "--json", code=0).out)
    assert (found["source"], found["steps"]["last"]) == ("program", 10)
    assert [rank["steps"] for rank in found["ranks"]] == [10, 10]
    for rank in found["ranks"]:
        assert sum(rank["nanoseconds"].values()) == rank["nanoseconds_total"]
        assert rank["seconds"]["forward"] >= 0.004
        assert rank["seconds"]["communication"] >= 0.008
        assert rank["seconds"]["optimizer"] == 0


def test_nested_parts_exclude_each_other_and_add_up_to_the_step(outside, tmp_path):
    with stoker.profile(tmp_path / "steps") as p:
        for _ in p.steps(range(3)):
            with p.part("backward"):
                time.sleep(0.002)
                with p.part("communication"), p.part("communication"):
                    time.sleep(0.01)
    rows = rows_of(tmp_path / "steps/profile-0000.csv")
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert row["communication_s"] >= 0.01 and row["backward_s"] >= 0.002
        parts = [value for name, value in row.items() if name.endswith("_s") and name != "step_s"]
        assert len(parts) == 7 and all(value >= 0 for value in parts)
        assert sum(parts) <= row["step_s"] + 1e-8
    assert sum(row["backward_s"] for row in rows) < sum(row["communication_s"] for row in rows)


def test_fetching_a_batch_is_the_wait_for_data(outside, tmp_path):
    def slow():
        for i in range(3):
            time.sleep(0.01)
            yield i

    with stoker.profile(tmp_path) as p:
        assert list(p.steps(slow())) == [0, 1, 2]
    assert all(row["data_s"] >= 0.01 for row in rows_of(tmp_path / "profile-0000.csv"))


def test_a_second_profile_continues_the_steps(outside, tmp_path):
    for _ in range(2):
        with stoker.profile(tmp_path) as p:
            list(p.steps("ab"))
    assert [row["step"] for row in rows_of(tmp_path / "profile-0000.csv")] == [1, 2, 3, 4]


def test_unfinished_steps_are_not_recorded(outside, tmp_path):
    def fails() -> None:
        with stoker.profile(tmp_path) as p:
            for i in p.steps(range(5)):
                if i == 2:
                    raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    with stoker.profile(tmp_path / "b") as p:
        for i in p.steps(range(5)):
            if i == 1:
                break
    assert len(rows_of(tmp_path / "profile-0000.csv")) == 2
    assert len(rows_of(tmp_path / "b/profile-0000.csv")) == 1


def test_unknown_parts_are_errors_with_the_names(outside, tmp_path):
    with stoker.profile(tmp_path) as p:
        for name in ("fwd", 7, []):
            with pytest.raises(stoker.InvalidError, match="one of: 'data', 'host_to_device', 'forward'"):
                p.part(name)


def test_outside_a_run_the_loop_works_and_one_note_has_the_cure(outside, capfd):
    with stoker.profile() as p:
        assert list(p.steps(range(3))) == [0, 1, 2]
    assert capfd.readouterr().err == (
        "stoker.profile: steps are not recorded outside a run (STOKER_ATTEMPT_DIR is not set)\n"
        '  try: start the script with `stoker run`, or name a folder: stoker.profile("steps")\n'
    )


def test_files_of_other_processes_and_unwritable_folders_stop_the_recording_only(outside, tmp_path, capfd):
    (tmp_path / "profile-0000.csv").write_text("by a peer\n")
    (tmp_path / "file").write_text("")
    for folder, words in ((tmp_path, "another process of this rank"), (tmp_path / "file", "")):
        with stoker.profile(folder) as p:
            assert list(p.steps(range(3))) == [0, 1, 2]
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"stoker.profile: {folder}/profile-0000.csv") and words in line
        assert line.endswith("; steps are not recorded")
    assert (tmp_path / "profile-0000.csv").read_text() == "by a peer\n"


def test_a_full_disk_stops_the_recording_only(outside, capfd, monkeypatch, tmp_path):
    def fails(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with stoker.profile(tmp_path) as p:
        for i in p.steps(range(4)):
            if i == 2:
                monkeypatch.setattr("stoker.profiling.os.write", fails)
    monkeypatch.undo()
    assert len(rows_of(tmp_path / "profile-0000.csv")) == 2
    assert "No space left on device; later steps are not recorded" in capfd.readouterr().err


def test_a_killed_process_leaves_whole_steps(outside, stoker_command, tmp_path):
    code = "import stoker\nwith stoker.profile('.') as p:\n    for _ in p.steps(iter(int, 1)): pass"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(MODULE)})
    file = tmp_path / "profile-0000.csv"
    wait_for(lambda: file.exists() and file.stat().st_size > 20_000)
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = json.loads(stoker_command("profile", file, "--steps", "1..", "--json", code=0).out)
    assert found["ranks"][0]["steps"] >= file.read_text().count("\n") - 2
