"""Trainer settings besides plain SGD on images: optimizers, schedules, models, switches."""

import itertools
import json
import math
import re
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy
import packing
import pyarrow
import pyarrow.parquet
import pytest
import trained
import zarr
from conftest import REPOSITORY
from safetensors_files import tensors_of
from torch_ranks import rows

# 80 images on two ranks in batches of 8: five batches per epoch, which with accumulate 2 are three steps.
RECIPE = (
    "accumulate: 2, stochastic_depth: 0.3, label_smoothing: 0.1, mixup: 0.2, cutmix: 1, clip_norm: 1, ema: 0.9, "
    "schedule: {kind: cosine, warmup: 0.2}"
)


@pytest.fixture
def dataset(stoker, example_images) -> Path:
    return trained.small_dataset(stoker, example_images, train=8, test=2)


def write_job(folder: Path, dataset: Path, train: str, more: str = "") -> Path:
    path = folder / "job.yaml"
    path.write_text(f"name: small\ntrain: {train}\ndata:\n  train: {{source: {dataset}, split: train}}\n{more}")
    return path


def train(stoker, job: Path, *settings: str, world: int = 2, env: dict | None = None) -> tuple[str, list[dict]]:
    """Output of rank 0, and its metrics of every step."""
    attempt = stoker.folder / f"attempt-{len(list(stoker.folder.glob('attempt-*')))}/1"
    attempt.mkdir(parents=True)
    words = [word for text in settings for word in ("--set", text)]
    out, *_ = trained.train_ranks(
        stoker, world, "--job", job, *words, env={"STOKER_ATTEMPT_DIR": attempt} | (env or {})
    )
    return out, rows(attempt / "metrics-0000.csv")


@pytest.mark.parametrize("kind", ["adamw", "lamb", "lars"])
def test_a_resumed_training_is_exact(stoker, dataset, kind):
    job = write_job(
        stoker.folder,
        dataset,
        f"{{model: cifar-resnet20, epochs: 2, batch: 8, seed: 5, optimizer: {{kind: {kind}, lr: 0.002}}, {RECIPE}}}",
        "checkpoint: {every: 2 steps, keep_last: 9}\n",
    )
    whole, resumed = stoker.folder / "whole", stoker.folder / "resumed"
    _, steps = train(stoker, job, env={"STOKER_CHECKPOINT_DIR": whole})
    assert [row["step"] for row in steps] == [1, 2, 3, 4, 5, 6]
    assert [row["samples"] for row in steps] == [16, 16, 8] * 2
    _, later = train(stoker, job, env={"STOKER_CHECKPOINT_DIR": resumed, "STOKER_RESUME": whole / "step-2"})
    assert [row["step"] for row in later] == [3, 4, 5, 6]  # the first one completes an epoch
    assert [row["loss"] for row in later] == [row["loss"] for row in steps[2:]]
    expected = tensors_of(whole / "step-6")
    assert any("/ema.layer1.0.conv1.weight" in name for name in expected)
    assert tensors_of(resumed / "step-6") == expected
    assert tensors_of(whole / "step-2") != expected


def test_learning_rates_and_their_scaling_are_printed_and_recorded(stoker, dataset):
    job = write_job(
        stoker.folder,
        dataset,
        "{model: cifar-resnet20, epochs: 2, batch: 20, accumulate: 2, optimizer: {lr: 0.1, lr_scaling: linear}, "
        "schedule: {kind: step, drop_at: [1]}, tf32: true}",
    )
    out, steps = train(stoker, job)
    assert "learning rate 0.1 x 2 ranks = 0.2 (train.optimizer.lr_scaling: linear)\n" in out
    assert "80 samples per step: 2 batches of 20 on 2 ranks (train.accumulate)\n" in out
    assert "train.tf32: no effect without a GPU\n" in out
    assert [row["lr"] for row in steps] == pytest.approx([0.2, 0.02])


def test_validation_uses_the_ema_weights(stoker, dataset):
    job = write_job(
        stoker.folder,
        dataset,
        "{model: cifar-resnet20, epochs: 3, batch: 20, optimizer: {lr: 0.5}, schedule: {kind: constant}}",
        f"  validation: {{source: {dataset}, split: test}}\n",
    )
    losses = []
    for settings in ([], ["train.ema=0"], ["train.ema=0.999999"]):
        attempt = stoker.folder / f"validated-{len(losses)}/1"
        attempt.mkdir(parents=True)
        words = [word for text in settings for word in ("--set", text)]
        trained.train_ranks(stoker, 1, "--job", job, *words, env={"STOKER_ATTEMPT_DIR": attempt})
        losses.append([row["val_loss"] for row in rows(attempt / "epochs.csv")])
    plain, mean_of_last, mean_of_first = losses
    assert mean_of_last == plain
    # The EMA weights hardly change, the statistics do.
    assert mean_of_first != plain


def test_each_step_trains_one_of_several_heads(stoker, dataset):
    job = write_job(
        stoker.folder,
        dataset,
        "{model: cifar-resnet20, epochs: 1, batch: 8, heads: 3, schedule: {kind: constant}}",
        "checkpoint: {every: 1 steps, keep_last: 9}\n",
    )
    train(stoker, job, env={"STOKER_CHECKPOINT_DIR": stoker.folder / "saved"})
    states = [tensors_of(stoker.folder / f"saved/step-{step}") for step in range(1, 6)]
    trained_heads = set()
    for before, after in itertools.pairwise(states):
        moved = {name for name in before if "momentum" not in name and before[name] != after[name]}
        heads = {name.split("/")[-1].split(".")[1] for name in moved if "/fc." in name}
        assert len(heads) == 1
        trained_heads |= heads
    assert len(trained_heads) > 1


@pytest.mark.parametrize("setting", ["train.precision=bf16", "train.channels_last=true", "train.deterministic=true"])
def test_other_precisions_and_layouts_approximate_the_default(stoker, dataset, setting):
    job = write_job(stoker.folder, dataset, "{model: cifar-resnet20, epochs: 1, batch: 8, optimizer: {lr: 0.01}}")
    _, plain = train(stoker, job)
    _, other = train(stoker, job, setting)
    assert len(plain) == len(other) == 5
    first, last = (abs(plain[i]["loss"] - other[i]["loss"]) / plain[i]["loss"] for i in (0, -1))
    if setting == "train.deterministic=true":
        assert first == last == 0
    else:
        assert first < (0.02 if "bf16" in setting else 1e-4)
        assert last < 0.1
    if "bf16" in setting:
        assert first > 0


@pytest.mark.parametrize("component", ["bin", "input_ids.npy"])
def test_a_language_model_learns(stoker, component):
    text = array("H", [(7 * i) % 50 for i in range(20_000)])
    parts = [text[i * 5000 : (i + 1) * 5000] for i in range(4)]
    contents = [part.tobytes() if component == "bin" else npy(part, "<i4", "i") for part in parts]
    documents = [(f"d{i}.{component}", content) for i, content in enumerate(contents)]
    job = write_job(
        stoker.folder,
        packing.indexed_files(stoker, stoker.folder, documents),
        "{model: gpt, classes: 50, epochs: 2, batch: 8, optimizer: {kind: adamw, lr: 0.01, exclude_bias_and_norm: true}, "
        f"schedule: {{kind: constant}}, gpt: {{layers: 1, heads: 2, width: 32, length: 64, component: {component}}}}}",
    )
    _, steps = train(stoker, job)
    assert steps[0]["loss"] == pytest.approx(math.log(50), rel=0.1)
    assert steps[-1]["loss"] < 0.5
    assert steps[-1]["top1"] > 0.9
    (code, err) = outcome(stoker, job, "train.classes=40")
    assert code == 2
    assert err == "token 49 is outside the vocabulary (train.classes: 40)\n"


def outcome(stoker, job: Path, *settings: str) -> tuple[int, str]:
    words = [word for text in settings for word in ("--set", text)]
    process = stoker.start("--job", job, *words, program=stoker.train_path)
    _, err = process.communicate()
    return process.returncode, err


@pytest.mark.parametrize("columns", [True, False], ids=["columns", "arrays"])
def test_an_mlp_learns_from_tables(stoker, columns):
    files = []
    for i in range(400):
        age, height = (i * 37) % 100 / 100, (i * 61) % 100 / 100
        label = int(age > height)
        if columns:
            files.append((f"s{i:03}.json", json.dumps({"age": age, "body": {"height": height}}).encode()))
        else:
            files.append((f"s{i:03}.npy", npy([age, height])))
        files.append((f"s{i:03}.cls", str(label).encode()))
    job = write_job(
        stoker.folder,
        packing.indexed_files(stoker, stoker.folder, files),
        "{model: mlp, epochs: 10, batch: 20, optimizer: {kind: adamw, lr: 0.02}, mlp: {hidden: [32]"
        + (", columns: [age, body.height]" if columns else "")
        + "}}",
    )
    _, steps = train(stoker, job)
    assert steps[0]["loss"] == pytest.approx(math.log(2), rel=0.5)
    assert sum(row["top1"] for row in steps[-10:]) / 10 > 0.9


def test_an_mlp_learns_from_a_parquet_table(stoker):
    numbers = [[(i * prime) % 100 / 100 for i in range(400)] for prime in (37, 61, 17, 83)]
    columns = {f"x_{i}": pyarrow.array(column) for i, column in enumerate(numbers)}
    columns["winner"] = ["first" if a > b else "second" for a, b in zip(*numbers[:2], strict=True)]
    (stoker.folder / "tables").mkdir()
    pyarrow.parquet.write_table(pyarrow.table(columns), stoker.folder / "tables/train.parquet")
    options = ("--format", "tar", "--tensor", "features=x_*:float32", "--label", "winner")
    stoker("data", "convert", "tables", "table", *options, code=0)
    job = write_job(
        stoker.folder,
        stoker.folder / "table",
        "{model: mlp, epochs: 10, batch: 20, optimizer: {kind: adamw, lr: 0.02}, mlp: {hidden: [32]}}",
    )
    _, steps = train(stoker, job)
    assert steps[0]["loss"] == pytest.approx(math.log(2), rel=0.5)
    assert sum(row["top1"] for row in steps[-10:]) / 10 > 0.9
    stoker("run", job, "--set", "train.epochs=1", code=0)


def test_losses_are_the_same_from_a_table_in_place_and_its_copy(stoker):
    chance = numpy.random.default_rng(3)
    columns: dict[str, object] = {f"x_{i}": chance.normal(size=400).astype("f4") for i in range(5)}
    columns["winner"] = [("first", "second")[int(a > b)] for a, b in zip(columns["x_0"], columns["x_1"], strict=True)]
    (stoker.folder / "tables").mkdir()
    pyarrow.parquet.write_table(pyarrow.table(columns), stoker.folder / "tables/train.parquet", row_group_size=90)
    options = ("--tensor", "features=x_*", "--label", "winner")
    stoker("data", "convert", "tables", "copy", "--format", "tar", *options, code=0)
    stoker("data", "index", "tables", *options, code=0)
    train_by = "{model: mlp, epochs: 3, batch: 20, optimizer: {kind: adamw, lr: 0.02}, mlp: {hidden: [16]}}"
    results = []
    for dataset in ("copy", "tables"):
        _, steps = train(stoker, write_job(stoker.folder, stoker.folder / dataset, train_by))
        results.append([(row["step"], row["loss"]) for row in steps])
    assert len(results[0]) == 30 and results[0] == results[1]


def write_rows(folder: Path, kind: str, x: numpy.ndarray, y: numpy.ndarray) -> None:
    folder.mkdir()
    if kind == "npy":
        numpy.save(folder / "X_train.npy", x)
        numpy.save(folder / "y_train.npy", y)
    elif kind == "npz":
        numpy.savez(folder / "train.npz", X=x, y=y)
    else:
        store = zarr.storage.LocalStore(folder / "train.zarr")
        group = zarr.create_group(store)
        group.create_array("X", shape=x.shape, dtype=x.dtype, chunks=(64, 4))[:] = x
        group.create_array("y", shape=y.shape, dtype=y.dtype, chunks=(64,))[:] = y


@pytest.mark.parametrize("kind", ["npy", "npz", "zarr"])
def test_losses_are_the_same_from_arrays_in_place_and_their_copy(stoker, kind):
    x = numpy.random.default_rng(4).normal(size=(400, 4)).astype("f4")
    write_rows(stoker.folder / "arrays", kind, x, (x[:, 0] > x[:, 1]).astype("i8"))
    stoker("data", "convert", "arrays", "copy", "--format", "tar", code=0)
    stoker("data", "index", "arrays", code=0)
    train_by = "{model: mlp, epochs: 2, batch: 20, optimizer: {kind: adamw, lr: 0.02}, mlp: {hidden: [16]}}"
    results = []
    for dataset in ("copy", "arrays"):
        _, steps = train(stoker, write_job(stoker.folder, stoker.folder / dataset, train_by))
        results.append([(row["step"], row["loss"]) for row in steps])
    assert len(results[0]) == 20 and results[0] == results[1]


def test_an_mlp_on_several_arrays_requires_a_component(stoker):
    (stoker.folder / "tables").mkdir()
    columns = {"age": range(40), "curve": [[0.5, i / 40] for i in range(40)], "label": [i // 20 for i in range(40)]}
    pyarrow.parquet.write_table(pyarrow.table(columns), stoker.folder / "tables/train.parquet")
    stoker("data", "convert", "tables", "table", "--format", "tar", code=0)
    job = write_job(stoker.folder, stoker.folder / "table", "{model: mlp, epochs: 1, batch: 20, mlp: {hidden: [4]}}")
    assert outcome(stoker, job) == (
        2,
        "train.mlp.component: not set, but each sample has 2 arrays: age.npy, curve.npy\n"
        "  try: train: {mlp: {component: age.npy}}, or combine them into one array: stoker data convert --tensor\n",
    )
    for component in ("age.npy", "curve.npy"):
        assert outcome(stoker, job, f"train.mlp.component={component}") == (0, ""), component
    assert "'agee.npy'; did you mean 'age.npy'?" in outcome(stoker, job, "train.mlp.component=agee.npy")[1]


def npy(numbers: Sequence[float], descr: str = "<f4", code: str = "f") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array(code, numbers).tobytes()


def test_drop_last_drops_the_last_batch(stoker, dataset):
    job = write_job(stoker.folder, dataset, "{model: cifar-resnet20, epochs: 1, batch: 16, drop_last: true}")
    _, steps = train(stoker, job)
    assert [row["samples"] for row in steps] == [16, 16]
    assert outcome(stoker, job, "train.batch=81") == (2, "train.drop_last: no full batch per rank (train.batch: 81)\n")


def test_switches_set_keys_of_the_job(stoker, dataset):
    job = write_job(stoker.folder, dataset, "{model: cifar-resnet20}")
    attempt = stoker.folder / "attempt/1"
    attempt.mkdir(parents=True)
    switches = "-b 8 -e 3 --lr 0.5 --mom 0.8 --wd 0 --test-nsteps 4 --test --metric-step 2 --num-workers 2 --pin-memory"
    out, *_ = trained.train_ranks(
        stoker, 1, "--job", job, *switches.split(), "--image-size=32", env={"STOKER_ATTEMPT_DIR": attempt}
    )
    steps = rows(attempt / "metrics-0000.csv")
    assert [row["samples"] for row in steps] == [8] * 4
    assert out.count("epoch 1/3   step ") == 2
    assert out.startswith("--pin-memory has no effect: training runs on the CPU, without copies to a GPU\n")


def test_every_switch_of_the_help_is_documented(stoker):
    process = stoker.start("--help", program=stoker.train_path)
    help_text, _ = process.communicate()
    page = (REPOSITORY / "docs/commands/train.md").read_text()
    lines = re.findall(r"^  (-\S.*?) {2,}(\S.*)$", help_text, re.M)
    switches = [
        (names, what)
        for names, what in lines
        if not names.startswith(("--job", "--set", "--find", "--version", "--help"))
    ]
    assert len(switches) == page.split("## Switches")[1].count("\n| `-")
    for names, what in switches:
        row = f"| {', '.join(f'`{name}`' for name in names.split(', '))} |"
        assert row in page
        assert what.removeprefix("no effect: ") in page
