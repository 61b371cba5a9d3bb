"""hydra/launcher=stoker: Hydra's multirun jobs in several processes at a time. docs/hydra.md. Hydra imports this module where it
is installed; Stoker does not."""

import logging
import multiprocessing
import os
import pickle
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

log = logging.getLogger(__name__)


@dataclass
class StokerLauncherConf:
    _target_: str = "hydra_plugins.stoker_launcher.StokerLauncher"
    at_once: int = 1  # jobs that run at a time; 0: one for each core


ConfigStore.instance().store(group="hydra/launcher", name="stoker", node=StokerLauncherConf, provider="stoker")


class StokerLauncher(Launcher):
    """Forks a process for each job. A job that is killed fails alone: the other jobs run on."""

    def __init__(self, at_once: int = 1) -> None:
        if at_once < 0:
            raise ValueError(f"hydra.launcher.at_once: {at_once} is below 0 (0 runs one job for each core)")
        self.at_once = at_once or len(os.sched_getaffinity(0))

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
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

    def _start(self, place: int, number: int, overrides: Sequence[str]) -> tuple[Connection, tuple[int, Any]]:
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = f"{config.hydra.job.name}_{number}"
            config.hydra.job.num = number
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
        try:
            writing.send_bytes(pickle.dumps(result))
        except Exception as error:  # a value or an exception of the job that cannot be pickled
            problem = RuntimeError(f"its result cannot be pickled: {error}")
            if result.status == JobStatus.FAILED:
                problem = RuntimeError(repr(result._return_value))
            result.status, result.return_value = JobStatus.FAILED, problem
            writing.send_bytes(pickle.dumps(result))

    def _result(self, connection: Connection, process: Any, overrides: Sequence[str]) -> JobReturn:
        try:
            result: JobReturn = pickle.loads(connection.recv_bytes())
        except EOFError:
            process.join()
            code = process.exitcode
            cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            result = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
            result.return_value = RuntimeError(f"the job with {' '.join(overrides)} {cause}")
        process.join()
        connection.close()
        return result
