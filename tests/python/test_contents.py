"""stoker.Loader with data other than images, with each order, and over several datasets."""

import io
import json

import numpy
import packing
import pyarrow
import pyarrow.parquet
import pytest
import stoker as stoker_module
from PIL import Image

TYPES = {"int32": "I32", "uint16": "U16"}


def npy(array):
    file = io.BytesIO()
    numpy.save(file, array)
    return file.getvalue()


@pytest.fixture
def measurements(stoker, tmp_path):
    """100 samples: a 2 x 3 array of i, and JSON with numbers and a caption."""

    def of(i):
        about = {"age": i / 2, "count": i, "camera": {"height": 10 * i}, "caption": f"sample {i} é"}
        array = numpy.full((2, 3), i, dtype=numpy.int32)
        return [(f"s{i:03}.json", json.dumps(about).encode()), (f"s{i:03}.npy", npy(array))]

    return packing.indexed_files(stoker, tmp_path, [file for i in range(100) for file in of(i)])


def loader(path, **options):
    return stoker_module.Loader(path, **({"tensors": "numpy", "batch_size": 8} | options))


def test_arrays_and_columns_match_their_samples(measurements):
    columns = {"age": float, "count": int, "tall": ("json", "camera.height", int), "caption": str}
    with loader(measurements, array=True, columns=columns) as it:
        seen = []
        for batch in it:
            assert set(batch) == {"array", "label", "key", "age", "count", "tall", "caption"}
            assert batch["array"].shape == (len(batch["key"]), 2, 3) and batch["array"].dtype == numpy.int32
            for n, key in enumerate(batch["key"]):
                i = int(key[-3:])
                assert (batch["array"][n] == i).all() and batch["age"][n] == i / 2 and batch["count"][n] == i
                assert batch["tall"][n] == 10 * i and batch["caption"][n] == f"sample {i} é"
                seen.append(i)
    assert sorted(seen) == list(range(100))


def test_stored_bytes_of_a_named_file(measurements):
    with loader(measurements, transform=None, component="json", shuffle=False) as it:
        batch = next(iter(it))
    parts = [batch["data"][a:b].tobytes() for a, b in zip(batch["offset"], batch["offset"][1:], strict=False)]
    assert [json.loads(part)["count"] for part in parts] == list(range(8))


def test_images_come_from_the_given_component(stoker, tmp_path):
    files = [(f"s{i}.jpg", packing.jpeg(i)) for i in range(6)]
    files += [(f"s{i}.seg.png", packing.jpeg(100 + i, kind="PNG")) for i in range(6)]
    dataset = packing.indexed_files(stoker, tmp_path, sorted(files))
    options = {"transform": [("CenterCrop", {"size": [12, 16]})], "dtype": "uint8", "channels_last": True}
    with loader(dataset, component="seg.png", **options) as it:
        batch = next(iter(it))
    for image, key in zip(batch["image"], batch["key"], strict=True):
        expected = Image.open(io.BytesIO(packing.jpeg(100 + int(key[1:]), kind="PNG")))
        assert (image == numpy.asarray(expected)).all()
    with pytest.raises(stoker_module.InvalidError) as refusal:
        loader(dataset, component="sge.png", **options)
    message = "loader: split 'train' has no component 'sge.png'; did you mean 'seg.png'?"
    assert str(refusal.value) == message


def test_resident_data_other_than_images_is_not_decoded(measurements):
    for options in ({"array": True}, {"transform": None}, {"tokens": {"length": 4, "stored": "uint8"}}):
        with pytest.raises(stoker_module.InvalidError) as refusal:
            loader(measurements, cache=100_000, component="npy", **options)
        assert str(refusal.value) == "loader: only decoded images can be cached (cache)"


def test_tokens_are_split_into_sequences_with_lookahead(stoker, tmp_path):
    tokens = numpy.arange(1000, dtype=numpy.uint16)
    documents = [(f"d{i}.bin", part.tobytes()) for i, part in enumerate(numpy.split(tokens, [7, 300, 301, 820]))]
    dataset = packing.indexed_files(stoker, tmp_path, documents)
    with loader(dataset, tokens=64, component="bin", shuffle=False) as it:
        rows = numpy.concatenate([batch["tokens"] for batch in it])
    assert rows.shape == (15, 65) and rows.dtype == numpy.int64
    assert (rows == numpy.arange(15)[:, None] * 64 + numpy.arange(65)).all()
    with loader(dataset, tokens={"length": 100, "ahead": 0, "dtype": "int32"}, component="bin") as it:
        rows = numpy.concatenate([batch["tokens"] for batch in it])
    assert sorted(rows[:, 0]) == list(range(0, 1000, 100)) and rows.dtype == numpy.int32


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16"])
def test_tokenized_datasets_of_hugging_face_are_sequences_of_tokens(stoker, tmp_path, dtype):
    documents = [list(range(100 * i, 100 * i + 20 + i)) for i in range(8)]
    kind = pyarrow.list_(pyarrow.type_for_alias(dtype))
    columns = {
        "input_ids": pyarrow.array(documents, kind),
        "attention_mask": pyarrow.array([[1] * len(each) for each in documents], pyarrow.list_(pyarrow.int64())),
    }
    (tmp_path / "set/data").mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "set/data/train-00000-of-00001.parquet")
    stoker("data", "convert", "set", "tokens", "--format", "tar", code=0)
    expected = [token for each in documents for token in each]
    for options in ({}, {"component": "input_ids.npy"}):
        with loader(tmp_path / "tokens", tokens={"length": 7, "ahead": 0}, shuffle=False, **options) as it:
            rows = numpy.concatenate([batch["tokens"] for batch in it])
        assert rows.ravel().tolist() == expected[: len(expected) // 7 * 7]
    other = "uint16" if dtype == "int32" else "int32"
    with pytest.raises(stoker_module.InvalidError, match=rf"^tokens: sample .*, not of {TYPES[other]} \(stored\)"):
        loader(tmp_path / "tokens", tokens={"length": 7, "stored": other})


def test_lists_of_one_length_are_tokens_in_place(stoker, tmp_path):
    documents = numpy.arange(60, dtype=numpy.int64).reshape(10, 6)
    ids = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(documents.ravel()), 6)
    (tmp_path / "set").mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"input_ids": ids}), tmp_path / "set/train.parquet")
    stoker("data", "index", "set", code=0)
    with loader(tmp_path / "set", tokens={"length": 4, "ahead": 0}, shuffle=False) as it:
        rows = numpy.concatenate([batch["tokens"] for batch in it])
    assert rows.ravel().tolist() == list(range(60))


@pytest.mark.parametrize("shuffle", ["full", "by_shard"])
def test_every_shuffle_returns_each_sample_once_and_resumes(example_dataset, shuffle):
    def indices(it):
        return [int(i) for batch in it for i in batch["index"]]

    options = {"shuffle": shuffle, "window": 2, "fields": ["index"], "transform": "cifar-eval"}
    with loader(example_dataset, **options) as it:
        first, second = indices(it), indices(it)
        assert sorted(first) == sorted(second) == list(range(5000)) and first != second
    with loader(example_dataset, **options) as it:
        batches = iter(it)
        begun = [int(i) for _ in range(9) for i in next(batches)["index"]]
        state = it.state_dict()
    with loader(example_dataset, **options) as resumed:
        resumed.load_state_dict(state)
        assert begun + indices(resumed) == first


def test_sample_weights_determine_frequencies(example_dataset):
    weights = [0.0] * 5000
    weights[7], weights[4321] = 1.0, 3.0
    with loader(example_dataset, weights=weights, fields=["index"], transform="cifar-eval") as it:
        drawn = numpy.concatenate([batch["index"].copy() for batch in it])
    assert len(drawn) == 5000 and set(drawn) == {7, 4321}
    assert 0.70 < (drawn == 4321).mean() < 0.80


def test_several_datasets_are_mixed_by_weight(example_dataset, stoker, example_images, tmp_path):
    other = tmp_path / "other"
    stoker("data", "pack", example_images, other, "--order", "source", code=0)
    with loader([example_dataset, other], weights=[3, 1], fields=["index"], transform="cifar-eval") as it:
        assert it.samples == 10000
        drawn = numpy.concatenate([batch["index"].copy() for batch in it])
    assert abs((drawn < 5000).mean() - 0.75) < 0.01
    with pytest.raises(stoker_module.InvalidError):
        loader([example_dataset, other], weights=[1, 2, 3], transform="cifar-eval")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shuffle": "some"}, "loader: shuffle: unknown value 'some' (one of: True, False, full, by_shard, by_chunk)"),
        ({"array": True, "tokens": 5}, "loader: array and tokens: set only one of them"),
        ({"tokens": {"size": 5}}, "loader: tokens: unknown key 'size' (one of: length, ahead, stored, dtype)"),
        (
            {"columns": {"age": bytes}},
            "loader: columns: 'age' is <class 'bytes'>, expected float, int, str, or (file, name, one of these)",
        ),
        ({"array": ("float31", (2, 3))}, "loader: 'float31' is not a numeric type (float32, int64, ...)"),
        ({"fields": ["tokens"]}, "loader: fields: 'tokens' requires tokens="),
        ({"fields": "label"}, "loader: fields: 'label' is not a list of fields"),
        ({"tokens": -5}, "loader: tokens: length: -5 is not at least 1"),
        ({"tokens": {"length": 4, "ahead": 1.5}}, "loader: tokens: ahead: 1.5 is not a whole number"),
        ({"array": 3}, "loader: array: 3 is neither True nor False"),
        (
            {"array": ("float32", 3)},
            "loader: array: ('float32', 3) is neither True nor (type, shape): ('float32', (3, 2))",
        ),
        ({"array": ("float32", (2, "a"))}, "loader: array: shape: 'a' is not a whole number"),
        ({"columns": ["age"]}, "loader: columns: ['age'] is not a dict: {'age': float}"),
        ({"weights": 3}, "loader: weights: 3 is not a list of numbers"),
        ({"window": 0}, "loader: window: 0 is not at least 1"),
    ],
)
def test_invalid_arguments_are_rejected(example_dataset, options, text):
    with pytest.raises(stoker_module.InvalidError) as refusal:
        loader(example_dataset, **options)
    assert str(refusal.value) == text
    with pytest.raises(stoker_module.InvalidError, match="no dataset"):
        loader([])
