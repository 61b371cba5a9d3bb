"""`stoker sweep run`: scripts as trials, whose objective comes from their points or output; failures, signals, pruning."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from running import wait_for

SWEEP = """
space: {lr: {min: 0.001, max: 1, log: true}, width: [16, 32]}
objectives: {loss: minimize}
sampler: sobol
"""


@pytest.fixture
def sweep(stoker):
    """`stoker sweep run` in a folder with lr.yaml, and files of scripts by name."""

    def command(*words, scripts=None, more="", **options):
        write(scripts, more)
        return stoker("sweep", "run", "lr.yaml", *words, **options)

    def write(scripts=None, more=""):
        (stoker.folder / "lr.yaml").write_text(SWEEP + more)
        for name, text in (scripts or {}).items():
            (stoker.folder / name).write_text(text)

    def trials():
        return json.loads(stoker("sweep", "show", "lr.study", "--top", "0", "--json", code=0).out)

    command.folder, command.trials, command.write = stoker.folder, trials, write
    command.start = lambda *words: stoker.start("sweep", "run", "lr.yaml", *words)
    return command


def test_a_script_gets_its_parameters_and_prints_its_result(sweep):
    script = "import sys; print('training', sys.argv[1:]); print(float(sys.argv[2]) ** 2)"
    done = sweep(
        "--trials", "3", "--", sys.executable, "train.py", "--lr", "{lr}", scripts={"train.py": script}, code=0
    )
    trials = sweep.trials()
    assert [trial["state"] for trial in trials] == ["complete"] * 3
    for trial in trials:
        assert trial["values"]["loss"] == pytest.approx(trial["params"]["lr"] ** 2)
        output = (sweep.folder / f"lr.study/trials/{trial['number']}/output.log").read_text()
        assert output.startswith(f"training ['--lr', '{trial['params']['lr']}']")
        assert output in done.out
        assert f"trial {trial['number']}: complete, loss " in done.err


def test_points_of_a_script_are_its_curve(sweep, module_environment):
    script = """
import stoker, sys
for step in range(5):
    stoker.log({"loss": 1 / (step + 1), "other": 7}, step=step)
print("loss: 99")
"""
    sweep(
        "--trials", "1", "--", sys.executable, "train.py", scripts={"train.py": script}, env=module_environment, code=0
    )
    (trial,) = sweep.trials()
    assert trial["values"]["loss"] == pytest.approx(0.2)
    assert trial["reports"]
    assert all(value == pytest.approx(1 / (step + 1)) for step, value in trial["reports"])


def test_without_placeholders_the_parameters_are_options(sweep):
    script = 'echo "$@" "trial $STOKER_TRIAL" "$STOKER_TRIAL_PARAMS"; echo 1'
    sweep("--trials", "1", "--quiet", "--", "sh", "train.sh", scripts={"train.sh": script}, code=0)
    (trial,) = sweep.trials()
    output = (sweep.folder / "lr.study/trials/0/output.log").read_text()
    lr, width = trial["params"]["lr"], trial["params"]["width"]
    assert output == f'--lr={lr} --width={width} trial 0 {{"lr":{lr},"width":{width}}}\n1\n'


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["sh", "-c", "exit 7"], "exit code 7"),
        (["sh", "-c", "kill -9 $$"], "killed by signal 9 (SIGKILL)"),
        (["sh", "-c", "echo fine"], "no loss in its points and its output"),
        (["sh", "-c", "echo loss: nan"], "loss is nan"),
        (["./missing"], "./missing: no such file or directory"),
    ],
)
def test_a_failed_trial_has_its_reason_and_three_end_the_sweep(sweep, command, message):
    done = sweep("--", *command, code=2)
    assert done.err.endswith("lr: the last 3 trials failed (--max-failed)\n  try: stoker sweep show lr.yaml\n")
    assert [(trial["state"], trial["message"]) for trial in sweep.trials()] == [("failed", message)] * 3


def test_the_pruner_stops_a_script(sweep):
    script = """
import sys, time
first = sys.argv[1] == "0"
for step in range(1, 200):
    print(f'{{"step": {step}, "loss": {0.1 if first else 0.9}}}', flush=True)
    if first and step == 3:
        break
    time.sleep(0.1)
"""
    sweep.write({"train.py": script}, "pruner: {kind: asha, min_resource: 1, reduction_factor: 2}\n")
    command = ["sh", "-c", f"exec {sys.executable} train.py $STOKER_TRIAL # {{lr}}"]
    done = sweep(
        "--trials", "2", "--", *command, more="pruner: {kind: asha, min_resource: 1, reduction_factor: 2}\n", code=0
    )
    assert "trial 1: pruned\n" in done.err
    assert [trial["state"] for trial in sweep.trials()] == ["complete", "pruned"]


def children_of(folder: Path) -> list[int]:
    """Processes that have the folder as their working directory."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if os.readlink(process / "cwd") == str(folder):
                    found.append(int(process.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_trial_and_the_sweep(sweep, number):
    sweep.write()
    process = sweep.start("--", "sh", "-c", "sleep 600 & echo started; wait")
    assert process.stdout.readline() == "started\n"
    process.send_signal(number)
    assert process.wait(timeout=60) == 128 + number
    (trial,) = sweep.trials()
    assert (trial["state"], trial["message"]) == ("failed", f"stopped by {number.name}")
    wait_for(lambda: not children_of(sweep.folder))


def test_a_killed_sweep_ends_its_trial_and_the_next_one_continues(sweep):
    sweep.write()
    process = sweep.start("--", "sh", "-c", "echo started; exec sleep 600")
    assert process.stdout.readline() == "started\n"
    process.kill()
    process.wait()
    wait_for(lambda: not children_of(sweep.folder))
    sweep("--trials", "1", "--", "sh", "-c", "echo 1", code=0)
    assert [trial["state"] for trial in sweep.trials()] == ["complete", "running"]


def test_several_processes_work_on_one_sweep(sweep):
    sweep.write(more="trials: 12\n")
    workers = [sweep.start("-q", "--", "sh", "-c", "sleep 0.1; echo 1") for _ in range(3)]
    time.sleep(0.1)
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0, 0]
    trials = sweep.trials()
    assert len(trials) == 12
    assert {trial["state"] for trial in trials} == {"complete"}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "sweep run: no command\n  try: stoker sweep run lr.yaml -- python train.py\n"),
        (["--", "a", "{lrr}"], "command: {lrr} is no parameter; did you mean 'lr'?\n"),
    ],
)
def test_wrong_commands_start_no_trial(sweep, words, error):
    assert sweep(*words, code=2).err.endswith(error)
    assert not (sweep.folder / "lr.study/trials").exists()
    assert not list((sweep.folder / "lr.study").glob("journal/*"))
