"""Orders of training samples other than PyTorch's: by packed chunks, with a changing number of ranks."""

from collections import Counter
from pathlib import Path

import h5py
import numpy
import pytest
import receipts
import safetensors_files
import trained

SAMPLES = 600
CHUNK = 8
STEPS = 90  # 3 epochs of 30 on two ranks
JOB = """\
name: chunks
train:
  model: mlp
  epochs: 3
  batch: 10
  seed: 5
  shuffle: by_chunk
  window: 20
  chunk_cache: 64KiB
  mlp: {hidden: [16]}
  validate_every: 0
data: {train: {source: hub}}
resources: {ranks_per_node: 2, cpus_per_rank: 1}
checkpoint: {every: 7 steps, keep_last: 20}
record: {receipts: true}
"""


@pytest.fixture
def job(stoker) -> Path:
    """A training on an HDF5 file with packed chunks, read in place."""
    chance = numpy.random.default_rng(1)
    (stoker.folder / "hub").mkdir()
    with h5py.File(stoker.folder / "hub/train.h5", "w") as file:
        rows = chance.normal(size=(SAMPLES, 12)).astype("f4")
        file.create_dataset("x", data=rows, chunks=(CHUNK, 12), compression="gzip")
        file["labels"] = (numpy.arange(SAMPLES) % 4).astype("i4")
    stoker("data", "index", "hub", code=0)
    path = stoker.folder / "job.yaml"
    path.write_text(JOB)
    return path


def seen(ranks: list[list[receipts.Receipt]]) -> dict[int, Counter[int]]:
    """How often each sample was seen, by epoch."""
    counts: dict[int, Counter[int]] = {}
    for rank in ranks:
        for receipt in rank:
            counts.setdefault(receipt.epoch, Counter()).update(receipt.samples)
    return counts


def test_the_order_is_shown_and_recorded(stoker, job):
    shown = stoker("check", job, "--print").out
    assert "shuffle: by_chunk" in shown and "window: 20" in shown and "chunk_cache: 64KiB" in shown
    stoker("run", job, "--set", "train.steps=2", code=0)
    recorded = (trained.the_run(stoker.folder) / "attempts/1/job.yaml").read_text()
    assert "shuffle: by_chunk" in recorded and "window: 20" in recorded and "chunk_cache: 64KiB" in recorded


def test_a_cache_smaller_than_a_chunk_is_reported_once(stoker, job):
    few = ("--set", "train.steps=2", "--set", "train.chunk_cache=300B")
    done = stoker("run", job, *few, code=0)
    message = (
        "data.train: the chunks of one sample unpack to 384 B, but the cache holds 300 B: nearly every sample unpacks "
        "its chunks again (train.chunk_cache)\n"
    )
    log = (trained.the_run(stoker.folder) / "attempts/1/ranks").glob("*")
    output = done.out + done.err + "".join(path.read_text() for path in log)
    assert output.count(message) >= 1
    assert "try: train: {chunk_cache: 1MiB}" in output


def test_ranks_share_a_window_by_chunk_and_see_each_sample_once(stoker, job):
    stoker("run", job, code=0, timeout=300)
    ranks = receipts.receipts_of(trained.the_run(stoker.folder))
    assert receipts.mistakes(ranks, SAMPLES) == []
    chunks = [{s // CHUNK for r in rank if r.epoch == 0 for s in r.samples} for rank in ranks]
    assert len(chunks[0] | chunks[1]) == SAMPLES // CHUNK
    assert len(chunks[0]) + len(chunks[1]) < 1.8 * SAMPLES / CHUNK  # 2.0 for a sample-wise order


def whole_run(stoker, job: Path) -> Path:
    stoker("run", job, code=0, timeout=300)
    return trained.the_run(stoker.folder)


def resume(stoker, job: Path, checkpoint: Path, world: int) -> list[list[receipts.Receipt]]:
    """Samples of `world` ranks resumed from a checkpoint; they save to `later`."""
    attempt = stoker.folder / "attempt"
    attempt.mkdir()
    env = {"STOKER_ATTEMPT_DIR": attempt, "STOKER_RESUME": checkpoint, "STOKER_CHECKPOINT_DIR": stoker.folder / "later"}
    trained.train_ranks(stoker, world, "--job", job, env=env)
    return [list(receipts.read_receipts(path.read_bytes())) for path in sorted(attempt.glob("receipts-*.bin"))]


def test_a_stop_within_an_epoch_does_not_change_the_result(stoker, job):
    whole = whole_run(stoker, job)
    ranks = resume(stoker, job, whole / "checkpoints/step-42", world=2)
    assert [len(rank) for rank in ranks] == [STEPS - 42, STEPS - 42]
    assert ranks == [rank[42:] for rank in receipts.receipts_of(whole)]
    last = f"step-{STEPS}"
    before, after = (
        safetensors_files.tensors_of(folder / last) for folder in (whole / "checkpoints", stoker.folder / "later")
    )
    assert before == after


@pytest.mark.parametrize("world", [1, 3])
def test_a_different_number_of_ranks_continues_in_the_same_order(stoker, job, world):
    whole = whole_run(stoker, job)
    later = resume(stoker, job, whole / "checkpoints/step-42", world)
    assert len(later) == world
    counts = seen([rank[:42] for rank in receipts.receipts_of(whole)] + later)
    assert sorted(counts) == [0, 1, 2]
    for epoch, count in counts.items():
        assert sorted(count) == list(range(SAMPLES)), epoch
        assert sum(count.values()) - SAMPLES < world, epoch  # padding for equal ranks


def test_a_different_order_within_an_epoch_is_rejected(stoker, job):
    stoker("run", job, "--set", "train.steps=7", code=0)
    checkpoint = trained.the_run(stoker.folder) / "checkpoints/step-7"
    words = ["--job", job, "--set", "train.window=10", "--set", "resources.ranks_per_node=1"]
    process = stoker.start(*words, program=stoker.train_path, env={"STOKER_RESUME": checkpoint})
    _, err = process.communicate()
    assert process.returncode == 2
    assert (
        "train.shuffle: the checkpoint was saved within an epoch of order by_chunk in windows of 20, "
        "this training uses by_chunk in windows of 10" in err
    )
