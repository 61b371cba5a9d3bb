"""Each kind of shard returns the same samples in the same order: trainings are identical, step by step."""

import csv
import os
import signal
from pathlib import Path

import pytest
import receipts
import trained

KINDS = ("tar", "tfrecord", "parquet", "hdf5", "zarr")
SAMPLES = 320


def losses(attempt: Path) -> list[tuple[str, str]]:
    with (attempt / "metrics-0000.csv").open(newline="") as file:
        return [(row["step"], row["loss"]) for row in csv.DictReader(file)]


def in_every_format(stoker, example_images: Path) -> dict[str, Path]:
    """One dataset of each kind, with the same sample numbers."""
    datasets = {"tar": trained.small_dataset(stoker, example_images)}
    for kind in KINDS[1:]:
        datasets[kind] = stoker.folder / kind
        stoker("data", "convert", datasets["tar"], datasets[kind], "--format", kind, code=0)
    return datasets


def finished_run(stoker, dataset: Path, kind: str, epochs: int) -> Path:
    stoker("run", trained.write_job(stoker.folder, dataset, epochs=epochs), code=0, timeout=300)
    (stoker.folder / "runs").rename(stoker.folder / f"runs-{kind}")
    (run,) = (stoker.folder / f"runs-{kind}").iterdir()
    return run


def test_losses_are_the_same_from_each_format(stoker, example_images):
    results = {}
    for kind, dataset in in_every_format(stoker, example_images).items():
        run = finished_run(stoker, dataset, kind, epochs=1)
        results[kind] = losses(run / "attempts/1"), receipts.receipts_of(run)
        assert len(results[kind][0]) == SAMPLES // 32
    for kind in KINDS[1:]:
        assert results[kind] == results["tar"], kind


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_training_resumes_with_the_same_losses(stoker, example_images, kind):
    dataset = in_every_format(stoker, example_images)[kind]
    undisturbed = finished_run(stoker, dataset, "undisturbed", epochs=3)
    process = stoker.start("run", trained.write_job(stoker.folder, dataset, epochs=3, every="3 steps"))
    attempt = trained.wait_for_steps(stoker.folder, 14)
    pid = next(event["pid"] for event in trained.events(attempt, "rank_started") if event["rank"] == 1)
    os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == 128 + signal.SIGKILL
    stoker("resume", "last", code=0, timeout=300)
    run = trained.the_run(stoker.folder)
    resumed = dict(losses(run / "attempts/1")) | dict(losses(run / "attempts/2"))
    assert resumed == dict(losses(undisturbed / "attempts/1"))
    assert receipts.mistakes(receipts.receipts_of(run), SAMPLES) == []
