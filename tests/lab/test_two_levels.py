"""Ranks on several nodes with several on each: they sum within a node through memory that they share, and between nodes
over the network. Trained so, a model is that of as many ranks on one node, but for the order of summation."""

import re
from array import array
from pathlib import Path

import pytest
import safetensors_files
from running import wait_until
from submitted import Runs
from test_training import copy_small_dataset

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.needs("namespaces"), pytest.mark.timeout(300)]

WORLD = 4
STEPS = 3
JOB = """\
name: main-job
train:
  model: cifar-resnet20
  epochs: 200
  batch: 8
  seed: 3
  optimizer: {lr: 0.05}
  schedule: {kind: constant}
data:
  train: {source: small, split: train}
resources: {nodes: 2, ranks_per_node: 2, cpus_per_rank: 1, time: 10m}
checkpoint: {every: 1 steps, keep_last: 1000}
"""


@pytest.fixture
def project(runs: Runs, example_images: Path) -> Runs:
    return copy_small_dataset(runs, example_images)


def shared_memory(pid: int) -> set[str]:
    """Inodes of the memory that this rank shares with peers."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return set()
    return set(re.findall(r" (\d+) +/memfd:stoker-ranks", maps))


def shared_regions(project: Runs) -> list[set[str]] | None:
    """By node, once both of its ranks share memory."""
    found = []
    for node in ("n1", "n2"):
        ranks = [shared_memory(pid) for pid in project.processes("stoker-train", node=node)]
        if len(ranks) != 2 or not all(ranks):
            return None
        assert ranks[0] == ranks[1]
        found.append(ranks[0])
    return found


def values(step: Path) -> dict[str, array]:
    """The float32 tensors of a checkpoint by name, but for batch-norm statistics: those are rank 0's own."""
    found = {}
    for path, data in safetensors_files.tensors_of(step).items():
        name = path.partition(".safetensors/")[2]
        if "running_" not in name and "num_batches" not in name and len(data) % 4 == 0:
            found[name] = array("f", data)
    assert len(found) > 100
    return found


def farthest(ours: dict[str, array], theirs: dict[str, array], kind: str) -> float:
    """The largest distance of two values, relative to the largest value of their tensor."""
    assert ours.keys() == theirs.keys()
    return max(
        max(abs(a - b) for a, b in zip(ours[name], theirs[name], strict=True)) / max(1e-30, *map(abs, theirs[name]))
        for name in ours
        if name.endswith("momentum_buffer") == (kind == "momentum")
    )


def test_two_ranks_on_each_of_two_nodes_train_the_model_of_four_ranks_on_one(project: Runs):
    (project.folder / "job.yaml").write_text(JOB)
    project.submit()
    on_n1, on_n2 = wait_until(lambda: shared_regions(project), "both nodes' ranks share memory", 120)
    assert on_n1.isdisjoint(on_n2)
    spread = project.run
    wait_until(lambda: (spread / f"checkpoints/step-{STEPS}").exists(), f"step {STEPS}", 120)
    project.stoker("cancel", spread)
    project.wait(spread, code=None)

    here = ["resources.nodes=1", "resources.ranks_per_node=4", f"train.steps={STEPS}"]
    project.stoker("run", "job.yaml", *(word for text in here for word in ("--set", text)))
    together = project.run
    assert together != spread
    # One sum is off by at most (world - 1) roundings of its terms; the momentum of the first step is the sum. What follows
    # grows by itself, from where an activation is within that of zero: ReLU lets a gradient pass in the one and not in
    # the other, so weights stay near each other only for some steps.
    ours, theirs = values(spread / "checkpoints/step-1"), values(together / "checkpoints/step-1")
    for kind in ("momentum", "weights"):
        assert 0 < farthest(ours, theirs, kind) < WORLD * 2**-22
    ours, theirs = values(spread / f"checkpoints/step-{STEPS}"), values(together / f"checkpoints/step-{STEPS}")
    assert farthest(ours, theirs, "weights") < 0.3
