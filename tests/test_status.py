"""stoker status: the exact contents of its table of runs."""

import json
import re

import run_folders


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
