"""The long lane: kill -9 of a rank of the trainer while it saves every step. The newest step always loads, with the values of
an undisturbed training."""

import random
import signal

import pytest
import trained
from running import wait_for

KILLS = 25
EPOCHS = 60  # of 10 steps: no run reaches the end


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_kills_of_the_trainer_while_saving_lose_no_checkpoint(stoker, example_images):
    from stoker import checkpoint

    chance, found, newest = random.Random(4), {}, 0
    job = trained.write_job(
        stoker.folder, trained.small_dataset(stoker, example_images), EPOCHS, "1 steps", "validate_every: 0"
    )
    process = stoker.start("run", job)
    wait_for(lambda: list(stoker.folder.glob("runs/*")))
    run = trained.the_run(stoker.folder)
    for attempt in range(1, KILLS + 1):
        assert trained.kill_at_random(process, run, attempt, chance, delay_s=0.3)
        out, err = process.communicate()
        assert process.returncode == 128 + signal.SIGKILL, out + err
        if trained.steps(run) or newest > 0:
            state = checkpoint.load(run / "checkpoints", rank=0, world_size=1)
            assert state.skipped == [] and state.step >= newest
            newest = state.step
            found[newest] = trained.tensors(run, newest)
        process = stoker.start("resume" if attempt < KILLS else "status", "last")
    process.communicate()
    assert newest > KILLS
    run.rename(stoker.folder / "killed")
    undisturbed = trained.stop_after(stoker, job, newest + 1, "--set", "checkpoint.keep_last=1000")
    for step, tensors in found.items():
        assert trained.tensors(undisturbed, step) == tensors, step
