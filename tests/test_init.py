"""stoker init: a commented job file for a folder, that stoker check takes."""

import json

import pytest


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
    assert found == {"job": "job.yaml", "found": ["main.py", ".venv/"]}
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
