"""A training resumed with different settings: number of ranks, batch size, optimizer."""

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
    """The checkpoint of a training that ended at that step."""
    folder = stoker.folder / "before"
    words = [word for text in (*settings, f"train.steps={steps}") for word in ("--set", text)]
    trained.train_ranks(stoker, world, "--job", job, *words, env={"STOKER_CHECKPOINT_DIR": folder})
    return folder / f"step-{steps}"


def resume(stoker, job: Path, checkpoint: Path, *settings: str, world: int = 2) -> tuple[str, list[dict]]:
    """Resumes on `world` ranks; returns the output of rank 0 and its metrics of every step."""
    attempt = stoker.folder / "attempt"
    attempt.mkdir()
    words = [word for text in settings for word in ("--set", text)]
    env = {"STOKER_ATTEMPT_DIR": attempt, "STOKER_RESUME": checkpoint}
    out, *_ = trained.train_ranks(stoker, world, "--job", job, *words, env=env)
    return out, rows(attempt / "metrics-0000.csv")


def whole_rates(stoker, job: Path, *settings: str, world: int) -> list[float]:
    """The learning rates of an uninterrupted training."""
    attempt = stoker.folder / "whole"
    attempt.mkdir()
    words = [word for text in settings for word in ("--set", text)]
    trained.train_ranks(stoker, world, "--job", job, *words, env={"STOKER_ATTEMPT_DIR": attempt})
    return [row["lr"] for row in rows(attempt / "metrics-0000.csv")]


@pytest.mark.parametrize(
    ("world", "settings", "done", "all_steps"),
    [
        pytest.param(1, (), 30, 80, marks=pytest.mark.soak),
        (3, (), 10, 28),  # 15 of 40 steps are 160 of 320 samples in the second epoch: 4 of 7 steps are left
        pytest.param(2, ("train.batch=8",), 30, 80, marks=pytest.mark.soak),
        (2, ("train.accumulate=2",), 7, 20),
    ],
)
def test_the_schedule_continues_at_the_data_position(stoker, dataset, world, settings, done, all_steps):
    job = job_of(stoker, dataset)
    out, steps = resume(stoker, job, saved(stoker, job, 15), *settings, world=world)
    rates = whole_rates(stoker, job, *settings, world=world)
    assert len(rates) == all_steps
    assert [row["lr"] for row in steps] == rates[done:]
    assert "differences from the checkpoint:" in out


def test_a_different_optimizer_starts_with_new_state(stoker, dataset):
    job = job_of(stoker, dataset)
    checkpoint = saved(stoker, job, 5, "train.ema=0.9")
    adam = ("train.optimizer.kind=adamw", "train.optimizer.lr=0.001", "train.optimizer.nesterov=false")
    out, steps = resume(stoker, job, checkpoint, *adam, "train.steps=7")
    output = re.search(r"^differences from the checkpoint: (.*)$", out, re.M).group(1).split(", ")
    assert "optimizer sgd → adamw" in output
    assert "ema 0.9 → 0" in output
    assert "optimizer state reset" in output
    assert [row["step"] for row in steps] == [6, 7]
    assert all(0 < row["loss"] < 20 for row in steps)


def test_state_missing_in_the_checkpoint_is_reset_and_reported(stoker, dataset):
    job = job_of(stoker, dataset)
    plain = ("train.optimizer.momentum=0", "train.optimizer.nesterov=false", "train.schedule.cycle_momentum=false")
    checkpoint = saved(stoker, job, 5, *plain)
    out, _ = resume(stoker, job, checkpoint, "train.ema=0.99", "train.steps=7")
    output = re.search(r"^differences from the checkpoint: (.*)$", out, re.M).group(1)
    assert output.endswith("optimizer state reset, weight average (EMA) reset")


def test_a_later_enabled_ema_starts_with_the_weights(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, EPOCHS, "5 steps")
    checkpoint = saved(stoker, job, 9)
    found = []
    # With decay 1 the mean equals the weights of step 9, with decay 0 the weights of step 10.
    for decay in ("0.9999999", "0"):
        attempt = stoker.folder / f"decay-{decay}/1"
        attempt.mkdir(parents=True)
        words = ["--set", f"train.ema={decay}", "--set", "train.steps=10"]
        env = {"STOKER_ATTEMPT_DIR": attempt, "STOKER_RESUME": checkpoint}
        trained.train_ranks(stoker, 2, "--job", job, *words, env=env)
        found.append(rows(attempt / "epochs.csv")[0]["val_loss"])
    assert found[0] != found[1]
    assert all(0 < loss < 10 for loss in found)


def test_a_step_limit_at_an_epoch_end_validates_the_epoch(stoker, dataset):
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
