"""A loss or weights that are NaN or infinite end a training, before it replaces finite checkpoints."""

import json
import math
import os
import subprocess
from pathlib import Path

import numpy
import pytest
import trained
from torch_ranks import rows


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


def weights(run: Path, step: int) -> list[bytes]:
    return [data for name, data in trained.tensors(run, step).items() if name.endswith(("weight", "running_var"))]


# Each step makes the weights about a thousand times larger, until float32 overflows.
RATES = ("train.optimizer.lr=1000", "train.optimizer.weight_decay=9", "train.schedule.kind=constant")
RUINOUS = tuple(word for text in RATES for word in ("--set", text))


def test_a_nan_loss_ends_the_run_and_is_explained(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 3, "1 steps", "validate_every: 0")
    done = stoker("run", job, *RUINOUS, code=2)
    assert "nan at epoch 1 step " in done.err or "inf at epoch 1 step " in done.err or "not finite" in done.err
    run = trained.the_run(stoker.folder)
    taken = rows(run / "attempts/1/metrics-0000.csv")
    assert all(math.isfinite(row["loss"]) for row in taken)
    assert len(taken) < 10
    found = json.loads(stoker("explain", "last", "--json", code=0).out)["diagnosis"]
    assert found["rule"] == "loss-not-finite"
    # Existing checkpoints can be resumed: no step with invalid weights was saved.
    assert trained.steps(run) == list(range(1, len(taken) + 1))
    for step in trained.steps(run):
        values = numpy.concatenate([numpy.frombuffer(data, "<f4") for data in weights(run, step)])
        assert numpy.isfinite(values).all()


SLOW_DISK = """
#include <dlfcn.h>
#include <unistd.h>
extern "C" int fsync(int file) {
  usleep(200000);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}
"""


def test_a_checkpoint_in_flight_to_a_slow_disk_is_kept(stoker, dataset):
    library = stoker.folder / "slow.so"
    subprocess.run(
        [os.environ.get("CXX", "c++"), "-shared", "-fPIC", "-xc++", "-o", library, "-"],
        input=SLOW_DISK,
        text=True,
        check=True,
    )
    job = trained.write_job(stoker.folder, dataset, 3, "1 steps", "validate_every: 0")
    done = stoker("run", job, *RUINOUS, code=2, env={"LD_PRELOAD": str(library)})
    run = trained.the_run(stoker.folder)
    last = len(rows(run / "attempts/1/metrics-0000.csv"))
    assert last in trained.steps(run)
    assert f"last checkpoint: step {last}, valid" in done.err
    message = f"checkpoint step {last}: waiting until it is written before exit\n"
    assert message in (run / "attempts/1/rank-0000.log").read_text()


def test_repeated_float16_overflows_end_the_training(stoker, dataset):
    # Weights above 65504 are infinite in float16: every step from the second on is skipped.
    job = trained.write_job(stoker.folder, dataset, 9, more="validate_every: 0")
    settings = ("train.precision=fp16", "resources.ranks_per_node=1", "train.batch=4")  # float16 is slow on CPUs
    words = [word for setting in settings for word in ("--set", setting)]
    process = stoker.start("--job", job, *RUINOUS, *words, program=stoker.train_path)
    out, err = process.communicate()
    assert process.returncode == 2, out + err
    assert "loss scale already at minimum: gradients overflowed float16 repeatedly, last in step " in err
    assert "  try: train.precision: bf16, a smaller train.optimizer.lr" in err
