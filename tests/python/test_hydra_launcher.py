"""hydra/launcher=stoker with the real Hydra: jobs side by side, their folders and results, and jobs that fail or are killed."""

import os
import subprocess
import sys

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.needs("hydra")

APP = """
import os, signal, sys, time
import hydra
from omegaconf import OmegaConf


@hydra.main(version_base=None, config_path=None, config_name="config")
def main(config):
    print("job", config.n, os.getcwd(), flush=True)
    if config.n == 3 and config.mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if config.n == 3 and config.mode == "raise":
        raise ValueError("three is too much")
    if config.n == 3 and config.mode == "exit":
        os._exit(7)
    if config.mode == "gather":  # each waits for all
        open(f"{config.box}/{config.n}", "w").close()
        deadline = time.monotonic() + 60
        while len(os.listdir(config.box)) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(os.listdir(config.box)) == 4
    return config.n * config.lr


from hydra.core.config_store import ConfigStore
ConfigStore.instance().store(name="config", node={"n": 0, "lr": 0.5, "mode": "plain", "box": ""})
main()
"""


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)

    def run(*words):
        command = [sys.executable, "app.py", "-m", "hydra/launcher=stoker", "hydra.sweep.dir=out", *words]
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "plugins")}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/hydra_plugins").symlink_to(REPOSITORY / "python/hydra_plugins")
    run.folder = tmp_path
    return run


def test_jobs_run_side_by_side_in_their_folders(app):
    (app.folder / "box").mkdir()
    done = app("n=1,2,3,4", "mode=gather", f"box={app.folder}/box", "hydra.launcher.at_once=4", "hydra.job.chdir=true")
    assert done.returncode == 0, done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("job "))
    assert lines == [f"job {n} {app.folder}/out/{n - 1}" for n in range(1, 5)]
    assert "Launching 4 jobs, 4 at a time" in done.stdout
    for place in range(4):
        overrides = (app.folder / f"out/{place}/.hydra/overrides.yaml").read_text()
        assert f"- n={place + 1}" in overrides
        assert f"num: {place}" in (app.folder / f"out/{place}/.hydra/hydra.yaml").read_text()


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("raise", "ValueError: three is too much"),
        ("kill", "RuntimeError: the job with n=3 lr=0.5 mode=kill was killed by SIGKILL"),
        ("exit", "RuntimeError: the job with n=3 lr=0.5 mode=exit ended with exit code 7"),
    ],
)
def test_a_job_that_fails_does_not_stop_other_jobs(app, mode, error):
    done = app("n=1,2,3,4", "lr=0.5", f"mode={mode}", "hydra.launcher.at_once=2")
    assert done.returncode == 1
    assert error in done.stderr
    assert sum(line.startswith("job ") for line in done.stdout.splitlines()) == 4


def test_results_reach_a_sweeper(app):
    program = (
        APP.replace("\nmain()\n", "\n")
        + """
from hydra._internal.hydra import Hydra
multirun = Hydra.multirun
def shown(self, **arguments):
    batches = multirun(self, **arguments)
    print("results", [(result.return_value, result.status.name) for batch in batches for result in batch])
    return batches
Hydra.multirun = shown
main()
"""
    )
    (app.folder / "app.py").write_text(program)
    done = app("n=1,2,3", "lr=2", "hydra.launcher.at_once=0")
    assert done.returncode == 0, done.stderr
    assert "results [(2, 'COMPLETED'), (4, 'COMPLETED'), (6, 'COMPLETED')]" in done.stdout


def test_a_wrong_number_of_jobs_is_an_error(app):
    done = app("n=1,2", "hydra.launcher.at_once=-1")
    assert done.returncode == 1
    assert "hydra.launcher.at_once: -1 is below 0 (0 runs one job for each core)" in done.stderr


def test_stoker_does_not_import_hydra(python):
    assert python("import sys, stoker; print([name for name in sys.modules if name.startswith('hydra')])") == "[]\n"
