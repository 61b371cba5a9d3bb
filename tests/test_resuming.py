"""What `stoker resume` refuses: changes that would make another run of it."""

import json
import shlex
from pathlib import Path

import pytest
import run_folders

JOB = """\
name: resnet20
train: {model: cifar-resnet20, epochs: 3, seed: 1}
data:
  train: {source: DATASET, split: train}
  validation: {source: DATASET, split: test}
checkpoint: {directory: /scratch/saved}
"""


@pytest.fixture
def run(stoker, example_dataset) -> run_folders.RunFolder:
    """A training that failed in its first attempt."""
    folder = run_folders.RunFolder.create(stoker.folder / "runs")
    folder.started(1, run_folders.BEGIN)
    folder.ended(1, run_folders.BEGIN + 9, "failed", 137)
    (folder.attempt(1) / "job.yaml").write_text(JOB.replace("DATASET", str(example_dataset)))
    manifest = json.loads((example_dataset / "manifest.json").read_text())
    facts = {"name": "train", "source": str(example_dataset), "split": "train", "version": manifest["version"]}
    folder.capsule(data={"datasets": [facts]})
    return folder


@pytest.mark.parametrize(
    ("setting", "change", "why"),
    [
        ("train.model=resnet18", "cifar-resnet20 to resnet18", "its checkpoints hold the other model"),
        ("train.classes=7", "its default to 7", "its checkpoints hold the other model"),
        ("train.seed=2", "1 to 2", "the order of its samples follows from it"),
        ("train.training_data=validation", "train to validation", "its epochs are made of the other samples"),
        ("data.train.split=test", "train to test", "its epochs are made of the other samples"),
        ("checkpoint.directory=/other", "/scratch/saved to /other", "its checkpoints are there"),
        ("name=other", "resnet20 to other", "its folder is named for it"),
    ],
)
def test_what_makes_another_run_is_refused(stoker, run, setting, change, why):
    key = setting.partition("=")[0]
    refused = stoker("resume", "last", "--set", setting, code=2)
    assert refused.err == (
        f"run {run.path.name}: {key}: cannot change from {change}: {why} (--set {key})\n"
        f"  try: stoker run job.yaml --set {setting}, which begins another run\n"
    )
    assert [path.name for path in (run.path / "attempts").iterdir()] == ["1"]


def test_a_folder_of_runs_elsewhere_is_refused(stoker, run):
    refused = stoker("resume", "last", "--set", "record.directory=/elsewhere", code=2)
    assert (
        f"record.directory: cannot change from {stoker.folder}/runs to /elsewhere: its folder is there" in refused.err
    )


def test_another_kind_of_job_is_refused(stoker, run):
    refused = stoker("resume", "last", "--set", "train=null", "--set", "run=echo", code=2)
    assert refused.err == (f"run {run.path.name}: cannot change from train to run: its checkpoints are the other's\n")


def test_another_version_of_the_dataset_is_refused(stoker, run, photos, example_dataset):
    stoker("data", "pack", "photos", "other", code=0)
    version = json.loads(Path(stoker.folder / "other/manifest.json").read_text())["version"][:8]
    began = json.loads((example_dataset / "manifest.json").read_text())["version"][:8]
    refused = stoker("resume", "last", "--set", "data.train.source=other", code=2)
    assert refused.err == (
        f"run {run.path.name}: data.train.source: {stoker.folder}/other is version {version}, the run began with {began} "
        "(--set data.train.source)\n"
        "  try: stoker run job.yaml, which begins another run\n"
    )


def test_what_may_change_is_taken(stoker, run, example_dataset):
    (stoker.folder / "moved").symlink_to(example_dataset)  # the same version in another place
    settings = ["train.epochs=5", "train.optimizer.lr=0.01", "resources.ranks_per_node=4", "data.train.source=moved"]
    shown = stoker("resume", "last", "--dry-run", *(word for text in settings for word in ("--set", text)))
    assert "cannot change" not in shown.err
    told = [line for line in shown.err.splitlines() if line.startswith("changed: ")]
    assert told == [
        "changed: train.epochs: 3 → 5 (--set train.epochs)",
        "changed: train.optimizer.lr: 0.1 → 0.01 (--set train.optimizer.lr)",
        f"changed: data.train.source: {example_dataset} → {stoker.folder}/moved (--set data.train.source)",
        "changed: resources.ranks_per_node: 1 → 4 (--set resources.ranks_per_node)",
        "changed: ranks: 1 → 4",
    ]
    assert shown.code in (0, 1)  # 1: this build has no stoker-train
    assert shown.code == 0 or "stoker-train" in shown.err


@pytest.mark.parametrize(
    ("run", "key", "now"),
    [
        ("\"sh -c 'echo lr ${params.lr}; exit 1'\"", "run", "sh -c 'echo lr 0.1; exit 1'"),
        ("{shell: 'echo lr ${params.lr}; exit 1'}", "run.shell", "echo lr 0.1; exit 1"),
    ],
)
def test_params_that_would_change_nothing_are_refused_with_what_would(stoker, run: str, key: str, now: str):
    (stoker.folder / "job.yaml").write_text(f"name: again\nrun: {run}\nparams: {{lr: 0.1}}\n")
    stoker("run", "job.yaml", code=1)
    refused = stoker("resume", "last", "--set", "params.lr=0.2", code=2).err.splitlines()
    (folder,) = (stoker.folder / "runs").iterdir()
    assert refused[0] == f"run {folder.name}: --set params.lr=0.2: its command was made with the values it had"
    cure, _, rest = refused[1].rpartition(", ")
    assert rest == "with the new value in it"
    words = shlex.split(cure)
    assert words == ["try:", "stoker", "resume", folder.name, "--set", f"{key}={now}"]
    assert stoker("resume", "last", "--set", words[-1].replace("0.1", "0.2"), code=1).out == "lr 0.2\n"
