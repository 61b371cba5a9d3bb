"""hydra/launcher=stoker: Hydra's multirun jobs in several processes at a time, here or as jobs of Slurm. docs/hydra.md. Hydra
imports this module where it is installed; Stoker does not."""

import importlib.util
import logging
import multiprocessing
import os
import pickle
import re
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

log = logging.getLogger(__name__)

POLL_S = 0.2


@dataclass
class StokerLauncherConf:
    _target_: str = "hydra_plugins.stoker_launcher.StokerLauncher"
    at_once: int = 1  # jobs that run at a time; 0: one for each core, with submit all of them
    submit: bool = False  # as jobs of Slurm
    job_file: str | None = None  # resources of a job; implies submit
    job: Any = None  # keys of a job file, which override job_file


ConfigStore.instance().store(group="hydra/launcher", name="stoker", node=StokerLauncherConf, provider="stoker")


class StokerLauncher(Launcher):
    """Forks a process for each job, or submits it. A job that is killed fails alone: the other jobs run on."""

    def __init__(
        self, at_once: int = 1, submit: bool = False, job_file: str | None = None, job: DictConfig | None = None
    ) -> None:
        if at_once < 0:
            raise ValueError(f"hydra.launcher.at_once: {at_once} is below 0 (0 runs one job for each core)")
        self.is_submitting = submit or job_file is not None or bool(job)
        self.at_once = at_once or (sys.maxsize if self.is_submitting else len(os.sched_getaffinity(0)))
        self.job = self._read_job(job_file, job) if self.is_submitting else {}

    @staticmethod
    def _read_job(job_file: str | None, job: DictConfig | None) -> dict[str, Any]:
        if importlib.util.find_spec("cloudpickle") is None:
            raise ModuleNotFoundError("hydra.launcher.submit needs cloudpickle (pip install cloudpickle)")
        try:
            described = OmegaConf.load(job_file) if job_file is not None else OmegaConf.create({})
        except Exception as error:
            raise ValueError(f"hydra.launcher.job_file: {error}") from error
        if not isinstance(described, DictConfig):
            raise ValueError(f"hydra.launcher.job_file: {job_file} is not a map of keys (resources: {{time: 1h}})")
        merged: Any = OmegaConf.to_container(OmegaConf.merge(described, job or {}), resolve=False)
        if "train" in merged:
            raise ValueError("hydra.launcher.job_file: train: a job of Hydra calls its function (remove train)")
        merged.pop("run", None)  # in its place the job calls Hydra's function
        return dict(merged)

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        if self.is_submitting:
            return self._submit_all(job_overrides, initial_job_idx)
        log.info(f"Launching {len(job_overrides)} jobs, {self.at_once} at a time")
        waiting = list(enumerate(job_overrides))
        running: dict[Connection, tuple[int, Any]] = {}
        results: dict[int, JobReturn] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.at_once:
                    place, overrides = waiting.pop(0)
                    log.info(f"\t#{initial_job_idx + place} : {' '.join(filter_overrides(overrides))}")
                    running |= dict([self._start(place, initial_job_idx + place, overrides)])
                for connection in wait(list(running)):
                    place, process = running.pop(connection)
                    results[place] = self._result(connection, process, job_overrides[place])
        finally:
            for _, process in running.values():
                process.terminate()
                process.join()
        return [results[place] for place in range(len(job_overrides))]

    def _submit_all(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        most = f"{self.at_once} at a time" if self.at_once < len(job_overrides) else "all at a time"
        log.info(f"Submitting {len(job_overrides)} jobs, {most}")
        waiting = list(enumerate(job_overrides))
        running: dict[int, Any] = {}
        results: dict[int, JobReturn] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.at_once:
                    place, overrides = waiting.pop(0)
                    log.info(f"\t#{initial_job_idx + place} : {' '.join(filter_overrides(overrides))}")
                    try:
                        running[place] = self._submit(initial_job_idx + place, overrides)
                        log.info(f"\t#{initial_job_idx + place} : job {running[place].job}, {running[place].folder}")
                    except Exception as error:
                        results[place] = failed(overrides, error)
                for place in [place for place, future in running.items() if future.done()]:
                    results[place] = self._submitted_result(running.pop(place), job_overrides[place])
                if running:
                    time.sleep(POLL_S)
        finally:
            for future in running.values():
                future.cancel()
        return [results[place] for place in range(len(job_overrides))]

    def _submit(self, number: int, overrides: Sequence[str]) -> Any:
        import stoker

        config = self._config(number, overrides)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{config.hydra.job.name}-{number}")[:64]
        runs = Path(str(self.config.hydra.sweep.dir)) / "runs"
        job = {"name": name, "record": {"directory": str(runs)}} | self.job
        state = Singleton.get_state()
        return stoker.submit(run_submitted, self.hydra_context, self.task_function, config, state, job=job)

    @staticmethod
    def _submitted_result(future: Any, overrides: Sequence[str]) -> JobReturn:
        try:
            result: JobReturn = pickle.loads(future.result())
            return result
        except Exception as error:
            return failed(overrides, error)

    def _config(self, number: int, overrides: Sequence[str]) -> DictConfig:
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = f"{config.hydra.job.name}_{number}"
            config.hydra.job.num = number
        return config

    def _start(self, place: int, number: int, overrides: Sequence[str]) -> tuple[Connection, tuple[int, Any]]:
        config = self._config(number, overrides)
        # The task function and Hydra's state exist in a fork.
        context = multiprocessing.get_context("fork")
        reading, writing = context.Pipe(duplex=False)
        process = context.Process(target=self._run, args=(config, writing))
        process.start()
        writing.close()
        return reading, (place, process)

    def _run(self, config: DictConfig, writing: Connection) -> None:
        result = run_job(
            hydra_context=self.hydra_context,
            task_function=self.task_function,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )
        writing.send_bytes(pickled(result))

    def _result(self, connection: Connection, process: Any, overrides: Sequence[str]) -> JobReturn:
        try:
            result: JobReturn = pickle.loads(connection.recv_bytes())
        except EOFError:
            process.join()
            code = process.exitcode
            cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            result = failed(overrides, RuntimeError(f"the job with {' '.join(overrides)} {cause}"))
        process.join()
        connection.close()
        return result


def failed(overrides: Sequence[str], error: Exception) -> JobReturn:
    result = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
    result.return_value = error
    return result


def pickled(result: JobReturn) -> bytes:
    """The result, or the error of a value or an exception that cannot be pickled."""
    try:
        return pickle.dumps(result)
    except Exception as error:
        problem = RuntimeError(f"its result cannot be pickled: {error}")
        if result.status == JobStatus.FAILED:
            problem = RuntimeError(repr(result._return_value))
        result.status, result.return_value = JobStatus.FAILED, problem
        return pickle.dumps(result)


def run_submitted(hydra_context: HydraContext, task: TaskFunction, config: DictConfig, state: Any) -> bytes:
    """A job of Slurm: calls the function as Hydra does in the program that submitted it."""
    setup_globals()
    Singleton.set_state(state)
    result = run_job(
        hydra_context=hydra_context,
        task_function=task,
        config=config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )
    # Without the classes of the program, which has a different name here.
    result.cfg = OmegaConf.create(OmegaConf.to_container(config, enum_to_str=True))
    result.hydra_cfg = OmegaConf.create(OmegaConf.to_container(result.hydra_cfg, enum_to_str=True))
    return pickled(result)
