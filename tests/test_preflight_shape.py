"""`stoker check` and `stoker submit` on arrays: floods of short jobs, arrays without a cap, grids that a search replaces."""

import itertools
import json

import pytest


@pytest.fixture
def findings(stoker):
    """The findings of `stoker check` about an array over these rows, by rule."""

    def check(rows, job, header="a"):
        (stoker.folder / "values.csv").write_text("\n".join([header, *map(str, rows)]) + "\n")
        (stoker.folder / "job.yaml").write_text(f"run: echo ${{params.{header.split(',')[0]}}}\nsite: none\n{job}")
        value = json.loads(stoker("check", "job.yaml", "--json").out)
        return {finding["rule"]: finding for finding in value["findings"]}

    return check


def test_a_flood_of_separate_short_jobs_is_found(findings):
    job = "array: {over: values.csv, at_once: 20, bundle: 1}\nresources: {time: 1m}\n"
    finding = findings(range(100), job)["array-flood"]
    assert finding["level"] == "time"
    assert finding["what"] == ("array.bundle: 100 jobs of at most 1m: starting each one costs Slurm more than the work")
    assert finding["cure"] == "omit array.bundle: Stoker then packs short tasks"
    assert finding["where"] == "job.yaml:3:48"
    assert "array-flood" not in findings(range(99), job)
    assert "array-flood" not in findings(range(100), job.replace("time: 1m", "time: 10m"))
    assert "array-flood" not in findings(range(100), job.replace("bundle: 1", "bundle: 10"))
    ranks = "array: {over: values.csv, at_once: 20}\nresources: {time: 1m, ranks_per_node: 2}\n"
    assert findings(range(100), ranks)["array-flood"]["cure"] == "stoker farm TASKS"


def test_a_farm_is_suggested_for_many_short_tasks(findings):
    job = "array: {over: values.csv, at_once: 20}\nresources: {time: 1m}\n"
    finding = findings(range(100), job)["short-tasks"]
    assert (finding["level"], finding["cure"]) == ("advice", "stoker farm TASKS")
    assert finding["what"].startswith("resources.time: 100 tasks of at most 1m: a farm packs them into few allocations")
    assert "short-tasks" not in findings(range(99), job)
    assert "short-tasks" not in findings(range(100), job.replace("1m", "1h"))


def test_an_uncapped_array_is_advice_until_it_is_large(findings):
    job = "array: {over: values.csv}\nresources: {time: 1h}\n"
    assert "uncapped-array" not in findings(range(99), job)
    assert findings(range(100), job)["uncapped-array"]["level"] == "advice"
    finding = findings(range(1000), job)["uncapped-array"]
    assert (finding["level"], finding["cure"]) == ("time", "array: {at_once: 20}")
    assert finding["what"].startswith("array.over: 1 000 jobs without a limit on concurrent ones")
    assert "uncapped-array" not in findings(range(1000), job.replace("csv}", "csv, at_once: 20}"))


GRID = "array: {over: values.csv, at_once: 8}\nresources: {time: 1h}\n"


def test_a_full_grid_of_hyperparameters_suggests_a_search(findings):
    rows = [f"{lr},{wd}" for lr, wd in itertools.product([0.1, 0.01, 0.001, 0.0001], [0, 1e-4, 1e-3, 1e-2, 0.1, 1])]
    finding = findings(rows, GRID, "lr,wd")["grid-search"]
    assert finding["level"] == "advice"
    assert finding["what"].startswith("array.over: 24 tasks are the full grid over lr, wd: a search finds good values")
    assert finding["cure"] == "stoker sweep SWEEP.yaml"
    assert "grid-search" not in findings(rows[1:], GRID, "lr,wd")
    assert "grid-search" not in findings([*rows[1:], "0.5,0.5"], GRID, "lr,wd")
    # Repetitions and inputs are all wanted.
    assert "grid-search" not in findings(rows, GRID, "lr,seed")
    assert "grid-search" not in findings([row.replace("0.1,", "a.csv,") for row in rows], GRID, "lr,wd")


@pytest.mark.parametrize(
    ("rows", "job", "message"),
    [
        (1000, "array: {over: values.csv}\n", "job.yaml:3:15: array.over: 1 000 jobs without a limit on concurrent"),
        (
            100,
            "array: {over: values.csv, at_once: 2, bundle: 1}\nresources: {time: 2m}\n",
            "job.yaml:3:47: array.bundle: 100 jobs of at most 2m: starting each one costs Slurm more than the work",
        ),
    ],
)
def test_submit_refuses_what_other_users_would_wait_for(stoker, findings, rows, job, message):
    findings(range(rows), job)
    refused = stoker("submit", "job.yaml", code=2)
    assert refused.err.startswith(message)
    assert "\n  stoker submit --force submits it anyway\n" in refused.err
    forced = stoker("submit", "job.yaml", "--force")
    assert f"forced: {message}" in forced.err


def test_submit_refuses_a_script_with_a_flood(stoker):
    def submit(directives, *words):
        (stoker.folder / "job.sh").write_text(f"#!/bin/bash\n{directives}\necho $SLURM_ARRAY_TASK_ID\n")
        return stoker("submit", "job.sh", *words).err

    refusal = "\n  stoker submit --force submits it anyway\n"
    assert refusal in submit("#SBATCH --array=1-100%5 --time=1")
    assert refusal in submit("#SBATCH --array=1-1000 --time=60")
    for accepted in ("#SBATCH --array=1-99%5 --time=1", "#SBATCH --array=1-999 --time=60", "#SBATCH --array=1-1000%20"):
        assert refusal not in submit(accepted)
    assert refusal not in submit("#SBATCH --array=1-1000 --time=60", "--force")
