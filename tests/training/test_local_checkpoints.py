"""Checkpoints through node-local disks (checkpoint.local). src/checkpoint/local/drain_test.cc kills processes at each point."""

import shutil

import pytest
import trained
from test_resume import train_with_kills


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


def test_steps_on_shared_storage_are_the_same_as_without_local_disks(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "5 steps")
    stoker("run", job, code=0)
    plain = trained.the_run(stoker.folder).rename(stoker.folder / "plain")
    stoker("run", job, "--set", "checkpoint.local=disk", code=0)
    run = trained.the_run(stoker.folder)
    assert trained.steps(run) == trained.steps(plain) == [5, 10]
    for step in (5, 10):
        assert trained.tensors(run, step) == trained.tensors(plain, step)
    stoker("checkpoint", "verify", "last", code=0)
    assert list((stoker.folder / "disk").iterdir()) == []


def test_a_failing_local_disk_is_named_and_loses_no_checkpoint(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "5 steps")
    (stoker.folder / "disk").write_text("a file\n")
    done = stoker("run", job, "--set", "checkpoint.local=disk", code=0)
    run = trained.the_run(stoker.folder)
    assert trained.steps(run) == [5, 10]
    message = f"rank 0: checkpoint.local: {stoker.folder}/disk/{run.name}: not a directory; writing directly to "
    assert done.err.count(message) == 1


def test_killed_ranks_do_not_change_the_result(stoker, example_images):
    train_with_kills(stoker, example_images, kills=4, seed=7, more=", local: disk")


def test_a_resume_without_the_local_disk_uses_shared_storage(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "5 steps", "validate_every: 0")
    run = trained.stop_after(stoker, job, 2, "--set", "checkpoint.local=disk")
    assert list((stoker.folder / "disk").iterdir()) == []  # the checkpoint of the stop is on shared storage
    shutil.rmtree(stoker.folder / "disk")
    done = stoker("resume", "last", code=0)
    assert "resumed from " in done.out
    assert trained.steps(run)[-2:] == [5, 10]
