"""A training that goes on as another one: on other ranks, with other batches, with another optimizer."""

import re
from pathlib import Path

import pytest
import trained
from torch_ranks import rows

EPOCHS = 4
STEPS = 10 * EPOCHS  # of two ranks; one rank takes 80


@pytest.fixture
def dataset(stoker, example_images) -> Path:
    return trained.small_dataset(stoker, example_images)


def job_of(stoker, dataset: Path, more: str = "") -> Path:
    return trained.write_job(stoker.folder, dataset, EPOCHS, "5 steps", "validate_every: 0" + more)


def saved(stoker, job: Path, steps: int, *settings: str, world: int = 2) -> Path:
    """The checkpoint of that step, of a training that ended there."""
    folder = stoker.folder / "before"
    words = [word for text in (*settings, f"train.steps={steps}") for word in ("--set", text)]
    trained.train_ranks(stoker, world, "--job", job, *words, env={"STOKER_CHECKPOINT_DIR": folder})
    return folder / f"step-{steps}"


def go_on(stoker, job: Path, checkpoint: Path, *settings: str, world: int = 2) -> tuple[str, list[dict]]:
    """What rank 0 says when so many ranks go on from there, and its figures of every step."""
    attempt = stoker.folder / "attempt"
    attempt.mkdir()
    words = [word for text in settings for word in ("--set", text)]
    env = {"STOKER_ATTEMPT_DIR": attempt, "STOKER_RESUME": checkpoint}
    out, *_ = trained.train_ranks(stoker, world, "--job", job, *words, env=env)
    return out, rows(attempt / "metrics-0000.csv")


def whole_rates(stoker, job: Path, *settings: str, world: int) -> list[float]:
    """The rates of a training that was one from its first step to its last."""
    attempt = stoker.folder / "whole"
    attempt.mkdir()
    words = [word for text in settings for word in ("--set", text)]
    trained.train_ranks(stoker, world, "--job", job, *words, env={"STOKER_ATTEMPT_DIR": attempt})
    return [row["lr"] for row in rows(attempt / "metrics-0000.csv")]


@pytest.mark.parametrize(
    ("world", "settings", "done", "all_steps"),
    [
        (1, (), 30, 80),
        (3, (), 10, 28),  # 15 of 40 steps are 160 of 320 samples in the second epoch: 4 of 7 steps are left
        (2, ("train.batch=8",), 30, 80),
        (2, ("train.accumulate=2",), 7, 20),
    ],
)
def test_the_schedule_goes_on_where_the_data_stand(stoker, dataset, world, settings, done, all_steps):
    job = job_of(stoker, dataset)
    out, steps = go_on(stoker, job, saved(stoker, job, 15), *settings, world=world)
    rates = whole_rates(stoker, job, *settings, world=world)
    assert len(rates) == all_steps
    assert [row["lr"] for row in steps] == rates[done:]
    assert "not as it was saved:" in out


def test_another_optimizer_begins_without_a_memory(stoker, dataset):
    job = job_of(stoker, dataset)
    checkpoint = saved(stoker, job, 5, "train.ema=0.9")
    adam = ("train.optimizer.kind=adamw", "train.optimizer.lr=0.001", "train.optimizer.nesterov=false")
    out, steps = go_on(stoker, job, checkpoint, *adam, "train.steps=7")
    told = re.search(r"^not as it was saved: (.*)$", out, re.M).group(1).split(", ")
    assert "optimizer sgd → adamw" in told
    assert "ema 0.9 → 0" in told
    assert "the optimizer begins anew" in told
    assert [row["step"] for row in steps] == [6, 7]
    assert all(0 < row["loss"] < 20 for row in steps)


def test_what_a_checkpoint_lacks_begins_anew_and_is_told(stoker, dataset):
    job = job_of(stoker, dataset)
    plain = ("train.optimizer.momentum=0", "train.optimizer.nesterov=false", "train.schedule.cycle_momentum=false")
    checkpoint = saved(stoker, job, 5, *plain)
    out, _ = go_on(stoker, job, checkpoint, "train.ema=0.99", "train.steps=7")
    told = re.search(r"^not as it was saved: (.*)$", out, re.M).group(1)
    assert told.endswith("the optimizer begins anew, the mean of weights begins anew")


def test_a_mean_of_weights_that_begins_late_begins_with_the_weights(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, EPOCHS, "5 steps")
    checkpoint = saved(stoker, job, 9)
    found = []
    # A mean that does not move is that of the weights of step 9; one that moves all the way is that of step 10.
    for decay in ("0.9999999", "0"):
        attempt = stoker.folder / f"decay-{decay}/1"
        attempt.mkdir(parents=True)
        words = ["--set", f"train.ema={decay}", "--set", "train.steps=10"]
        env = {"STOKER_ATTEMPT_DIR": attempt, "STOKER_RESUME": checkpoint}
        trained.train_ranks(stoker, 2, "--job", job, *words, env=env)
        found.append(rows(attempt / "epochs.csv")[0]["val_loss"])
    assert found[0] != found[1]
    assert all(0 < loss < 10 for loss in found)


def test_steps_that_end_with_an_epoch_validate_it(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, EPOCHS, more="validate_every: 3")
    attempt = stoker.folder / "attempt"
    attempt.mkdir()
    words = ["--job", job, "--set", "train.steps=20"]
    out, _ = trained.train_ranks(stoker, 2, *words, env={"STOKER_ATTEMPT_DIR": attempt})
    first, second = rows(attempt / "epochs.csv")
    assert (first["step"], second["step"]) == (10, 20)
    assert first["val_loss"] != first["val_loss"]
    assert second["val_loss"] > 0
    assert "epoch 2/4" in out
