"""stoker.checkpoint: states round trip, verified and without pickle."""

import collections
import enum
import json
import math
import os
import random
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy
import pytest
import stoker
import torch
from stoker import checkpoint
from trained_state import same, state_of, training


@pytest.fixture(autouse=True)
def closed():
    yield
    checkpoint.close()


def test_a_training_resumes_exactly(tmp_path):
    first, second = training(), training(steps=0)
    folder = checkpoint.save(state_of(*first, epoch=2, rng=torch.get_rng_state()), tmp_path, step=3)
    assert folder == tmp_path / "step-3"
    state = checkpoint.load(tmp_path)
    assert state.step == 3 and state.folder == folder and state["epoch"] == 2
    for name, part in zip(("model", "optimizer", "schedule"), second, strict=True):
        part.load_state_dict(state[name])
    results = []
    for model, optimizer, schedule in (first, second):
        torch.set_rng_state(state["rng"])
        optimizer.zero_grad()
        model(torch.randn(16, 8)).square().mean().backward()
        optimizer.step()
        schedule.step()
        results.append((model.state_dict(), schedule.get_last_lr()))
    assert same(*results)


class Color(enum.IntEnum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: int


class Settings(dict):
    pass


class Labelled(torch.Tensor):
    pass


class Broken:
    """A tensor of a library that cannot share it."""

    def __dlpack__(self, **arguments):
        raise BufferError("on a device")

    def __dlpack_device__(self):
        return (2, 0)


def everything():
    types = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16]
    types += [torch.float32, torch.float64, torch.uint16, torch.uint32, torch.uint64]
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in types}
    tensors |= {
        "float8": torch.tensor([1.5, -2, 0.25]).to(torch.float8_e4m3fn),
        "complex64": torch.tensor([1 + 2j, 3 - 4j]),
        "complex128": torch.tensor([[1 + 2j]], dtype=torch.complex128),
        "scalar": torch.tensor(7),
        "empty": torch.empty(0, 5),
        "transposed": torch.arange(12.0).reshape(3, 4).T,
        "conjugated": torch.tensor([1 + 2j]).conj(),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(torch.ones(3)).detach(),
        "large": torch.randn(300, 200),
    }
    return {
        "model": tensors,
        "numpy": {"float": numpy.arange(5.0), "generator": numpy.random.default_rng(1).bit_generator.state},
        "arrays": [numpy.array([[1 + 2j]], numpy.complex64), numpy.array(3, numpy.int16), numpy.array([True, False])],
        "plain": {
            "none": None,
            "truth": [True, False],
            "numbers": (0, -5, 2**70, 0.1, -0.0, 1e300, math.inf, -math.inf, math.nan, 1 + 2j),
            "text": "grüße\n\0",
            "bytes": b"\0\xff",
            "bytearray": bytearray(b"ab"),
            "nested": {"a": [{"b": ({},)}]},
            "keys": {0: "a", 1.5: "b", None: "c", "d": "e", (1, "x"): "f"},
            "ordered": collections.OrderedDict([("z", 1), ("a", 2)]),
            "counter": collections.Counter({30: 1, 60: 2}),
            "random": random.Random(3).getstate(),
        },
        "scalars": [
            numpy.float32(1.5),
            numpy.float64(0.1),
            numpy.int64(-3),
            numpy.uint8(7),
            numpy.bool_(True),
            numpy.float16(0.5),
            numpy.complex64(1 + 2j),
            numpy.str_("ä"),
            numpy.str_(""),
            numpy.bytes_(b"x"),
            numpy.datetime64("2020-01-02T03:04:05.123456789"),
            numpy.timedelta64(5, "D"),
        ],
        "subclasses": {
            "size": torch.Size([1, 2]),
            "default": collections.defaultdict(list, {"a": [1], 2: [torch.ones(1)]}),
            "none": collections.defaultdict(None, {1: 2}),
            "keys": {numpy.int64(3): "a", torch.Size([2]): "b", True: "c", (1, ("x", None)): "d"},
        },
        "big endian": numpy.arange(3, dtype=">f4"),
        "a.b": torch.ones(2),
        "a": {"b": torch.zeros(2)},
    }


def test_every_supported_value_round_trips(tmp_path):
    state = everything()
    checkpoint.save(state, tmp_path, step=0)
    loaded = checkpoint.load(tmp_path)
    assert list(loaded) == list(state)
    for key in state:
        assert same(state[key], loaded[key]), key
    assert all((file.suffix, b"pickle" in file.read_bytes()) != (".json", True) for file in tmp_path.rglob("*.*"))


def test_parameters_and_leaves_that_require_a_gradient_are_restored(tmp_path):
    state = {
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "frozen": torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16), requires_grad=False),
        "leaf": torch.ones(3, dtype=torch.complex64, requires_grad=True),
        "plain": torch.ones(3),
    }
    checkpoint.save(state, tmp_path, step=1)
    loaded = checkpoint.load(tmp_path)
    for name, tensor in state.items():
        found = loaded[name]
        assert type(found) is type(tensor) and same(found.detach(), tensor.detach()), name
        assert (found.requires_grad, found.is_leaf) == (tensor.requires_grad, True), name
    assert isinstance(checkpoint.load(tmp_path, tensors="numpy", only="leaf")["leaf"], numpy.ndarray)


def test_a_loaded_state_can_be_saved_again(tmp_path):
    state = everything()
    checkpoint.save(state, tmp_path, step=1)
    checkpoint.save(checkpoint.load(tmp_path), tmp_path, step=2)
    loaded = checkpoint.load(tmp_path)
    assert loaded.step == 2 and all(same(state[key], loaded[key]) for key in state)
    assert list(checkpoint.load(tmp_path, only="subclasses.default.a")["subclasses"]["default"]) == ["a"]


def test_a_metric_may_be_a_scalar_of_numpy(tmp_path):
    for step, loss in enumerate([0.5, 0.2, 0.4]):
        options = {"keep_last": 1, "keep_best": 1, "metric": "val_loss"}
        checkpoint.save({"val_loss": numpy.float32(loss)}, tmp_path, step=step, **options)
    assert sorted(os.listdir(tmp_path)) == ["step-1", "step-2"]


def test_the_files_can_be_read_without_stoker(tmp_path):
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import load_file

    model, optimizer, schedule = training()
    checkpoint.save(state_of(model, optimizer, schedule), tmp_path, step=3)
    (file,) = (tmp_path / "step-3/model").iterdir()
    assert same(dict(sorted(load_file(file).items())), dict(sorted(model.state_dict().items())))
    into = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    reader = dcp.HuggingFaceStorageReader(str(tmp_path / "step-3/model"))
    dcp.load(into, storage_reader=reader, no_dist=True)
    assert same(into, dict(model.state_dict()))
    manifest = json.loads((tmp_path / "step-3/manifest.json").read_text())
    assert "state.0.exp_avg" in [tensor["name"] for tensor in manifest["optimizer"]]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: {"model": {"f": print}}, "'model.f' is a builtin_function_or_method"),
        (lambda: {"a": [1, {2, 3}]}, "'a.1' is a set"),
        (lambda: {"a": torch.device("cpu")}, "'a' is a device"),
        (lambda: {"a": {object(): 1}}, "'a' has a key of type object"),
        (lambda: {"model": {"w": torch.eye(2).to_sparse()}}, "tensor 'model.w': is sparse"),
        (lambda: {"model": {"w": torch.empty(2, device="meta")}}, "tensor 'model.w': is on the device 'meta'"),
        (lambda: {"w": numpy.array(["text"])}, "tensor 'w': has numpy type str"),
        (lambda: [torch.ones(1)], "state is list, expected a dict"),
        (lambda: {"a": Color.RED}, "'a' is a Color, which is not supported\n  try: its .value"),
        (lambda: {"a": {Color.RED: 1}}, "'a' has a key of type Color"),
        (lambda: {"a": Point(1, 2)}, "'a' is a Point, which is not supported\n  try: its _asdict(), or tuple() of it"),
        (lambda: {"a": {Point(1, 2): 1}}, "'a' has a key of type Point"),
        (lambda: {"a": {(1, torch.ones(1)): 1}}, "'a' has a key of type Tensor"),
        (lambda: {"a": torch.max(torch.ones(2, 2), 0)}, "'a' is a max, which is not supported\n  try: tuple() of it"),
        (lambda: {"a": Settings(b=1)}, "'a' is a Settings, which is not supported\n  try: dict() of it"),
        (lambda: {"a": collections.defaultdict(lambda: 1)}, "'a' is a defaultdict whose default_factory is not one of"),
        (lambda: {"a": numpy.void(b"abc")}, "'a' is a void (numpy type |V3), which is not supported"),
        (
            lambda: {"w": numpy.ma.masked_array([1, 2], [0, 1])},
            "tensor 'w': is a masked array, whose mask would be lost",
        ),
        (lambda: {"w": numpy.matrix([[1]])}, "tensor 'w': is a matrix, a subclass of numpy.ndarray"),
        (lambda: {"w": numpy.array(["2020"], "M8[ns]")}, "tensor 'w': has numpy type datetime64[ns]"),
        (lambda: {"w": numpy.zeros(2, [("x", "f4")])}, "tensor 'w': has numpy type void32"),
        (lambda: {"a": torch.Tensor}, "'a' is a _TensorMeta"),
        (lambda: {"w": Broken()}, "tensor 'w': is not in CPU memory"),
    ],
)
def test_unsupported_values_are_rejected_with_their_path(tmp_path, value, message):
    with pytest.raises(stoker.InvalidError, match=f"^checkpoint: {re.escape(message)}"):
        checkpoint.save(value(), tmp_path, step=1)
    assert not list(tmp_path.glob("*"))


def _two_tensor():
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(torch.ones(2), torch.ones(2))


def _fake_tensor():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(3)


def _freed():
    tensor = torch.ones(3)
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            _two_tensor,
            "is a TwoTensor, a subclass of torch.Tensor, which is not supported\n  try: the tensors that its",
        ),
        (lambda: torch.nn.Parameter(_two_tensor()), "is a TwoTensor, a subclass of torch.Tensor"),
        (
            lambda: torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])),
            "is a MaskedTensor, a subclass",
        ),
        (_fake_tensor, "is a FakeTensor, a subclass of torch.Tensor, which is not supported"),
        (lambda: torch.ones(2).as_subclass(Labelled), "is a Labelled, a subclass of torch.Tensor"),
        (torch.nn.UninitializedParameter, "is an UninitializedParameter, a subclass of torch.Tensor"),
        (_freed, "has no memory: its storage was freed"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "is sparse, nested or quantized"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "is sparse, nested or quantized"),
    ],
)
def test_tensors_without_plain_memory_are_rejected(tmp_path, value, message):
    for state in ({"model": {"w": value()}}, {"model": {"w": [value()]}}):
        with pytest.raises(stoker.InvalidError, match=rf"^checkpoint: tensor 'model\.w(\.0)?': {re.escape(message)}"):
            checkpoint.save(state, tmp_path, step=1)
        with pytest.raises(stoker.InvalidError, match=re.escape(message)):
            checkpoint.reserve(state, tmp_path)
    assert os.listdir(tmp_path) == []


def test_tensors_inside_a_transform_are_rejected(tmp_path):
    def save(tensor):
        with pytest.raises(stoker.InvalidError, match=r"^checkpoint: tensor 'w': has no memory \("):
            checkpoint.save({"w": tensor}, tmp_path, step=1)
        return tensor.sum()

    torch.func.vmap(save)(torch.ones(3, 2))
    torch.func.grad(save)(torch.ones(3))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (lambda: torch.zeros(1).expand(3), "several of its elements share memory, as after expand()"),
        (lambda: numpy.frombuffer(bytes(12), numpy.float32), "the array is read-only"),
        (lambda: numpy.broadcast_to(numpy.zeros(1, numpy.float32), (3,)), "the array is read-only"),
    ],
)
def test_targets_that_cannot_be_written_are_rejected(tmp_path, target, why):
    checkpoint.save({"w": torch.ones(3)}, tmp_path, step=1)
    given = target()
    with pytest.raises(stoker.InvalidError, match=f"^checkpoint: tensor 'w': cannot be filled: {re.escape(why)}$"):
        checkpoint.load(tmp_path, into={"w": given})
    assert not numpy.asarray(given).any()


def test_a_read_only_map_of_a_file_is_not_written(tmp_path):
    numpy.save(tmp_path / "w.npy", numpy.zeros(3, numpy.float32))
    checkpoint.save({"w": torch.ones(3)}, tmp_path / "ckpt", step=1)
    mapped = numpy.load(tmp_path / "w.npy", mmap_mode="r")
    with pytest.raises(stoker.InvalidError, match="the array is read-only"):
        checkpoint.load(tmp_path / "ckpt", into={"w": mapped})
    checkpoint.save({"w": mapped}, tmp_path / "ckpt", step=2)
    assert same(checkpoint.load(tmp_path / "ckpt")["w"], numpy.zeros(3, numpy.float32))


def test_a_recursive_state_is_rejected(tmp_path):
    state = {"model": {}}
    state["model"]["again"] = state
    with pytest.raises(stoker.InvalidError, match=r"^checkpoint: 'model\.again' contains itself$"):
        checkpoint.save(state, tmp_path, step=1)
    nested = []
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(stoker.InvalidError, match=r"^checkpoint: the state is nested too deeply$"):
        checkpoint.save({"model": nested}, tmp_path, step=1)


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_damage_leaves_the_targets_unchanged(tmp_path, damage):
    """Ten tensors in one file of three blocks, with the damage in the last."""
    checkpoint.save({"model": {f"w{i}": torch.full((300_000,), 7.0) for i in range(10)}}, tmp_path, step=7)
    (file,) = (tmp_path / "step-7/model").iterdir()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    if damage == "missing":
        file.unlink()
    targets = {f"w{i}": torch.zeros(300_000) for i in range(8)}
    targets |= {"w8": torch.zeros(600_000)[::2], "w9": numpy.zeros(300_000, numpy.float32)}
    with pytest.raises(stoker.CorruptError):
        checkpoint.load(tmp_path, step=7, into={"model": targets})
    with pytest.raises(stoker.NotFoundError):
        checkpoint.load(tmp_path, into={"model": targets})
    assert not any(numpy.asarray(target).any() for target in targets.values())


def test_existing_tensors_are_filled_in_place(tmp_path):
    model, optimizer, schedule = training()
    checkpoint.save(state_of(model, optimizer, schedule), tmp_path, step=3)
    other, *_ = training(steps=0)
    other = other.to(memory_format=torch.preserve_format)
    addresses = [tensor.data_ptr() for tensor in other.state_dict().values()]
    state = checkpoint.load(tmp_path, into={"model": other.state_dict()})
    assert [tensor.data_ptr() for tensor in other.state_dict().values()] == addresses
    assert same(dict(other.state_dict()), dict(model.state_dict()))
    assert same(state["optimizer"], optimizer.state_dict()) and state.differences == []
    strided = torch.zeros(8, 400).T
    array = numpy.zeros((400, 8), numpy.float32, order="F")
    for target in (strided, array):
        checkpoint.load(tmp_path, only="model.0.weight", into={"model": {"0.weight": target}})
        assert numpy.array_equal(numpy.asarray(target), model[0].weight.detach().numpy())


def test_differences_to_a_model_are_listed_or_skipped(tmp_path):
    model, *_ = training()
    checkpoint.save({"model": model.state_dict()}, tmp_path, step=1)
    other = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    other["2.weight"] = torch.zeros(5, 400)
    other["head"] = torch.zeros(1)
    del other["0.bias"]
    with pytest.raises(stoker.InvalidError) as raised:
        checkpoint.load(tmp_path, into={"model": other})
    expected = [
        "'model.0.bias' is only in the checkpoint",
        "'model.2.weight' is F32 [5, 400], but F32 [3, 400] in the checkpoint",
        "'model.head' is not in the checkpoint",
    ]
    assert str(raised.value).startswith(f"{tmp_path}/step-1: does not fit: {'; '.join(expected)}\n")
    state = checkpoint.load(tmp_path, into={"model": other}, strict=False)
    assert state.differences == expected
    assert torch.equal(other["0.weight"], model[0].weight) and not other["2.weight"].any()


def test_only_requested_parts_are_read(tmp_path):
    model, optimizer, schedule = training()
    checkpoint.save(state_of(model, optimizer, schedule, epoch=4), tmp_path, step=3)
    (file,) = (tmp_path / "step-3/optimizer").iterdir()
    file.write_bytes(b"damaged")
    assert list(checkpoint.load(tmp_path, only=["model", "epoch"])) == ["model", "epoch"]
    biases = checkpoint.load(tmp_path, only="model.*bias")
    assert list(biases["model"]) == ["0.bias", "1.bias", "2.bias"]
    with pytest.raises(stoker.InvalidError, match=r"has no values named 'head' \(only\)$"):
        checkpoint.load(tmp_path, step=3, only="head")
    with pytest.raises(stoker.CorruptError, match="optimizer/shard-00001"):
        checkpoint.load(tmp_path, step=3)


def test_tensors_have_their_original_or_the_requested_library(tmp_path, python):
    checkpoint.save(
        {"t": torch.ones(3), "n": numpy.ones(3), "b": torch.ones(2, dtype=torch.bfloat16)}, tmp_path, step=1
    )
    assert [type(value) for value in checkpoint.load(tmp_path, tensors="torch").values()] == [torch.Tensor] * 3
    assert isinstance(checkpoint.load(tmp_path, only="t", tensors="numpy")["t"], numpy.ndarray)
    with pytest.raises(stoker.InvalidError, match=r"^checkpoint: tensor 'b': is bfloat16, which numpy does not have"):
        checkpoint.load(tmp_path, tensors="numpy")
    with pytest.raises(stoker.InvalidError, match=r"^checkpoint: tensors: unknown kind 'jax'"):
        checkpoint.load(tmp_path, tensors="jax")
    code = """
import sys
from stoker import checkpoint
state = checkpoint.load(sys.argv[1])
print(memoryview(state["t"]).tolist(), hasattr(state["b"], "__dlpack__"), {"torch", "numpy"} & set(sys.modules))
"""
    assert python(code, tmp_path) == "[1.0, 1.0, 1.0] True set()\n"


class Dlpack:
    """Tensors of an unknown library."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_objects_are_saved(tmp_path):
    state = {"w": Dlpack(torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)), "n": Dlpack(numpy.arange(4.0))}
    checkpoint.save(state, tmp_path, step=1)
    loaded = checkpoint.load(tmp_path)
    assert loaded["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and loaded["n"].tolist() == [0, 1, 2, 3]
    with pytest.raises(
        stoker.InvalidError, match=r"^checkpoint: tensor 'w': has a type or strides that are not supported$"
    ):
        checkpoint.save({"w": Dlpack(torch.ones(3, 2).T)}, tmp_path, step=2)


def test_checkpoints_of_the_built_in_trainer_are_read(tmp_path):
    from conftest import BIN

    environment = dict(os.environ, STOKER_EXPORT=str(tmp_path))
    command = [BIN / "checkpoint_test", "--gtest_filter=Export.*"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    state = checkpoint.load(tmp_path / "world-2", rank=1, world_size=2)
    assert state["epoch"] == 20 and state["lr"] == 20.0 and state.rank_state == {"rank": 1}
    assert state.world_size == 2 and state.hyper_parameters == {"momentum": 0.9}
    expected = (tmp_path / "expected/fc.weight").read_bytes()
    assert state["model"]["fc.weight"].numpy().tobytes() == expected
    assert "state.conv.weight.momentum_buffer" in state["optimizer"]
    assert Path(state.folder).name == "step-200"
