"""A step that does not fit into the memory: the message names the batch, and the settings to change."""

import resource

import numpy
import packing
from test_recipes import npy, write_job

GIB = 2**30
SAMPLES = 2000
WIDTH = 1_000_000  # activations of 8 GB, weights of 16 MB


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (7 * GIB, 7 * GIB))


def test_a_step_that_needs_too_much_memory_names_the_batch_to_try(stoker):
    rows = numpy.random.default_rng(1).random((SAMPLES, 2))
    files = []
    for i, row in enumerate(rows):
        files += [(f"s{i:04}.npy", npy(list(row))), (f"s{i:04}.cls", str(int(row[0] > row[1])).encode())]
    job = write_job(
        stoker.folder,
        packing.indexed_files(stoker, stoker.folder, files),
        f"{{model: mlp, epochs: 1, batch: {SAMPLES}, optimizer: {{lr: 0.1}}, mlp: {{hidden: [{WIDTH}]}}}}",
    )
    process = stoker.start("--job", job, program=stoker.train_path, preexec_fn=limit_memory)
    _, err = process.communicate()
    assert process.returncode == 1, err
    assert err == (
        f"epoch 1, step 1: out of memory on the CPU with 2 000 samples per rank (train.batch): 8.00 GB more requested\n"
        f"  try: train: {{batch: {SAMPLES // 2}, accumulate: 2}} (as many samples per step), "
        "or find what fits: stoker-train --find-batch\n"
    )
    (stoker.folder / "rank.log").write_text(err)
    explained = stoker("explain", "rank.log", code=0).out
    assert "cause      a batch of 2 000 does not fit into the memory of the CPU: 8.00 GB more requested\n" in explained
