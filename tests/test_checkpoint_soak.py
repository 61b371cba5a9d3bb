"""The long lane: many kills during saves."""

import itertools
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import BIN


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_500_kills_while_writing_renaming_and_pruning_lose_no_checkpoint():
    done = subprocess.run(
        [BIN / "checkpoint_test", "--gtest_filter=Killed.at_a_random_moment_the_newest_step_is_valid"],
        env=dict(os.environ, STOKER_KILLS="500"),
        capture_output=True,
        text=True,
        timeout=3500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ] 1 test" in done.stdout


KILLS = 25  # of each kind


def weights(step: int) -> dict:
    import numpy

    numbers = numpy.random.default_rng(step)
    return {"model": {"w": numbers.random((300, 200)), "b": numbers.random(7)}, "step": step, "list": [step] * 3}


def train(folder: Path, rank: int, world: int, attempt: int, is_async: bool, reports: int) -> None:
    """Resumes and saves every step until it is killed. Each step that is on disk is reported on the pipe."""
    from stoker import checkpoint

    alone = {"rank": 0, "world_size": 1}
    first = checkpoint.load(folder, **alone).step + 1 if attempt > 0 else 1
    place = {"rank": rank, "world_size": world, "writer": f"attempt{attempt}", "keep_last": 2}
    saving = None
    for step in itertools.count(first):
        if is_async:
            previous, saving = saving, checkpoint.async_save(weights(step), folder, step=step, **place)
            if previous is not None:
                previous.wait()
        else:
            checkpoint.save(weights(step), folder, step=step, **place)
        done = step - 1 if is_async else step
        if done >= first:
            os.write(reports, done.to_bytes(8, "little"))


def start(reports: int, *arguments) -> int:
    """The process id of a forked rank."""
    child = os.fork()
    if child == 0:
        try:
            train(*arguments, reports)
        finally:
            os._exit(1)
    return child


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("is_async", [False, True], ids=["save", "async_save"])
@pytest.mark.parametrize("world", [1, 2])
def test_kills_of_python_programs_while_saving_lose_no_checkpoint(tmp_path, world, is_async):
    from stoker import checkpoint

    chance, newest = random.Random(world), 0
    for attempt in range(KILLS):
        reading, writing = os.pipe()
        ranks = [start(writing, tmp_path, rank, world, attempt, is_async) for rank in range(world)]
        os.close(writing)
        reported = os.read(reading, 8)  # a rank is in the middle of its next save
        time.sleep(chance.random() * 0.05)
        chance.shuffle(ranks)
        for rank in ranks:
            os.kill(rank, signal.SIGKILL)
            time.sleep(chance.choice([0, 0.01]))
        hows = [os.waitpid(rank, 0)[1] for rank in ranks]
        assert all(os.WIFSIGNALED(how) for how in hows), "a rank ended by itself"
        while more := os.read(reading, 1 << 16):
            reported += more
        os.close(reading)
        steps = [int.from_bytes(reported[at : at + 8], "little") for at in range(0, len(reported), 8)]
        state = checkpoint.load(tmp_path, rank=0, world_size=1)
        assert state.skipped == [] and state.step >= max(steps) > newest
        expected = weights(state.step)
        for name, array in expected.pop("model").items():
            assert state["model"][name].tobytes() == array.tobytes(), (attempt, name)
        assert {key: value for key, value in state.items() if key != "model"} == expected
        newest = state.step
