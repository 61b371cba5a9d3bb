"""hydra/launcher=stoker with jobs of a real Slurm: results, a job that fails and one that is killed, a cap, Ctrl-C."""

import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import MODULE, REPOSITORY
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm", "hydra")

APP = """
import dataclasses, os, signal, sys, time
import hydra
from hydra.core.config_store import ConfigStore


@dataclasses.dataclass
class Config:
    n: int = 0
    lr: float = 0.5
    mode: str = "plain"


ConfigStore.instance().store(name="config", node=Config)


@hydra.main(version_base=None, config_path=None, config_name="config")
def main(config):
    print("job", config.n, os.environ["SLURM_JOB_ID"], flush=True)
    if config.n == 2 and config.mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if config.n == 2 and config.mode == "raise":
        raise ValueError("two is too much")
    if config.mode == "wait":
        time.sleep(300)
    return config.n * config.lr


from hydra._internal.hydra import Hydra
multirun = Hydra.multirun
def shown(self, **arguments):
    batches = multirun(self, **arguments)
    print("results", [(one.status.name, one._return_value) for batch in batches for one in batch], flush=True)
    return batches
Hydra.multirun = shown

if __name__ == "__main__":
    main()
"""


NO_CLOUDPICKLE = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "cloudpickle" else find_spec(name, *more)
"""


@pytest.fixture
def app(runs: Runs):
    (runs.folder / "app.py").write_text(APP)
    (runs.folder / "job.yaml").write_text("resources: {nodes: 1, ranks_per_node: 1, cpus_per_rank: 1, time: 5m}\n")
    (runs.folder / "plugins").mkdir()
    (runs.folder / "plugins/hydra_plugins").symlink_to(REPOSITORY / "python/hydra_plugins")
    runs.lab.env["PYTHONPATH"] = f"{MODULE}:{runs.folder}/plugins"

    def words(*more: str) -> list[str]:
        start = [sys.executable, "app.py", "-m", "hydra/launcher=stoker", "hydra.sweep.dir=out"]
        return [*start, "hydra.launcher.job_file=job.yaml", *more]

    runs.words = words
    runs.app = lambda *more, code=0: runs.lab.run(*words(*more), cwd=runs.folder, code=code)
    return runs


def test_jobs_are_submitted_and_their_results_reach_the_sweeper(app):
    done = app.app("n=1,2,3", "lr=2", "hydra.launcher.at_once=2")
    assert "results [('COMPLETED', 2.0), ('COMPLETED', 4.0), ('COMPLETED', 6.0)]" in done.out
    assert "Submitting 3 jobs, 2 at a time" in done.out
    jobs = re.findall(r"#[0-2] : job (\d+), ", done.out)
    logs = {path.read_text().splitlines()[0] for path in app.folder.glob("out/runs/*/attempts/1/rank-0000.log")}
    assert logs == {f"job {n} {job}" for n, job in zip((1, 2, 3), jobs, strict=True)}
    assert "- n=2" in (app.folder / "out/1/.hydra/overrides.yaml").read_text()


@pytest.mark.soak
@pytest.mark.parametrize(("mode", "error"), [("raise", "ValueError: two is too much"), ("kill", "SIGKILL")])
def test_a_submitted_job_that_fails_does_not_stop_other_jobs(app, mode, error):
    done = app.app("n=1,2,3", f"mode={mode}", "hydra.launcher.at_once=0", code=1)
    logs = {path.read_text().split()[1] for path in app.folder.glob("out/runs/*/attempts/1/rank-0000.log")}
    assert logs == {"1", "2", "3"}
    assert error in done.err


@pytest.mark.soak
def test_ctrl_c_cancels_the_jobs(app):
    process = subprocess.Popen(
        app.words("n=1,2", "mode=wait", "hydra.launcher.at_once=0"),
        cwd=app.folder,
        env=app.lab.env | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: len(list(app.folder.glob("out/runs/*/attempts/1/rank-0000.log"))) == 2, "both jobs run")
    os.killpg(process.pid, signal.SIGINT)
    process.wait(60)
    wait_until(lambda: app.lab.run("squeue", "--noheader").out == "", "the queue is empty")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["hydra.launcher.job_file=missing.yaml"], "hydra.launcher.job_file: "),
        (["hydra.launcher.job={train: {model: resnet20}}"], "train: a job of Hydra calls its function (remove train)"),
        (["hydra.launcher.job={resources: {nodez: 1}}"], "nodez"),
    ],
)
def test_a_wrong_job_is_an_error(app, words, error):
    done = app.app("n=1,2", *words, code=1)
    assert error in done.err


def test_cloudpickle_is_needed_and_named(app):
    (app.folder / "plugins/sitecustomize.py").write_text(NO_CLOUDPICKLE)
    done = app.app("n=1,2", code=1)
    assert "hydra.launcher.submit needs cloudpickle (pip install cloudpickle)" in done.err
