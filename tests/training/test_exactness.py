"""Stoker's training in C++ gives the bytes that Python's DistributedDataParallel gives, and its models are torchvision's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BIN
from torch_ranks import REFERENCE, free_port, write_batches

STEPS = BIN / "torch-steps"


def read_tensors(path: Path) -> dict[tuple[str, str], bytes]:
    tensors, data, at = {}, path.read_bytes(), 0
    while at < len(data):
        end = data.index(b"\n", at)
        section, name, size = data[at:end].decode().split(" ")
        at = end + 1 + int(size)
        tensors[section, name] = data[end + 1 : at]
    return tensors


def run(commands: list[list], environments: list[dict]) -> None:
    processes = [
        subprocess.Popen(
            [str(word) for word in command],
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, environment in zip(commands, environments, strict=True)
    ]
    outcomes = [(process.communicate(timeout=240)[1], process.returncode) for process in processes]
    assert all(code == 0 for _, code in outcomes), outcomes


def run_ranks(program: list, batches: list[Path], outs: list[Path], model: str, extra: list[str]) -> None:
    port = free_port()
    world = len(batches)
    run(
        [[*program, "train", model, 10, 7, batches[rank], outs[rank], *extra] for rank in range(world)],
        [
            {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            for rank in range(world)
        ],
    )


def expect_same(ours: Path, theirs: Path) -> int:
    mine, reference = read_tensors(ours), read_tensors(theirs)
    assert mine.keys() == reference.keys()
    assert [name for name in mine if mine[name] != reference[name]] == []
    return len(mine)


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    if not STEPS.exists():
        pytest.fail(f"{STEPS} is not built; try: script/build")


@pytest.mark.parametrize("extra", [[], ["bucketed"]], ids=["copied", "bucketed"])
def test_five_steps_on_two_ranks_are_those_of_python(tmp_path, extra):
    batches = [write_batches(tmp_path / f"batches-{rank}", 100 + rank, 16, 32) for rank in range(2)]
    ours = [tmp_path / f"ours-{rank}" for rank in range(2)]
    theirs = [tmp_path / f"theirs-{rank}" for rank in range(2)]
    run_ranks([STEPS], batches, ours, "cifar-resnet20", extra)
    run_ranks([sys.executable, REFERENCE], batches, theirs, "cifar-resnet20", extra)
    for rank in range(2):
        # Five steps of gradients, then parameters, batch-norm statistics and momentum.
        assert expect_same(ours[rank], theirs[rank]) > 5 * 60
    first, second = read_tensors(ours[0]), read_tensors(ours[1])
    differing = [name for name in first if first[name] != second[name]]
    assert differing
    assert all("running_" in name for _, name in differing), "only statistics may differ between ranks"


@pytest.mark.parametrize(("model", "size"), [("resnet18", 64), ("resnet50", 64), ("cifar-resnet20", 32)])
def test_initial_weights_are_those_of_python_with_the_same_seed(tmp_path, model, size):
    run(
        [
            [STEPS, "init", model, 1000, 3, tmp_path / "ours"],
            [sys.executable, REFERENCE, "init", model, 1000, 3, tmp_path / "theirs"],
        ],
        [{}, {}],
    )
    assert expect_same(tmp_path / "ours", tmp_path / "theirs") > 60


@pytest.mark.parametrize(("model", "size"), [("resnet18", 64), ("resnet50", 64), ("cifar-resnet20", 32)])
def test_state_loads_strictly_into_python_and_gives_the_same_logits(tmp_path, model, size):
    batches = write_batches(tmp_path / "batches", 5, 4, size, steps=1)
    run([[STEPS, "logits", model, 1000, 3, batches, tmp_path / "ours"]], [{}])
    run([[sys.executable, REFERENCE, "logits", model, 1000, 99, batches, tmp_path / "theirs", tmp_path / "ours"]], [{}])
    ours, theirs = read_tensors(tmp_path / "ours"), read_tensors(tmp_path / "theirs")
    assert len(ours["logits", "logits"]) == 4 * 1000 * 4
    assert ours["logits", "logits"] == theirs["logits", "logits"]
