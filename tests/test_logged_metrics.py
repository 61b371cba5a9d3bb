"""Metrics that programs log: stoker.log in scripts that run, die and resume, and files written by a shell and awk. What
status, top, report and explain show of them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import run_folders
from conftest import MODULE
from running import Job, python, wait_for

WITH_MODULE = {"PYTHONPATH": str(MODULE)}


def script(folder: Path, name: str, text: str) -> str:
    python(folder, name, text)
    return f"{sys.executable} {name}"


def curves(stoker) -> dict[str, dict]:
    """The metrics of the report of the last run, by name."""
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)
    return {metric["name"]: metric for metric in report["runs"][0]["metrics"]}


def status(stoker) -> dict:
    return json.loads(stoker("status", "last", "--json", code=0).out)["runs"][0]


def points(job: Job, attempt: int = 1, rank: int = 0) -> list[str]:
    file = job.run_folder() / f"attempts/{attempt}/points-{rank:04}.csv"
    return file.read_text().splitlines() if file.exists() else []


LOGS_ON_ALL_RANKS = """
import os, stoker
rank = int(os.environ["RANK"])
for step in range(1, 11):
    stoker.log({"loss": 1 / step + rank, "val/accuracy, %": 10 * step}, step=step)
stoker.log({"nan at last": float("nan"), "only on rank 0": 1} if rank == 0 else {"nan at last": 2}, step=10)
stoker.summary({"best": 5 + rank})
"""


def test_metrics_of_all_ranks_are_combined(stoker, tmp_path):
    Job(tmp_path, script(tmp_path, "train.py", LOGS_ON_ALL_RANKS), ranks=2)
    run = stoker("run", "job.yaml", code=0, env=WITH_MODULE)
    assert ", loss 0.6" in run.err

    found = status(stoker)
    assert found["step"] == 10
    assert found["metrics"]["loss"] == {
        "step": 10,
        "mean": pytest.approx(0.6),
        "lowest": pytest.approx(0.1),
        "highest": pytest.approx(1.1),
        "ranks": 2,
    }
    assert found["metrics"]["nan at last"]["mean"] is None
    assert found["metrics"]["only on rank 0"]["ranks"] == 1
    table = stoker("status", "last", code=0).out
    assert "step 10" in table
    assert "loss 0.6" in table

    top = json.loads(stoker("top", "last", "--json", code=0).out)["ranks"]
    assert [rank["metrics"]["loss"]["value"] for rank in top] == pytest.approx([0.1, 1.1])
    assert [rank["step"] for rank in top] == [10, 10]
    assert "loss 0.600 at step 10 (0.100 to 1.10 on 2 ranks)\n" in stoker("top", "last", code=0).out

    metrics = curves(stoker)
    loss = metrics["loss"]
    assert loss["step"] == list(range(1, 11))
    assert loss["mean"] == pytest.approx([1 / step + 0.5 for step in range(1, 11)])
    assert loss["lowest"] == pytest.approx([1 / step for step in range(1, 11)])
    assert loss["highest"] == pytest.approx([1 / step + 1 for step in range(1, 11)])
    assert loss["ranks"] == [2] * 10
    assert metrics["val/accuracy, %"]["mean"][-1] == 100
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"][0]
    assert report["summary"] == {"best": {"mean": 5.5, "lowest": 5, "highest": 6, "ranks": 2}}
    assert "nan at last is NaN from step 10" in report["notes"]
    assert report["result"].startswith("test: loss 0.600 after 10 steps, ")
    text = stoker("report", "last", "--format", "text", code=0).out
    assert "\nmetrics (attempts/*/points-*.csv, mean over ranks)\n" in text
    stoker("report", "last", code=0)
    html = (tmp_path / "runs" / status(stoker)["run"] / "report.html").read_text()
    assert "val/accuracy, %" in html
    assert "mean over ranks" in html


KILLED_AND_RESUMED = """
import pathlib, stoker, time
state = pathlib.Path("state.txt")
first = int(state.read_text()) + 1 if state.exists() else 1
attempt = 2 if state.exists() else 1
for step in range(first, 41):
    stoker.log({"loss": 1000 * attempt + step}, step=step)
    if step == 20 and attempt == 1:
        state.write_text("20")
    if step == 30 and attempt == 1:
        print("waiting", flush=True)
        time.sleep(600)
"""


def test_points_survive_a_kill_and_a_resume_continues_the_curve(stoker, tmp_path):
    job = Job(tmp_path, script(tmp_path, "train.py", KILLED_AND_RESUMED), ranks=1)
    started = stoker.start("run", "job.yaml", env=WITH_MODULE)
    wait_for(lambda: b"waiting" in job.log(0))
    # In the file without a flush by the program, while it still runs.
    wait_for(lambda: len(points(job)) == 1 + 30)
    assert status(stoker)["step"] == 30
    (pid,) = job.running("train.py")
    os.kill(pid, signal.SIGKILL)
    started.communicate()
    stoker("resume", "last", "--from-start", code=0, env=WITH_MODULE)
    assert len(points(job, attempt=2)) == 1 + 20
    loss = curves(stoker)["loss"]
    assert loss["step"] == list(range(1, 41))
    assert loss["mean"] == [1000 + step for step in range(1, 21)] + [2000 + step for step in range(21, 41)]
    assert loss["attempt"] == [1] * 20 + [2] * 20


def test_the_later_attempt_counts_from_its_first_step(stoker):
    run = run_folders.RunFolder.create(stoker.folder / "runs", "mine", command=["python", "train.py"], params={})
    begin = run_folders.BEGIN
    run.started(1, begin)
    lines = [f"{begin + step},{step},{step},loss" for step in range(1, 131)]
    lines += [f"{begin + 120},{step},1,val" for step in (60, 120)]
    lines += [f"{begin},0,7,parameters"]
    (run.attempt(1) / "points-0000.csv").write_text("\n".join(lines) + "\n")
    run.ended(1, begin + 130, "failed", 1)
    run.started(2, begin + 200, resume="step-100", resume_step=100)
    lines = [f"{begin + 100 + step},{step},{1000 + step},loss" for step in (101, 103, 102, 103)]
    (run.attempt(2) / "points-0000.csv").write_text("time,step,value,metric\n" + "\n".join(lines) + "\n1,2")
    run.ended(2, begin + 300, "done", 0)
    metrics = curves(stoker)
    loss = metrics["loss"]
    assert loss["step"] == list(range(1, 104))
    assert loss["mean"][98:] == [99, 100, 1101, 1102, 1103]
    assert loss["attempt"][98:] == [1, 1, 2, 2, 2]
    # The checkpoint of step 100 knows nothing of step 120, and has the parameters.
    assert metrics["val"]["step"] == [60]
    assert metrics["parameters"]["mean"] == [7]


def test_an_explanation_names_the_step_from_which_a_metric_is_nan(stoker):
    run = run_folders.RunFolder.create(stoker.folder / "runs", "mine", command=["python", "train.py"], params={})
    run.started(1, run_folders.BEGIN)
    (run.attempt(1) / "points-0000.csv").write_text(",1,0.5,loss\n,2,nan,loss\n,3,nan,loss\n")
    run.ended(1, run_folders.BEGIN + 60, "done", 0)
    found = json.loads(stoker("explain", "last", "--json").out)
    assert "metric-not-finite" in json.dumps(found)
    assert "loss is NaN from step 2" in stoker("explain", "last").out


SHELL = r"""#!/bin/bash
points=$STOKER_ATTEMPT_DIR/points-$(printf %04d "$RANK")-solver.csv
for step in 1 2 3; do
  echo "$(date +%s.%N),$step,0.$step,residual" >> "$points"
done
printf 'residual 0.4\nother line\nresidual nan\n' |
  awk -v out="$points" '/residual/ { printf ",%d,%s,residual\n", 3 + ++step, $2 >> out; fflush(out) }'
echo ",,3.5,total" >> "$points"
"""


def test_a_shell_and_awk_write_the_same_format(stoker, tmp_path):
    (tmp_path / "solve.sh").write_text(SHELL)
    Job(tmp_path, "bash solve.sh", ranks=2)
    stoker("run", "job.yaml", code=0)
    residual = curves(stoker)["residual"]
    assert residual["step"] == [1, 2, 3, 4, 5]
    assert residual["mean"] == [0.1, 0.2, 0.3, 0.4, None]
    assert residual["ranks"] == [2] * 5
    report = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"][0]
    assert report["summary"]["total"]["mean"] == 3.5


def test_a_restart_without_steps_continues_after_the_checkpoint(stoker, tmp_path):
    text = "import stoker\nstoker.log({'a': 1})\nstoker.log({'a': 2}, step=500)\nstoker.log({'a': 3})\n"
    program = [sys.executable, "-c", text]
    attempt = {"STOKER_ATTEMPT_DIR": str(tmp_path), "RANK": "3", "PYTHONPATH": str(MODULE)}
    subprocess.run(program, check=True, env={**attempt, "STOKER_RESUME": "/checkpoints/step-200"})
    lines = (tmp_path / "points-0003.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["step", "201", "500", "501"]
    subprocess.run(program, check=True, env={**attempt, "STOKER_TASK": "12"})
    assert (tmp_path / "points-0012.csv").read_text().splitlines()[1].split(",")[1] == "1"


def test_outside_a_run_a_note_is_printed_once(tmp_path):
    text = "import stoker\nfor i in range(3): stoker.log({'a': 1})\nstoker.summary({'a': 1})\n"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("STOKER_", "RANK"))}
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**environment, "PYTHONPATH": str(MODULE)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == (
        "stoker.log: metrics are not recorded outside a run (STOKER_ATTEMPT_DIR is not set)\n"
        "  try: start the script with `stoker run`\n"
    )
    assert list(tmp_path.iterdir()) == []


FORKS = """
import multiprocessing, os, stoker
stoker.log({"parent": 1}, step=1)
def work(number):
    stoker.log({"worker": number}, step=number)
context = multiprocessing.get_context("fork")
workers = [context.Process(target=work, args=(number,)) for number in range(1, 5)]
for worker in workers: worker.start()
for worker in workers: worker.join()
stoker.log({"parent": 2}, step=2)
"""


def test_forked_workers_repeat_nothing(tmp_path):
    environment = {**os.environ, "STOKER_ATTEMPT_DIR": str(tmp_path), "RANK": "0", "PYTHONPATH": str(MODULE)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], check=True, env=environment)
    lines = [
        line for file in tmp_path.iterdir() for line in file.read_text().splitlines() if not line.startswith("time")
    ]
    expected = [f"{number},{number},parent" for number in (1, 2)]
    expected += [f"{number},{number},worker" for number in (1, 2, 3, 4)]
    assert sorted(line.split(",", 1)[1] for line in lines) == sorted(expected)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("log({'a': True})", "stoker.log: 'a' is a bool, expected a number\n  try: float(a)"),
        ("log({'a': numpy.bool_(True)})", "stoker.log: 'a' is a bool, expected a number\n  try: float(a)"),
        ("summary({'a': 'x'})", "stoker.summary: 'a' is not a number, but str"),
        ("log({'a': {'b': 1}})", "stoker.log: 'a' is not a number, but dict"),
        ("log({'a': None})", "stoker.log: 'a' is not a number, but NoneType"),
        (
            "log({'a': numpy.ones(2)})",
            "stoker.log: 'a' has the shape (2,), expected a single number\n"
            "  try: log a.mean(), or one name for each value",
        ),
        ("log({'a': 10**400})", "stoker.log: 'a' is not a number: int too large to convert to float"),
        ("log({1: 1})", "stoker.log: the name 1 is not a str, but int"),
        ("log({'': 1})", "metric '': a name is required"),
        ("log([1])", "stoker.log: expected a dict of names and numbers, got list"),
        ("log({'a': 1}, step=1.5)", "stoker.log: step=1.5 is not an int, but float"),
        ("log({'a': 1}, step=True)", "stoker.log: step=True is not an int, but bool"),
        ("log({'a': 1}, step=-1)", "step -1: must not be negative"),
        ("log({'a': 1}, step=2**63)", "stoker.log: step=9223372036854775808: must be from 0 to 2**63 - 1"),
    ],
)
def test_other_values_are_refused_with_their_name(call, message, monkeypatch):
    import numpy
    import stoker

    monkeypatch.setattr("stoker.metrics._is_open", True)
    with pytest.raises(stoker.InvalidError) as error:
        eval(f"stoker.{call}", {"stoker": stoker, "numpy": numpy})
    assert str(error.value) == message


def test_numbers_of_numpy_and_torch_are_values(tmp_path):
    text = """
import numpy, stoker
stoker.log({"f": numpy.float32(1.5), "i": numpy.int64(3), "z": numpy.array(2.0), "n": numpy.float64("nan")}, numpy.int64(7))
try:
    import torch
    stoker.log({"t": torch.tensor(2.5), "g": torch.tensor(1.0, requires_grad=True)}, step=7)
except ImportError:
    stoker.log({"t": 2.5, "g": 1}, step=7)
"""
    environment = {**os.environ, "STOKER_ATTEMPT_DIR": str(tmp_path), "RANK": "0", "PYTHONPATH": str(MODULE)}
    subprocess.run([sys.executable, "-c", text], check=True, env=environment)
    lines = (tmp_path / "points-0000.csv").read_text().splitlines()[1:]
    assert [line.split(",", 1)[1] for line in lines] == [
        "7,1.5,f",
        "7,3,i",
        "7,2,z",
        "7,nan,n",
        "7,2.5,t",
        "7,1,g",
    ]
