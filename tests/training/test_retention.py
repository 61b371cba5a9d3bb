"""`checkpoint.every: auto` says how often it saves and why; the best and the first of each stretch of time stay."""

import json

import pytest
import trained
from torch_ranks import rows


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


def test_auto_says_how_often_and_why(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "auto")
    done = stoker("run", job, "--set", "checkpoint.mtbf=1h", code=0)
    lines = [line for line in done.out.splitlines() if "checkpoints every" in line]
    assert len(lines) == 1, lines
    assert trained.steps(trained.the_run(stoker.folder)) == [10]  # the one at the end


def test_the_best_steps_stay_beside_the_newest(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 4, "never")
    words = ["checkpoint.keep=1", "checkpoint.keep_best=1", "checkpoint.metric=val_loss"]
    stoker("run", job, *(word for pair in words for word in ("--set", pair)), code=0)
    run = trained.the_run(stoker.folder)
    losses = {int(row["step"]): row["val_loss"] for row in rows(run / "attempts/1/epochs.csv")}
    best = min(losses, key=lambda step: losses[step])
    assert trained.steps(run) == sorted({best, 40})
    state = json.loads((run / f"checkpoints/step-{best}/manifest.json").read_text())["state"]
    assert state["val_loss"] == pytest.approx(losses[best], rel=1e-6)
