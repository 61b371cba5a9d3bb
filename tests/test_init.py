"""stoker init: a commented job file for a folder, that stoker check takes."""

import json

import pytest
from packing import make_images


def test_a_folder_with_a_script_gets_a_job_that_runs_it(stoker, tmp_path):
    (tmp_path / "train.py").write_text("print('hello')\n")
    done = stoker("init", code=0)
    assert done.out == "wrote job.yaml for this folder (found train.py)\n  next: stoker check job.yaml\n"
    assert "\nrun: python3 train.py\n" in (tmp_path / "job.yaml").read_text()
    assert stoker("check", "job.yaml").out.startswith("job.yaml: ready to run here (1 rank)\n")


def test_a_folder_with_a_dataset_gets_a_training(stoker, tmp_path, example_dataset):
    (tmp_path / "cifar").symlink_to(example_dataset)
    done = stoker("init", "small.yaml", code=0)
    assert done.out == "wrote small.yaml for this folder (found cifar/)\n  next: stoker check small.yaml\n"
    text = (tmp_path / "small.yaml").read_text()
    assert "  model: cifar-resnet20" in text
    assert "  train: {source: cifar, split: train}\n" in text
    assert "  validation: {source: cifar, split: test}\n" in text
    findings = json.loads(stoker("check", "small.yaml", "--json").out)["findings"]
    # stoker-train is missing where the command is built without libtorch.
    assert [f for f in findings if f["rule"] != "no-trainer"] == []


def pack(stoker, name: str, *options: str) -> None:
    make_images(stoker.folder / f".{name}", {"cat": 6, "dog": 6})
    stoker("data", "pack", f".{name}", name, *options, code=0)


def test_a_second_dataset_becomes_the_validation_or_is_named(stoker, tmp_path):
    for name in ("b-train", "a-test", "c-more"):
        pack(stoker, name)
    done = stoker("init", code=0)
    assert done.out == (
        "wrote job.yaml for this folder (found a-test/, b-train/, c-more/)\n"
        "  not used: c-more/ (add what you need to data: in the file)\n"
        "  next: stoker check job.yaml\n"
    )
    text = (tmp_path / "job.yaml").read_text()
    assert "\n  train: {source: b-train}\n  validation: {source: a-test}\n  # c-more: not used\n" in text
    found = json.loads(stoker("init", "more.yaml", "--json", code=0).out)
    assert found["unused"] == ["c-more/"]


def test_a_dataset_with_both_splits_needs_no_second_one(stoker, tmp_path):
    pack(stoker, "all", "--split", "train=50%,val=50%")
    pack(stoker, "val")
    assert "  not used: val/ (" in stoker("init", code=0).out
    text = (tmp_path / "job.yaml").read_text()
    assert "  train: {source: all, split: train}\n  validation: {source: all, split: val}\n  # val: not used\n" in text


@pytest.mark.parametrize("splits", [[], ["test", "train"]])
def test_a_folder_of_images_is_packed_first(stoker, tmp_path, splits):
    for split in splits or ["."]:
        make_images(tmp_path / "my photos" / split, {"cat": 60, "dog": 60})
    done = stoker("init", code=0)
    assert done.out == (
        "wrote job.yaml for this folder (found my photos/ with images)\n"
        "  next: stoker data pack 'my photos' 'my photos-packed'\n"
        "  then: stoker check job.yaml\n"
    )
    text = (tmp_path / "job.yaml").read_text()
    assert "\nrun:" not in text and "  model: resnet50" in text
    if splits:
        assert "  validation: {source: my photos-packed, split: test}\n" in text
    stoker("data", "pack", "my photos", "my photos-packed", code=0)
    findings = json.loads(stoker("check", "--json").out)["findings"]
    assert [f for f in findings if f["rule"] != "no-trainer"] == []


def test_images_in_class_folders_of_the_folder_itself(stoker, tmp_path):
    make_images(tmp_path / "photos", {"cat": 60, "dog": 60})
    done = stoker("init", code=0, cwd=tmp_path / "photos")
    assert "(found images in class folders)\n  next: stoker data pack . ../photos-packed\n" in done.out
    stoker("data", "pack", ".", "../photos-packed", code=0, cwd=tmp_path / "photos")
    assert "source: ../photos-packed}" in (tmp_path / "photos/job.yaml").read_text()


def test_images_without_labels_need_a_command(stoker, tmp_path):
    make_images(tmp_path, {"photos": 5})
    done = stoker("init", code=0)
    assert done.out == (
        "wrote job.yaml for this folder (found photos/ with images)\n"
        "  next: stoker data pack photos photos-packed\n"
        "  the built-in trainer needs labels (class folders or a list): fill in the command in job.yaml\n"
        "  then: stoker check job.yaml\n"
    )
    assert "\nrun: python3 train.py\n" in (tmp_path / "job.yaml").read_text()


def test_a_script_or_a_single_picture_is_no_folder_of_images(stoker, tmp_path):
    make_images(tmp_path / "docs", {"img": 1})
    assert "found no script and no dataset" in stoker("init", code=0).out
    make_images(tmp_path / "photos", {"cat": 3, "dog": 3})
    (tmp_path / "train.py").write_text("")
    assert "(found train.py)\n" in stoker("init", "run.yaml", code=0).out


def test_standard_output_is_no_job_file(stoker, tmp_path):
    done = stoker("init", "-", code=2)
    assert done.err == "-: a job file is a file, not standard output (FILE)\n  try: ./- for that name\n"
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_gets_a_job_template(stoker):
    done = stoker("init", code=0)
    assert done.out == (
        "wrote job.yaml for this folder (found no script and no dataset: fill in the command)\n"
        "  next: stoker check job.yaml\n"
    )
    assert "run: train.py: no such file in " in stoker("check", code=1).out


def test_a_virtual_environment_is_used(stoker, tmp_path):
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to("/bin/true")
    (tmp_path / "main.py").write_text("")
    found = json.loads(stoker("init", "--json", code=0).out)
    assert found == {"job": "job.yaml", "found": ["main.py", ".venv/"], "unused": []}
    assert json.loads(stoker("check", "--json", code=0).out)["facts"][1] == {
        "name": "program",
        "text": f"{tmp_path}/.venv/bin/python",
    }


def test_an_existing_file_is_kept(stoker, tmp_path):
    (tmp_path / "job.yaml").write_text("mine\n")
    done = stoker("init", code=1)
    assert done.err == "job.yaml: already exists\n  try: stoker init another.yaml\n"
    assert (tmp_path / "job.yaml").read_text() == "mine\n"


@pytest.mark.needs("root")
def test_a_read_only_folder_is_reported(stoker, open_folder):
    open_folder.chmod(0o755)
    done = stoker("init", code=2, cwd=open_folder, user=65534)
    assert done.err == f"{open_folder}/job.yaml: permission denied\n"
    assert list(open_folder.iterdir()) == []


def test_a_missing_folder_is_reported(stoker, tmp_path):
    done = stoker("init", "none/job.yaml", code=1)
    assert done.err == f"{tmp_path}/none/job.yaml: no such file or directory\n"
