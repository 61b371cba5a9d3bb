"""A model written in Python and saved with torch.jit, trained by stoker-train."""

import subprocess
import sys
from pathlib import Path

import pytest
import trained

# Input of the built-in models for CIFAR; it must be set for a custom model.
AS_CIFAR = [
    "train.image.size=32",
    "train.image.validation_resize=32",
    "train.image.crop=pad",
    "train.image.mean=[0.4914, 0.4822, 0.4465]",
    "train.image.standard_deviation=[0.2470, 0.2435, 0.2616]",
]


def settings(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


@pytest.fixture
def dataset(stoker, example_images):
    return trained.small_dataset(stoker, example_images)


@pytest.fixture
def net(stoker) -> Path:
    file = stoker.folder / "net.pt"
    subprocess.run([sys.executable, Path(__file__).with_name("script_net.py"), "3", file], check=True, timeout=120)
    return file


def merged(tensors: dict) -> dict:
    """Tensors by part and name. The distribution of rows over ranks depends on the order of a model's tensors."""
    whole: dict[tuple[str, str], bytes] = {}
    for path, data in sorted(tensors.items()):
        part, _, name = path.split("/")
        whole[part, name] = whole.get((part, name), b"") + data
    return whole


def test_trains_exactly_like_the_built_in_model_and_resumes(stoker, dataset, net):
    job = trained.write_job(stoker.folder, dataset, 2, "1 epochs")
    stoker("run", job, code=0)
    built_in = trained.the_run(stoker.folder).rename(stoker.folder / "built-in")
    own = settings("train.model=torchscript", f"train.file={net}", *AS_CIFAR)
    run = trained.stop_after(stoker, job, 2, *own)
    stoker("resume", "last", code=0)
    for step in (10, 20):
        assert merged(trained.tensors(run, step)) == merged(trained.tensors(built_in, step))


def test_an_invalid_model_file_is_rejected_before_the_start(stoker, dataset):
    job = trained.write_job(stoker.folder, dataset, 1)
    refused = stoker("run", job, "--set", "train.model=torchscript", code=2)
    assert "train.file: required (train.model: torchscript)" in refused.err
    refused = stoker("run", job, "--set", "train.file=net.pt", code=2)
    assert "train.file: applies only to the model torchscript (train.model: cifar-resnet20)" in refused.err
    failed = stoker("run", job, *settings("train.model=torchscript", "train.file=none.pt"), code=1)
    assert f"train.file: {stoker.folder}/none.pt: no such file" in failed.err
