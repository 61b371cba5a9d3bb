"""`code: {snapshot: true}`: a run uses a copy of the code from the time of its creation."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import Stoker
from submitted import Runs


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


def make_repository(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "train.py").write_text("print('committed')\n")
    (folder / "sub/run.sh").write_text("#!/bin/sh\ncat ../train.py data.txt new.txt; ls large.bin ignored.o\n")
    (folder / "sub/run.sh").chmod(0o755)
    (folder / "sub/data.txt").write_text("committed data\n")
    (folder / ".gitignore").write_text("*.o\n")
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    (folder / "sub/data.txt").write_text("changed data\n")
    (folder / "sub/new.txt").write_text("new\n")
    (folder / "sub/large.bin").write_bytes(bytes(3000))
    (folder / "sub/ignored.o").write_text("")
    return folder


def job(folder: Path, run: str, more: str = "") -> None:
    (folder / "job.yaml").write_text(
        f"name: test\nrun: {run}\ncode: {{snapshot: true, untracked_limit: 2KB}}\nworking_directory: sub\n{more}"
    )


def test_committed_changed_and_new_files_are_copied_and_used(stoker: Stoker, repository: Path):
    job(repository, "./run.sh")
    done = stoker("run", "job.yaml", cwd=repository)
    assert done.out == "print('committed')\nchanged data\nnew\n"
    assert "large.bin" in done.err
    assert "ignored.o" in done.err
    (run,) = (repository / "runs").iterdir()
    assert (run / "code/sub/new.txt").stat().st_mode & 0o777 == 0o444
    assert (run / "code/sub/run.sh").stat().st_mode & 0o777 == 0o555
    assert json.loads((run / "code/.stoker-snapshot.json").read_text())["left_out"] == ["sub/large.bin"]
    again = stoker("run", "job.yaml", cwd=repository)  # the first run's folder is not part of the second run's code
    assert again.out == done.out
    assert not list((repository / "runs").glob("*/code/runs"))


def test_untracked_files_with_secrets_are_left_out_and_named(stoker: Stoker, repository: Path):
    job(repository, "{shell: 'cat data.txt; ls -a'}")
    (repository / "sub/.env").write_text("HF_TOKEN=x\n")
    (repository / "sub/.env.example").write_text("HF_TOKEN=\n")
    (repository / "deploy.pem").write_text("key\n")
    done = stoker("run", "job.yaml", cwd=repository, code=0)
    assert ".env.example" in done.out.split() and ".env" not in done.out.split()
    note = "code.snapshot: left out deploy.pem, sub/.env: may hold secrets and not in git"
    assert any(line.startswith(note) for line in done.err.splitlines())
    (run,) = (repository / "runs").iterdir()
    assert json.loads((run / "code/.stoker-snapshot.json").read_text())["secret"] == ["deploy.pem", "sub/.env"]
    assert not (run / "code/sub/.env").exists()


def test_outside_of_a_repository_nothing_is_created(stoker: Stoker, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    job(tmp_path, "true")
    refused = stoker("run", "job.yaml", env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert refused.code == 1
    assert refused.err == (
        f"code.snapshot: {tmp_path}/sub: fatal: not a git repository (or any of the parent directories): .git\n"
    )
    assert not (tmp_path / "runs").exists()


@pytest.mark.needs("slurm")
def test_edits_while_a_job_is_queued_do_not_affect_it(runs: Runs):
    repository = make_repository(runs.folder / "repository")
    job(repository, "cat data.txt", "slurm: {extra: [--hold]}\n")
    submitted = json.loads(runs.stoker("submit", "job.yaml", "--json", cwd=repository).out)
    (repository / "sub/data.txt").write_text("edited later\n")
    runs.lab.run("scontrol", "release", submitted["job"])
    runs.stoker("wait", "last", cwd=repository)
    (run,) = (repository / "runs").iterdir()
    assert (run / "attempts/1/rank-0000.log").read_text() == "changed data\n"
