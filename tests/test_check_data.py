"""stoker check: what it finds in a job's datasets and in its allocation, word by word."""

import json
import shutil
from pathlib import Path

import h5py
import numpy
import pytest
from versions import version_of

JOB = """\
name: cifar
train: {model: cifar-resnet20, epochs: 2, batch: 8}
data:
  train: {source: packed, split: train}
  validation: {source: packed, split: test}
"""


class Edited:
    """A dataset whose manifest a test changes; the manifest stays one that Stoker takes."""

    def __init__(self, folder: Path):
        self.path = folder / "manifest.json"
        self.value = json.loads(self.path.read_text())
        assert version_of(self.value) == self.value["version"], "see the format page for how it is computed"

    def save(self) -> None:
        self.value["version"] = version_of(self.value)
        self.path.write_text(json.dumps(self.value))


@pytest.fixture
def folder(stoker, example_dataset) -> Path:
    """A folder with job.yaml and the example dataset in packed/, to be changed."""
    (stoker.folder / "packed").mkdir()
    shutil.copy(example_dataset / "manifest.json", stoker.folder / "packed")
    for file in example_dataset.iterdir():
        if file.name != "manifest.json":
            (stoker.folder / "packed" / file.name).symlink_to(file)
    (stoker.folder / "job.yaml").write_text(JOB)
    return stoker.folder


def findings(stoker, *flags: str, env: dict[str, str] | None = None) -> list[tuple[str, str, str, str]]:
    """(rule, level, what, where) of what would lose the job, but for a trainer that this build may lack."""
    value = json.loads(stoker("check", "job.yaml", *flags, "--json", env=env).out)
    assert value["ready"] == (not any(found["level"] == "job" for found in value["findings"]))
    return [
        (found["rule"], found["level"], found["what"], found["where"])
        for found in value["findings"]
        if found["rule"] != "no-trainer"
    ]


def test_the_unchanged_dataset_has_no_findings(stoker, folder):
    assert findings(stoker) == []


def test_a_dataset_without_images_is_reported(stoker, folder):
    edited = Edited(folder / "packed")
    for component in edited.value["schema"]["components"]:
        component["kind"] = "bytes"
    edited.save()
    assert findings(stoker) == [
        ("no-images", "job", "data.train.source: has no images, but train needs them", "job.yaml:4:19")
    ]


def test_images_for_a_numeric_model_are_reported(stoker, folder):
    assert findings(stoker, "--set", "train.model=mlp") == [
        (
            "no-numbers",
            "job",
            "data.train.source: has only images, but train.model: mlp needs numbers",
            "job.yaml:4:19",
        )
    ]


@pytest.mark.parametrize("model", ["mlp", "gpt"])
def test_other_models_need_no_images(stoker, folder, model):
    edited = Edited(folder / "packed")
    for component in edited.value["schema"]["components"]:
        component["kind"] = "bytes"
    edited.save()
    assert findings(stoker, "--set", f"train.model={model}", "--set", "train.classes=10") == []


def test_a_dataset_without_labels_is_reported(stoker, folder):
    edited = Edited(folder / "packed")
    edited.value["schema"]["labels"] = None
    edited.value["schema"]["classes"] = []
    for split in edited.value["splits"]:
        split["class_samples"] = []
    edited.save()
    assert findings(stoker) == [
        ("no-labels", "job", "data.train.source: has no labels, but train needs them", "job.yaml:4:19")
    ]


def test_a_split_without_samples_is_reported(stoker, folder):
    edited = Edited(folder / "packed")
    empty = next(split for split in edited.value["splits"] if split["name"] == "test")
    empty |= {"samples": 0, "shards": [], "class_samples": []}
    edited.save()
    assert findings(stoker) == [("empty-split", "job", "data.validation.split: has no samples", "job.yaml:5:39")]


def test_validation_data_with_other_classes_are_reported(stoker, folder, photos):
    stoker("data", "pack", photos, "pets", code=0)
    flags = ["--set", "data.validation.source=pets", "--set", "data.validation.split=null"]
    assert findings(stoker, *flags) == [
        (
            "other-classes",
            "job",
            "data.validation.source: its classes differ from data.train.source",
            "--set data.validation.source",
        )
    ]


def test_an_index_with_other_labels_is_reported(stoker, folder, photos):
    labels = {"one": ("cat", "dog"), "two": ("dog", "cat")}
    for name, (first, second) in labels.items():
        rows = [f"photos/cat/000{i}.jpg,{first}" for i in range(2)]
        rows += [f"photos/dog/000{i}.jpg,{second}" for i in range(2)]
        (folder / f"{name}.csv").write_text("path,label\n" + "\n".join(rows))
        stoker("data", "pack", f"{name}.csv", name, code=0)
    shutil.copy(folder / "two/index.bin", folder / "one/index.bin")
    flags = ["--set", "data.train.source=one", "--set", "data.train.split=null"]
    flags += ["--set", "data.validation.source=one", "--set", "data.validation.split=null", "--set", "train.batch=1"]
    expected, found = (json.loads((folder / name / "manifest.json").read_text())["index"]["sha256"] for name in labels)
    text = f"one/index.bin: does not match the manifest (SHA-256 expected {expected[:12]}, found {found[:12]})"
    assert [(rule, level, what) for rule, level, what, _ in findings(stoker, *flags)] == [
        ("damaged-dataset", "job", f"data.{name}.source: {folder}/{text}") for name in ("train", "validation")
    ]


def test_a_missing_shard_is_reported(stoker, folder):
    (folder / "packed/test-000000.tar").unlink()
    size = json.loads((folder / "packed/manifest.json").read_text())["splits"][1]["shards"][0]["bytes"]
    assert [(rule, level, what) for rule, level, what, _ in findings(stoker)] == [
        (
            "damaged-dataset",
            "job",
            f"data.{name}.source: test-000000.tar: expected {size} bytes, found missing",
        )
        for name in ("train", "validation")
    ]


def test_a_too_small_allocation_is_reported(stoker, folder):
    allocation = {"SLURM_JOB_ID": "812345", "SLURM_JOB_NODELIST": "n[1-2]"}
    assert findings(stoker, "--set", "resources.nodes=3", env=allocation) == [
        ("small-allocation", "job", "resources.nodes: 3 nodes, but allocation 812345 has 2", "--set resources.nodes")
    ]
    assert findings(stoker, "--set", "resources.nodes=2", env=allocation) == []


def test_the_error_is_shown_with_its_position(stoker, folder):
    edited = Edited(folder / "packed")
    for component in edited.value["schema"]["components"]:
        component["kind"] = "bytes"
    edited.save()
    lines = stoker("check", "job.yaml", code=1).out.splitlines()
    assert lines[0].startswith("job.yaml: not ready, ")
    assert "  mistake   data.train.source: has no images, but train needs them (job.yaml:4:19)" in lines


def test_a_chunk_cache_smaller_than_one_sample_is_reported_with_a_sufficient_size(stoker):
    (stoker.folder / "hub").mkdir()
    with h5py.File(stoker.folder / "hub/train.h5", "w") as file:
        file.create_dataset("x", data=numpy.zeros((64, 12), "f4"), chunks=(8, 12), compression="gzip")
        file["labels"] = (numpy.arange(64) % 4).astype("i4")
    stoker("data", "index", "hub", code=0)
    (stoker.folder / "job.yaml").write_text(
        "name: chunks\ntrain: {model: mlp, epochs: 1, batch: 8, chunk_cache: 300B}\ndata: {train: {source: hub}}\n"
    )
    small = lambda *words: [  # noqa: E731
        finding
        for finding in json.loads(stoker("check", "job.yaml", "--json", *words, code=0).out)["findings"]
        if finding["rule"] == "small-chunk-cache"
    ]
    assert small() == [
        {
            "rule": "small-chunk-cache",
            "level": "time",
            "what": "train.chunk_cache: data.train: the chunks of one sample unpack to 384 B, but the cache holds 300 B: "
            "nearly every sample unpacks its chunks again",
            "where": "job.yaml:2:55",
            "cure": "train: {chunk_cache: 1MiB}",
        }
    ]
    assert small("--lang", "fr")[0]["what"] == (
        "train.chunk_cache: data.train : les morceaux (chunks) d'un échantillon font 384 B une fois décompressés, mais le "
        "cache en contient 300 B\u00a0: presque chaque échantillon décompresse de nouveau ses morceaux"
    )
    assert small("--set", "train.chunk_cache=1MiB") == []


def test_a_copy_on_the_nodes_that_gains_nothing_is_reported(stoker, folder):
    job = (folder / "job.yaml").read_text().replace("split: train}", "split: train, place: local}")
    (folder / "job.yaml").write_text(job)
    # The test's folder is on a disk of this machine.
    text = "a copy does not pay as far as this host can tell: the source is on a disk of this node"
    assert findings(stoker) == [("copy-gains-nothing", "time", f"data.train.place: {text}", "job.yaml:4:48")]
