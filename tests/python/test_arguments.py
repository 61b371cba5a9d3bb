"""Arguments of stoker.Loader and stoker.DataLoader: accepted values and error messages."""

import multiprocessing

import numpy
import pytest
import stoker
import torch


def cifar(dataset, **options):
    return stoker.Loader(dataset, **({"batch_size": 128, "transform": "cifar-train", "tensors": "numpy"} | options))


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        return index


def data_loader(dataset, **options):
    return stoker.DataLoader(dataset, **({"batch_size": 8, "num_workers": 2, "quiet": True} | options))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"transform": "cifar-trian"}, "transform: unknown recipe 'cifar-trian'; did you mean 'cifar-train'?"),
        (
            {"transform": [3]},
            "transform: 3 is not an operation ('random_horizontal_flip' or ('resize', {'size': 256}))",
        ),
        (
            {"fields": ["images"]},
            "loader: fields: unknown field 'images' (one of: image, label, key, index)",
        ),
        ({"fields": ["data"]}, "loader: fields: 'data' requires transform=None"),
        ({"batch_size": 0}, "loader: batch_size: 0 is not at least 1"),
        ({"num_workers": -1}, "loader: num_workers: -1 is not at least 0"),
        ({"num_workers": 1025}, "loader: num_workers: 1025 is not at most 1024"),
        (
            {"num_workers": 2, "prefetch_factor": 2049},
            "loader: prefetch_factor: 2049 is more than 4096 batches for 2 threads",
        ),
        ({"dtype": "float64"}, "loader: dtype: unknown type 'float64' (one of: float32, float16, bfloat16, uint8)"),
        ({"rank": 2}, "loader: rank and world_size: set both or neither"),
        ({"rank": 2, "world_size": 2}, "order: rank 2 is not in a world of 2"),
        ({"errors": "ignore"}, "loader: errors: unknown value 'ignore' (one of: raise, skip)"),
        ({"tensors": "numppy"}, "loader: tensors: unknown value 'numppy' (one of: auto, torch, numpy, dlpack)"),
        (
            {"tensors": "numpy", "dtype": "bfloat16"},
            "loader: tensors: numpy has no bfloat16 (dtype)\n  try: tensors='torch', or dtype='float16' or 'float32'",
        ),
        ({"dtype": float}, "loader: dtype: unknown type 'float' (one of: float32, float16, bfloat16, uint8)"),
        ({"batch_size": 160 / 9}, "loader: batch_size: 17.77777777777778 is not a whole number"),
        ({"batch_size": 2**32}, "loader: batch_size: 4294967296 is not at most 4294967295"),
        ({"seed": -1}, "loader: seed: -1 is not at least 0"),
        ({"seed": None}, "loader: seed: None is not a whole number"),
        ({"cache": "1GB"}, "loader: cache: '1GB' is not a whole number of bytes (256 << 20)"),
        ({"resident": -1}, "loader: resident: -1 is not at least 0"),
        ({"drop_last": "no"}, "loader: drop_last: 'no' is neither True nor False"),
        ({"check": None}, "loader: check: None is neither True nor False"),
        ({"max_skipped": None}, "loader: max_skipped: None is not a whole number"),
        ({"rank": "0", "world_size": 1}, "loader: rank: '0' is not a whole number"),
        ({"mixup": "much"}, "loader: mixup: 'much' is not a number"),
        ({"component": 3}, "loader: component: 3 is not a string"),
        ({"split": 1}, "loader: split: 1 is not a string"),
        ({"split": "caf\udce9"}, "loader: split: 'caf\\udce9' is not UTF-8"),
        ({"prefetch_factor": 1.5}, "loader: prefetch_factor: 1.5 is not a whole number"),
        ({"prefetch_factor": 0}, "loader: prefetch_factor: 0 is not at least 1"),
        ({"timeout": "a"}, "loader: timeout: 'a' is not a number of seconds (0: no timeout)"),
        ({"timeout": -1}, "loader: timeout: -1 is not a number of seconds (0: no timeout)"),
        (
            {"weights": [1] * 5000, "shuffle": "by_shard"},
            "loader: shuffle: 'by_shard' cannot be combined with weights\n  try: omit one of them",
        ),
        (
            {"columns": {"key": str}},
            "loader: columns: 'key' is already a field of the batch\n"
            "  try: another name: columns={'my_name': ('json', 'name in the file', float)}",
        ),
        (
            {"transform": [("Resize", {"siz": 16})]},
            "transform: resize: unknown parameter 'siz'; did you mean 'size'?",
        ),
    ],
)
def test_invalid_arguments_are_rejected(example_dataset, options, text):
    with pytest.raises(stoker.InvalidError) as refusal:
        cifar(example_dataset, **options)
    assert str(refusal.value) == text
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("path", [None, 3, b"cifar", [], [3], "caf\udce9"])
def test_an_invalid_path_is_rejected(path):
    with pytest.raises(stoker.InvalidError, match=r"^loader: path: "):
        stoker.Loader(path)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 160 / 10, "chunk_cache": 1e9},
        {"batch_size": numpy.int64(16), "num_workers": numpy.int64(2), "seed": numpy.uint8(0)},
        {"batch_size": 16, "drop_last": 1, "check": 0, "shuffle": numpy.True_, "channels_last": numpy.False_},
        {"batch_size": 16, "component": None, "mixup": None, "split": "train", "array": None},
    ],
)
def test_numbers_and_booleans_may_have_numpy_and_torch_types(example_dataset, options):
    with cifar(example_dataset, batch_size=16) as plain, cifar(example_dataset, **options) as loader:
        assert loader.batch_size == 16 and type(loader.batch_size) is int
        assert (next(iter(loader))["image"] == next(iter(plain))["image"]).all()


def test_dtypes_of_torch_and_numpy_are_accepted(example_dataset):
    own = {torch.bfloat16: torch.bfloat16, numpy.float16: torch.float16, numpy.dtype("uint8"): torch.uint8}
    for given, expected in own.items():
        options = {"transform": [("CenterCrop", {"size": 32})], "tensors": "torch"}
        with cifar(example_dataset, dtype=given, **options) as loader:
            assert next(iter(loader))["image"].dtype == expected


def test_bfloat16_is_not_returned_as_numpy_objects(example_dataset, python):
    code = """
import sys, numpy, stoker
try:
    next(iter(stoker.Loader(sys.argv[1], transform="cifar-train", dtype="bfloat16")))
except stoker.InvalidError as error:
    print(error)
"""
    cure = "  try: tensors='torch', or dtype='float16' or 'float32'\n"
    assert python(code, example_dataset) == "loader: tensors: numpy has no bfloat16 (dtype)\n" + cure


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "fibres"}, "loader: mode: unknown value 'fibres' (one of: auto, threads, processes)"),
        ({"num_workers": "many"}, "loader: num_workers: 'many' is neither a number nor 'auto'"),
        ({"num_workers": 2.5}, "loader: num_workers: '2.5' is neither a number nor 'auto'"),
        ({"num_workers": 10**6}, "loader: num_workers: 1000000 is not at most 1024"),
        (
            {"multiprocessing_context": "spawn"},
            "loader: multiprocessing_context: only 'fork' is supported: workers share memory with the caller",
        ),
        (
            {"multiprocessing_context": multiprocessing.get_context("spawn")},
            "loader: multiprocessing_context: only 'fork' is supported: workers share memory with the caller",
        ),
        ({"prefetch_factor": 0}, "loader: prefetch_factor: 0 is not at least 1"),
        ({"prefetch_factor": -1}, "loader: prefetch_factor: -1 is not at least 1"),
        ({"prefetch_factor": "2"}, "loader: prefetch_factor: '2' is not a whole number"),
        ({"timeout": -1}, "loader: timeout: -1 is not a number of seconds (0: no timeout)"),
        ({"timeout": None}, "loader: timeout: None is not a number of seconds (0: no timeout)"),
        ({"worker_init_fn": 3}, "loader: worker_init_fn: 3 is not a function"),
        ({"dataset": iter([])}, "loader: list_iterator is not a map-style dataset (it needs __getitem__ and __len__)"),
    ],
)
def test_invalid_arguments_of_a_data_loader_are_rejected(options, text):
    with pytest.raises(stoker.InvalidError) as refusal:
        data_loader(options.pop("dataset", Numbers()), **options)
    assert str(refusal.value) == text


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize(
    "options",
    [
        {"prefetch_factor": None, "multiprocessing_context": None},
        {"prefetch_factor": numpy.int32(3), "num_workers": numpy.int64(2), "multiprocessing_context": "fork"},
        {"timeout": numpy.float32(60), "multiprocessing_context": multiprocessing.get_context("fork")},
    ],
)
def test_arguments_accepted_by_torch_are_accepted(mode, options):
    assert len(list(data_loader(Numbers(), mode=mode, **options))) == 13


@pytest.mark.parametrize("device", ["gpu", "cuda:999", 3.5])
def test_an_unavailable_device_is_refused(example_dataset, device):
    with pytest.raises(stoker.InvalidError) as caught:
        cifar(example_dataset, tensors="auto", device=device)
    reason, cure = str(caught.value).split("\n")
    assert reason.startswith(f"loader: device: {device!r} is not available: ")
    assert cure == "  try: device=None"
