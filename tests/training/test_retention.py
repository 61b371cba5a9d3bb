"""`checkpoint.every: auto` prints its interval and the reason; the best steps and the first of each interval are kept."""

import json

import pytest
import receipts
import trained
from torch_ranks import rows

KEEP_BEST = [
    word
    for pair in ("checkpoint.keep_last=1", "checkpoint.keep_best=1", "checkpoint.metric=val_loss")
    for word in ("--set", pair)
]


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


def test_auto_prints_the_interval_and_its_reason(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "auto")
    done = stoker("run", job, "--set", "checkpoint.mtbf=1000h", code=0)  # longer than 10 steps take
    lines = [line for line in done.out.splitlines() if "checkpoint every" in line]
    assert len(lines) == 1, lines
    assert trained.steps(trained.the_run(stoker.folder)) == [10]  # the one at the end


@pytest.mark.parametrize("every", ["never", "5 steps"])  # an epoch has 10; the last step is always saved
def test_the_best_steps_are_kept_besides_the_newest(stoker, dataset, every):
    job = trained.write_job(stoker.folder, dataset, 4, every)
    stoker("run", job, *KEEP_BEST, code=0)
    run = trained.the_run(stoker.folder)
    losses = {int(row["step"]): row["val_loss"] for row in rows(run / "attempts/1/epochs.csv")}
    best = min(losses, key=lambda step: losses[step])
    assert trained.steps(run) == sorted({best, 40})
    for step in trained.steps(run):
        state = json.loads((run / f"checkpoints/step-{step}/manifest.json").read_text())["state"]
        assert state["val_loss"] == pytest.approx(losses[step], rel=1e-6)


def test_a_resumed_run_with_keep_best_validates_each_epoch_once(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 3, "5 steps")
    run = trained.stop_after(stoker, job, 12, *KEEP_BEST)
    stoker("resume", "last", code=0)
    epochs = [row for attempt in trained.attempts(run) for row in rows(attempt / "epochs.csv")]
    assert [row["epoch"] for row in epochs] == [0, 1, 2]
    assert all(row["val_loss"] > 0 for row in epochs)  # not NaN
    assert receipts.mistakes(receipts.receipts_of(run), 320) == []
    state = json.loads((run / "checkpoints/step-30/manifest.json").read_text())["state"]
    assert state["val_loss"] == pytest.approx(epochs[-1]["val_loss"], rel=1e-6)
