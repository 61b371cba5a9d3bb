"""Checkpoints that go by each node's own disk (checkpoint.local). What is left at each point when a process dies is in
src/checkpoint/local/drain_test.cc."""

import shutil

import pytest
import trained
from test_resume import train_with_kills


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


def test_steps_end_on_shared_storage_as_they_would_without(stoker, dataset):
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


def test_a_disk_that_refuses_is_named_and_costs_no_checkpoint(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "5 steps")
    (stoker.folder / "disk").write_text("a file\n")
    done = stoker("run", job, "--set", "checkpoint.local=disk", code=0)
    run = trained.the_run(stoker.folder)
    assert trained.steps(run) == [5, 10]
    said = f"rank 0: checkpoint.local: {stoker.folder}/disk/{run.name}: not a directory; straight to "
    assert done.err.count(said) == 1


def test_kills_of_ranks_leave_no_trace_in_the_result(stoker, example_images):
    train_with_kills(stoker, example_images, kills=4, seed=7, more=", local: disk")


def test_a_resume_without_the_disk_goes_on_from_shared_storage(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1, "5 steps", "validate_every: 0")
    run = trained.stop_after(stoker, job, 2, "--set", "checkpoint.local=disk")
    assert list((stoker.folder / "disk").iterdir()) == []  # what was saved at the stop is on shared storage
    shutil.rmtree(stoker.folder / "disk")
    done = stoker("resume", "last", code=0)
    assert "resumed from " in done.out
    assert trained.steps(run)[-2:] == [5, 10]
