"""TFRecord shards between stoker and TensorFlow itself."""

import os
from pathlib import Path

import pytest
from packing import jpeg, make_animals, members

pytestmark = pytest.mark.needs("tensorflow")


@pytest.fixture(scope="module")
def tf():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    return tensorflow


def write_examples(tf, path: Path, numbers: range, compression: str = "") -> None:
    def feature(**kind) -> object:
        return tf.train.Feature(**kind)

    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for number in numbers:
            of = {
                "image/encoded": feature(bytes_list=tf.train.BytesList(value=[jpeg(number)])),
                "image/class/label": feature(int64_list=tf.train.Int64List(value=[number % 3])),
                "image/filename": feature(bytes_list=tf.train.BytesList(value=[f"{number:04}.jpg".encode()])),
                "image/object/bbox/xmin": feature(float_list=tf.train.FloatList(value=[0.25, 0.5])),
                "empty": feature(),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=of)).SerializeToString())


def check(stoker, dataset: str, samples: int) -> None:
    """Has the images and labels of write_examples()."""
    stoker("data", "convert", dataset, "as-tar", "--format", "tar", "--labels", "cls", code=0)
    found = members(stoker.folder / "as-tar")
    assert sum(name.endswith(".cls") for name in found) == samples
    for number in range(samples):
        assert found[f"{number:04}.jpg"] == jpeg(number)
        assert found[f"{number:04}.cls"] == str(number % 3).encode()


def test_tensorflow_reads_what_pack_writes(stoker, tf, tmp_path):
    make_animals(tmp_path / "animals")
    stoker("data", "pack", "animals", "out", "--format", "tfrecord", "--shards", "3", code=0)
    names = sorted(str(path) for path in (tmp_path / "out").glob("*.tfrecord"))
    parts = {name: tf.io.FixedLenFeature([], tf.string, "") for name in ("__key__", "jpg", "json", "mask.png", "txt")}
    found = {}
    for record in tf.data.TFRecordDataset(names):
        sample = tf.io.parse_single_example(record, parts | {"cls": tf.io.FixedLenFeature([], tf.int64)})
        found[sample.pop("__key__").numpy().decode()] = {name: value.numpy() for name, value in sample.items()}
    assert len(names) == 3 and len(found) == 20
    for key, sample in found.items():
        assert sample["jpg"] == (tmp_path / f"animals/{key}.jpg").read_bytes()
        assert sample["cls"] == key.startswith("dog/")
    assert found["cat/0001"]["json"] == b'{"note": 1}'
    assert found["cat/0001"]["mask.png"] == jpeg(5, kind="PNG")


def test_records_of_tensorflow_are_read_in_place(stoker, tf, tmp_path):
    (tmp_path / "tf").mkdir()
    for shard in range(2):
        write_examples(tf, tmp_path / f"tf/train-0000{shard}-of-00002", range(10 * shard, 10 * shard + 10))
    assert "20 samples" in stoker("data", "index", "tf", code=0).out
    stoker("data", "verify", "tf", "--full", code=0)
    check(stoker, "tf", 20)


def test_compressed_records_of_tensorflow_are_decompressed(stoker, tf, tmp_path):
    (tmp_path / "tf").mkdir()
    write_examples(tf, tmp_path / "tf/train-00000-of-00001", range(10), "GZIP")
    stoker("data", "convert", "tf", "out", "--format", "tfrecord", code=0)
    stoker("data", "verify", "out", "--full", code=0)
    check(stoker, "out", 10)
