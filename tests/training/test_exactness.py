"""Stoker's training is bit-identical to Python's DistributedDataParallel, and its models match torchvision's."""

import json
import math
import os
import signal
import struct
import subprocess
import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from operator import sub
from pathlib import Path

import pytest
from conftest import BIN
from ports import free_port
from running import Process
from torch_ranks import REFERENCE, write_batches

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
        Process(
            [str(word) for word in command],
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, environment in zip(commands, environments, strict=True)
    ]
    outcomes = [(process.communicate()[1], process.returncode) for process in processes]
    assert all(code == 0 for _, code in outcomes), outcomes


def environments(world: int) -> list[dict[str, str]]:
    port = free_port()
    return [
        {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(world),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        for rank in range(world)
    ]


def run_ranks(
    batches: list[Path], outs: list[Path], model: str, words: list[str], mode="train", hosts="", **variables
) -> None:
    """`hosts`: one letter per rank, to simulate several hosts."""
    places = [{"PLACE": host} for host in hosts] or [{} for _ in batches]
    run(
        [[STEPS, mode, model, 10, 7, *files, *words] for files in zip(batches, outs, strict=True)],
        [rank | place | variables for rank, place in zip(environments(len(batches)), places, strict=True)],
    )


class Python:
    """Processes of reference.py, which share one import of torch."""

    def __init__(self, log: Path):
        self.log = log
        with open(log, "w") as errors:
            self.server = Process(
                [sys.executable, REFERENCE, "serve"],
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def run(self, *ranks: tuple[dict[str, str], list]) -> None:
        asked = [(environment, [str(word) for word in words]) for environment, words in ranks]
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        assert answer == json.dumps([0 for _ in ranks]) + "\n", f"{answer}{self.log.read_text()}"

    def run_ranks(self, batches: list[Path], outs: list[Path], model: str, words: list[str], mode="train") -> None:
        each = zip(environments(len(batches)), batches, outs, strict=True)
        self.run(*((place, [mode, model, 10, 7, batch, out, *words]) for place, batch, out in each))

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.server.pid, signal.SIGKILL)
        self.server.communicate()


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Iterator[Python]:
    processes = Python(tmp_path_factory.mktemp("python") / "log")
    yield processes
    processes.close()


def expect_same(ours: Path, theirs: Path) -> int:
    mine, reference = read_tensors(ours), read_tensors(theirs)
    assert mine.keys() == reference.keys()
    assert [name for name in mine if mine[name] != reference[name]] == []
    return len(mine)


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    if not STEPS.exists():
        pytest.fail(f"{STEPS} is not built; try: script/build")


def expect_same_training(ours: list[Path], theirs: list[Path], steps: int) -> None:
    for mine, reference in zip(ours, theirs, strict=True):
        # Gradients of each step, then parameters, batch-norm statistics and momentum.
        assert expect_same(mine, reference) > steps * 60
    first, second = read_tensors(ours[0]), read_tensors(ours[1])
    differing = [name for name in first if first[name] != second[name]]
    assert differing
    assert all("running_" in name for _, name in differing), "only statistics may differ between ranks"


@pytest.mark.parametrize(
    ("model", "steps"),
    [("resnet50", 2), pytest.param("resnet18", 5, marks=pytest.mark.soak)],
    ids=["resnet50", "resnet18"],
)
def test_steps_of_large_models_on_two_ranks_match_python(tmp_path, python, model, steps):
    batches = [write_batches(tmp_path / f"batches-{rank}", 100 + rank, 4, 32, steps) for rank in range(2)]
    ours = [tmp_path / f"ours-{rank}" for rank in range(2)]
    theirs = [tmp_path / f"theirs-{rank}" for rank in range(2)]
    run_ranks(batches, ours, model, ["bucketed"])
    python.run_ranks(batches, theirs, model, ["bucketed"])
    expect_same_training(ours, theirs, steps)


@pytest.mark.parametrize("world", [1, 2])
def test_steps_of_a_vision_transformer_match_python(tmp_path, python, world):
    batches = [write_batches(tmp_path / f"batches-{rank}", 100 + rank, 4, 32, 3) for rank in range(world)]
    ours = [tmp_path / f"ours-{rank}" for rank in range(world)]
    theirs = [tmp_path / f"theirs-{rank}" for rank in range(world)]
    run_ranks(batches, ours, "vit-s16", [])
    python.run_ranks(batches, theirs, "vit-s16", [])
    for mine, reference in zip(ours, theirs, strict=True):
        # Gradients of three steps, parameters and momentum of 12 blocks of 12 tensors and 8 more.
        assert expect_same(mine, reference) == 5 * (12 * 12 + 8)


CLASSIFIER = "fc"  # the last layer of CIFAR ResNets

WAYS = [
    (["shm"], []),
    (["gloo"], []),
    (["shm"], ["bucketed"]),
    (["shm"], ["search"]),
    (["shm"], ["fixed", "bucketed"]),
    (["shm"], ["accumulate"]),
    (["shm"], ["float16"]),
    (["shm"], ["bfloat16"]),
]


@pytest.fixture(scope="module")
def references(tmp_path_factory, python) -> tuple[list[Path], list[Path]]:
    """Batches of two ranks and Python's results for all ways."""
    folder = tmp_path_factory.mktemp("references")
    batches = [write_batches(folder / f"batches-{rank}", 100 + rank, 16, 32) for rank in range(2)]
    theirs = [folder / f"theirs-{rank}" for rank in range(2)]
    words = " and ".join(" ".join(["", *words]) for _, words in WAYS).split()
    python.run_ranks(batches, theirs, "cifar-resnet20", words)
    return batches, theirs


@pytest.mark.parametrize("way", range(len(WAYS)), ids=["-".join(a + b) for a, b in WAYS])
def test_five_steps_on_two_ranks_match_python(tmp_path, references, way):
    batches, theirs = references
    transport, words = WAYS[way]
    ours = [tmp_path / f"ours-{rank}" for rank in range(2)]
    theirs = [path.with_name(path.name + (f"-{way}" if way else "")) for path in theirs]
    run_ranks(batches, ours, "cifar-resnet20", words, TRANSPORT=transport[0])
    expect_same_training(ours, theirs, 5)


def farthest(ours: Path, theirs: Path, section: str, part: str = "") -> float:
    """Largest difference of two values of a section, relative to the largest value of their tensor. `part`: only of tensors
    whose name begins so."""
    mine, reference = read_tensors(ours), read_tensors(theirs)
    worst = 0.0
    for key in reference:
        if key[0] == section and key[1].startswith(part):
            a, b = (array("f", tensors[key]) for tensors in (mine, reference))
            worst = max(worst, max(map(abs, map(sub, a, b))) / max(1e-30, max(map(abs, b))))
    return worst


@pytest.mark.parametrize("hosts", ["a", "aaa", "aaaa", "aba", "aabb"])
def test_steps_on_more_ranks_match_python_up_to_summation_order(tmp_path, python, hosts):
    """Sums over more than two ranks depend on the order: ours is by rank within a host, then by host; gloo's differs. A sum is
    off by at most (world - 1) roundings of its terms. Later steps follow from it in the classifier. Below it an activation
    that close to zero may pass ReLU in one implementation only; which ones are depends on the processor's instructions."""
    world = len(hosts)
    batches = [write_batches(tmp_path / f"batches-{rank}", 100 + rank, 8, 32, steps=3) for rank in range(world)]
    ours = [tmp_path / f"ours-{rank}" for rank in range(world)]
    theirs = [tmp_path / f"theirs-{rank}" for rank in range(world)]
    run_ranks(batches, ours, "cifar-resnet20", [], hosts=hosts)
    python.run_ranks(batches, theirs, "cifar-resnet20", [])
    if world == 1:
        assert expect_same(ours[0], theirs[0]) > 3 * 60
        return
    first = read_tensors(ours[0])
    for rank in range(1, world):
        other = read_tensors(ours[rank])
        assert [key for key in first if first[key] != other[key] and "running_" not in key[1]] == []
    assert farthest(ours[0], theirs[0], "0") < world * 2**-22
    assert farthest(ours[0], theirs[0], "1", CLASSIFIER) < 1e-4
    assert farthest(ours[0], theirs[0], "2", CLASSIFIER) < 0.05


def test_synchronized_batch_norm_matches_one_process_with_the_whole_batch(tmp_path, python):
    whole = write_batches(tmp_path / "whole", 100, 12, 32, steps=1)
    parts = []
    for rank in range(3):
        data = whole.read_bytes()
        images, labels = data[24 : 24 + 12 * 3 * 32 * 32 * 4], data[24 + 12 * 3 * 32 * 32 * 4 :]
        each = 4 * 3 * 32 * 32 * 4
        parts.append(tmp_path / f"part-{rank}")
        parts[-1].write_bytes(
            struct.pack("<3q", 1, 4, 32) + images[rank * each : (rank + 1) * each] + labels[rank * 32 : (rank + 1) * 32]
        )
    ours = [tmp_path / f"ours-{rank}" for rank in range(3)]
    run_ranks(parts, ours, "cifar-resnet20", ["synchronized"])
    python.run_ranks([whole], [tmp_path / "theirs"], "cifar-resnet20", [])
    # Its input depends on the statistics of all layers, and its gradient on no ReLU above it.
    assert farthest(ours[0], tmp_path / "theirs", "0", CLASSIFIER) < 1e-4
    run_ranks(parts, ours, "cifar-resnet20", [])
    assert farthest(ours[0], tmp_path / "theirs", "0", CLASSIFIER) > 1e-2, "without it the gradients are others"


@pytest.mark.parametrize("extra", [[], ["bf16"], ["variants"]], ids=["fp32", "bf16", "heads-and-dropped-blocks"])
def test_adamw_accumulation_clipping_smoothing_and_ema_match_python(tmp_path, python, extra):
    batches = [write_batches(tmp_path / f"batches-{rank}", 100 + rank, 8, 32, steps=6) for rank in range(2)]
    ours = [tmp_path / f"ours-{rank}" for rank in range(2)]
    theirs = [tmp_path / f"theirs-{rank}" for rank in range(2)]
    run_ranks(batches, ours, "cifar-resnet20", extra, "recipe")
    python.run_ranks(batches, theirs, "cifar-resnet20", extra, "recipe")
    for rank in range(2):
        # Three steps of clipped gradients; the model; AdamW's three tensors and the EMA for each of 65 parameters.
        assert expect_same(ours[rank], theirs[rank]) > 7 * 65


# torchvision has all of them except the models for CIFAR, the MLP and the language model: see reference.py.
SHAPES = [
    ("resnet18", 64),
    ("resnet34", 32),
    ("resnet50", 64),
    ("resnet101", 32),
    ("resnet152", 32),
    ("cifar-resnet20", 32),
    ("cifar-resnet56", 32),
    ("vit-s16", 32),
    ("mlp", 32),
    ("gpt", 32),
]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory, python) -> Path:
    """<model>.ours and <model>.theirs: a new model's state ("initial"), our state after a training step ("state"), and both
    logits for it."""
    folder = tmp_path_factory.mktemp("shapes")
    for model, size in SHAPES:
        batches = write_batches(folder / f"{model}.batches", 5, 4, size, steps=1)
        run([[STEPS, "logits", model, 1000, 3, batches, folder / f"{model}.ours"]], [{}])
    python.run(({}, ["shapes", ",".join(model for model, _ in SHAPES), 1000, 3, folder]))
    return folder


def section(path: Path, name: str) -> dict[str, bytes]:
    return {key: data for (where, key), data in read_tensors(path).items() if where == name}


@pytest.mark.parametrize("model", [model for model, _ in SHAPES if model != "gpt"])
def test_initial_weights_match_python_with_the_same_seed(shapes, model):
    ours, theirs = section(shapes / f"{model}.ours", "initial"), section(shapes / f"{model}.theirs", "initial")
    assert list(ours) == list(theirs)  # in the same order, too
    assert [name for name in ours if ours[name] != theirs[name]] == []


@pytest.mark.parametrize("model", [model for model, _ in SHAPES])
def test_state_loads_strictly_into_python_with_the_same_logits(shapes, model):
    (mine,) = section(shapes / f"{model}.ours", "logits").values()
    (reference,) = section(shapes / f"{model}.theirs", "logits").values()
    mine, reference = array("f", mine), array("f", reference)
    assert len(mine) == 4 * 1000 * (12 if model == "gpt" else 1)
    assert len(set(mine)) > 10
    assert 0 < max(map(abs, mine)) < math.inf
    assert mine == reference
