"""Kill -9 of any rank at any step: the resumed training has the exact result of an uninterrupted one and sees each sample of
each epoch exactly once."""

import random
import signal
import time

import pytest
import receipts
import trained

SAMPLES = 320
STEPS_PER_EPOCH = 10
STEPS_BETWEEN_KILLS = 5  # on average: checkpoints are every 3 steps, a kill comes up to 8 steps after the last one


def train_with_kills(stoker, example_images, kills: int, seed: int, more: str = "") -> None:
    chance = random.Random(seed)
    dataset = trained.small_dataset(stoker, example_images)
    epochs = 2 + kills * STEPS_BETWEEN_KILLS // STEPS_PER_EPOCH
    last = epochs * STEPS_PER_EPOCH
    job = trained.write_job(stoker.folder, dataset, epochs, "3 steps" + more, "validate_every: 0")
    stoker("run", job, code=0, timeout=60 + 3 * last)
    undisturbed = trained.the_run(stoker.folder).rename(stoker.folder / "undisturbed")

    killed, attempt = 0, 1
    process = stoker.start("run", job)
    while not (stoker.folder / "runs").exists() or not list((stoker.folder / "runs").iterdir()):
        time.sleep(0.005)
    run = trained.the_run(stoker.folder)
    while True:
        hit = killed < kills and trained.kill_at_random(process, run, attempt, chance)
        out, err = process.communicate(timeout=60 + 3 * last)
        killed += hit
        if process.returncode == 0:
            break
        assert hit, f"attempt {attempt} ended by itself: {out}\n{err}"
        assert process.returncode == 128 + signal.SIGKILL, err
        attempt += 1
        process = stoker.start("resume", "last")

    assert killed == kills, "the training was too short for this number of kills"
    assert trained.tensors(run, last) == trained.tensors(undisturbed, last)
    ranks = receipts.receipts_of(run)
    assert receipts.mistakes(ranks, SAMPLES) == []
    assert ranks == receipts.receipts_of(undisturbed)
    assert len(ranks[0]) == last


def test_a_finished_training_is_trained_longer(stoker, example_images):
    dataset = trained.small_dataset(stoker, example_images)
    job = trained.write_job(stoker.folder, dataset, 2, "3 steps", "validate_every: 0")
    stoker("run", job, code=0)
    run = trained.the_run(stoker.folder)
    refused = stoker("resume", "last", code=2)
    assert refused.err == (
        f"run {run.name}: is done, there is nothing to resume\n"
        f"  try: stoker resume {run.name} --set train.epochs=4      (trains longer)\n"
    )
    assert stoker("resume", "last", "--set", "train.epochs=2", code=2).err == refused.err
    longer = stoker("resume", "last", "--set", "train.epochs=3", code=0)
    assert "changed: train.epochs: 2 → 3 (--set train.epochs)" in longer.err
    rows = (run / "attempts/2/metrics-0000.csv").read_text().splitlines()
    steps = [int(row.split(",")[rows[0].split(",").index("step")]) for row in rows[1:]]
    assert steps == list(range(2 * STEPS_PER_EPOCH + 1, 3 * STEPS_PER_EPOCH + 1))


@pytest.mark.parametrize(
    ("kills", "seed"),
    [
        pytest.param(6, 1, marks=pytest.mark.timeout(1800)),
        pytest.param(200, 2, marks=[pytest.mark.timeout(7200), pytest.mark.soak]),
    ],
)
def test_kills_do_not_change_the_result(stoker, example_images, kills, seed):
    train_with_kills(stoker, example_images, kills, seed)
