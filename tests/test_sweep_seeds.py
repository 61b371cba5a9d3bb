"""`seeds` of a sweep file: each trial runs once with each seed. Mean, median and spread, kill -9, retries, reruns."""

import json
import re
import sys

import pytest
from running import wait_until

SWEEP = """
job: job.yaml
space: {lr: [1, 2]}
objectives: {loss: minimize}
sampler: grid
seeds: [0, 1, 5]
"""
JOB = f"""
name: toy
run: {sys.executable} train.py ${{params.lr}} ${{params.seed}}
params: {{lr: 0.1, seed: 0}}
"""
TRAIN = "import sys\nprint('loss:', float(sys.argv[1]) + int(sys.argv[2]))\n"
SLOW = "import time\ntime.sleep(0.7)\n" + TRAIN
FAILS_ONCE = """
import pathlib, sys
mark = pathlib.Path("failed-" + sys.argv[1])
if sys.argv[2] == "1" and not mark.exists():
    mark.write_text("")
    sys.exit(7)
print("loss: 1")
"""


@pytest.fixture
def sweep(stoker):
    def write(more="", train=TRAIN, base=SWEEP):
        (stoker.folder / "lr.yaml").write_text(base + more)
        (stoker.folder / "job.yaml").write_text(JOB)
        (stoker.folder / "train.py").write_text(train)

    def command(*words, **options):
        return stoker("sweep", *words, **options)

    def names():
        runs = (stoker.folder / "lr.study/runs").iterdir()
        return sorted(json.loads((run / "run.json").read_text())["name"] for run in runs if run.is_dir())

    command.write, command.names, command.folder, command.start = write, names, stoker.folder, stoker.start
    command.trials = lambda: json.loads(command("show", "lr.yaml", "--json", code=0).out)
    return command


def test_the_value_of_a_trial_is_the_mean_over_its_seeds_and_is_shown_with_the_spread(sweep):
    sweep.write("at_once: 3\n")
    done = sweep("lr.yaml", code=0)
    assert done.out.startswith("lr: 2 complete trials\n  best  trial 0: loss 3 ± 2.6   lr=1\n")
    assert re.search(r"^trial 1: seed 5: loss 7$", done.err, re.MULTILINE)
    assert sweep.names() == sorted(f"lr-{trial}-s{seed}" for trial in (0, 1) for seed in (0, 1, 5))
    best = json.loads(sweep("best", "lr.yaml", "--json", code=0).out)[0]
    assert (best["number"], best["values"], best["seeds"]) == (
        0,
        {"loss": 3},
        {"0": {"loss": 1}, "1": {"loss": 2}, "5": {"loss": 6}},
    )
    assert best["spread"]["loss"] == pytest.approx(7**0.5)
    assert sweep("export", "lr.yaml", code=0).out.splitlines()[0] == "trial,state,loss,loss_spread,lr,seconds"
    shown = sweep("show", "lr.yaml", code=0).out.splitlines()
    assert shown[1].split() == ["TRIAL", "STATE", "loss", "loss_spread", "lr", "SECONDS"]
    assert shown[2].split()[:5] == ["0", "complete", "3", "2.646", "1"]
    sweep("page", "lr.yaml", "-o", "page.html", code=0)
    assert "loss_spread" in (sweep.folder / "page.html").read_text()


@pytest.mark.soak
def test_the_median_is_chosen_in_the_file(sweep):
    sweep.write("at_once: 3\nseed_average: median\ntrials: 1\n")
    shown = sweep("lr.yaml", "--dry-run", code=0).out
    assert shown.endswith("  seeds   0, 1, 5, the value is their median\n")
    assert "best  trial 0: loss 2 ± 2.6   lr=1\n" in sweep("lr.yaml", code=0).out


def test_a_failed_seed_is_retried_alone(sweep):
    sweep.write("at_once: 3\nretries: 1\n", train=FAILS_ONCE)
    done = sweep("lr.yaml", code=0)
    assert re.search(r"trial 0: seed 1: failed, rank 0 .*exit code 7; retried\n", done.err)
    assert sweep.names() == sorted(f"lr-{trial}-s{seed}" for trial in (0, 1) for seed in ("0", "1", "1.1", "5"))
    assert [trial["state"] for trial in sweep.trials()] == ["complete"] * 2


@pytest.mark.soak
def test_after_kill_9_of_the_driver_each_seed_has_run_exactly_once(sweep):
    sweep.write("at_once: 2\n", train=SLOW)
    runs = sweep.folder / "lr.study/runs"
    for count in (1, 3, 4):
        driver = sweep.start("sweep", "lr.yaml")
        wait_until(lambda count=count: len(list(runs.glob("*/run.json"))) >= count, f"{count} runs")
        driver.kill()
        driver.communicate()
    sweep("lr.yaml", code=0)
    assert sweep.names() == sorted(f"lr-{trial}-s{seed}" for trial in (0, 1) for seed in (0, 1, 5))
    assert [trial["values"]["loss"] for trial in sweep.trials()] == [3, 4]


def test_a_rerun_is_compared_with_its_seed_and_then_with_the_spread(sweep):
    sweep.write("at_once: 3\ntrials: 1\n")
    sweep("lr.yaml", code=0)
    assert sweep("best", "lr.yaml", "--rerun", code=0).out == "trial 0: 1   same result, difference 0.00 %\n"
    (sweep.folder / "train.py").write_text("print('loss: 5')")
    again = sweep("best", "lr.yaml", "--rerun", code=0).out
    assert again.startswith("trial 0: 5   difference 400.00 %, within the spread of the seeds\n")


@pytest.mark.needs("optuna")
@pytest.mark.soak
def test_seeds_are_kept_in_a_storage_of_optuna(sweep, tmp_path):
    address = f"journal://{tmp_path}/studies.log"
    sweep.write(f"at_once: 3\ntrials: 1\nstorage: {address}\n")
    environment = {"STOKER_PYTHON": sys.executable}
    sweep("lr.yaml", code=0, env=environment)
    (trial,) = json.loads(sweep("show", f"{address}#lr", "--json", code=0, env=environment).out)
    assert trial["seeds"] == {"0": {"loss": 1}, "1": {"loss": 2}, "5": {"loss": 6}}
    assert trial["values"] == {"loss": 3}


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ("seeds: 0\n", "seeds: 0"),
        ("seeds: [1, 1]\n", "is a seed twice"),
        ("seeds: []\n", "is neither a number of seeds nor a list (seeds: [0, 1, 2])"),
        ("seeds: {a: 1}\n", "is neither a number of seeds nor a list (seeds: [0, 1, 2])"),
        ("seeds: [-1]\n", "seeds: [-1]"),
        ("seeds: [x]\n", "seeds: [x]"),
        ("seeds: 1000000\n", "is over 1000"),
        ("seeds: [4294967296]\n", "is over 4294967295"),
        ("seeds: 2\nseed_average: mode\n", "'mode' is unknown"),
        ("seed_average: median\n", "needs seeds (seeds: 3)"),
        ("seeds: 2\nspace: {seed: [1, 2]}\n", "seed is a parameter and set by seeds"),
    ],
)
def test_wrong_seeds_are_refused(sweep, more, error):
    base = SWEEP.replace("seeds: [0, 1, 5]\n", "")
    sweep.write(more, base=base.replace("space: {lr: [1, 2]}\n", "") if "space" in more else base)
    refused = sweep("lr.yaml")
    assert refused.code == 2
    assert error in refused.err
    assert not (sweep.folder / "lr.study").exists()


def test_sweep_run_refuses_a_study_with_seeds(sweep):
    sweep.write()
    refused = sweep("run", "lr.yaml", "--", "true", code=2)
    assert "lr: its trials have seeds, which only stoker sweep FILE runs (seeds)\n" in refused.err
