"""Where the logs of a job or run are, and their lines. Logs have the names that gpu_jobs_submitter gives them
(slurm/log/NAME@JZ_JOB_...), or they belong to a run of Stoker."""

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from operator import index
from pathlib import Path
from typing import Any

from stoker import command
from stoker.errors import InvalidError, NotFoundError, UnavailableError

FOLDER = Path("slurm/log")
# The JSON line of the chronometer is long, but a file without line breaks must not fill the memory.
_MAX_LINE = 64 << 20


def package(name: str, function: str) -> Any:
    """The imported package, which only some functions need."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = name.partition(".")[0]
        text = f"{function}: needs {missing}, which {sys.executable} cannot import ({error})"
        raise UnavailableError(f"{text}\n  try: {sys.executable} -m pip install {missing}") from error


def displays() -> Any:
    """IPython.display in a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return importlib.import_module("IPython.display") if shell is not None and hasattr(shell, "kernel") else None


def search_log(name: str = "*", contains: Any = "", with_err: bool = False) -> Any:
    """The logs in slurm/log: a sorted list of the .out files, or with `with_err` {"stdout": [...], "stderr": [...]}.

    `name` is the name of the jobs. `contains` is a part of the rest of the file name, with `*` for any characters: a date, a
    number of nodes or tasks. The id of a job selects only the logs of this job. A run of Stoker, or the id of its job, selects
    the logs of its ranks; these contain both streams. Nothing found: empty lists."""
    text = str(contains)
    found = {stream: _named(name, text, end) for stream, end in (("stdout", "out"), ("stderr", "err"))}
    if not any(found.values()) and name == "*" and text and "*" not in text:
        logs = Job(text).rank_logs
        found = {"stdout": logs, "stderr": logs}
    paths = {stream: [str(path) for path in logs] for stream, logs in found.items()}
    return paths if with_err else paths["stdout"]


def _named(name: str, contains: str, end: str) -> list[Path]:
    paths = [Path(path) for path in glob(f"./{FOLDER}/{name}@*{contains}*.{end}")]
    if contains.isdecimal():
        # Job 123 is not job 1234, and not a part of a date. The year of a date is.
        of_job = [path for path in paths if _is_of_job(path, contains)]
        paths = of_job or [path for path in paths if f"_{contains}-" in path.name.rpartition("@")[2]]
    return sorted(paths, key=_by_numbers)


def _is_of_job(path: Path, job: str) -> bool:
    return re.match(rf"[^_]*_{re.escape(job)}_", path.name.rpartition("@")[2]) is not None


def _by_numbers(path: Path) -> list[Any]:
    """Sorts job 9 before job 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]


@dataclass(frozen=True)
class Job:
    """A job or run, by its id, by the path of a log, or by the folder of a run."""

    name: str

    @cached_property
    def out(self) -> list[Path]:
        """Logs with the standard output; logs of a run are ordered by rank. Raises NotFoundError without any."""
        if Path(self.name).is_file():
            return [Path(self.name)]
        logs = self._newest("out") or self.rank_logs
        if logs:
            return logs
        where = "its ranks have no log" if self.run else f"no log in {FOLDER} and no run in runs"
        raise NotFoundError(f"job {self.name}: {where}\n  try: display_slurm_queue()      (a pending job has no log)")

    @cached_property
    def err(self) -> list[Path]:
        """Logs with the standard error; empty if it has no separate log."""
        if Path(self.name).is_file():
            beside = Path(self.name).with_suffix(".err")
            return [beside] if beside.is_file() and beside != Path(self.name) else []
        return self._newest("err")

    @cached_property
    def rank_logs(self) -> list[Path]:
        """Logs of the ranks in the last attempt of the run."""
        attempts = [path for path in (self.folder or Path()).glob("attempts/*") if path.name.isdecimal()]
        if self.folder is None or not attempts:
            return []
        return sorted(max(attempts, key=lambda path: int(path.name)).glob("rank-*.log"), key=_by_numbers)

    @property
    def folder(self) -> Path | None:
        return Path(self.run["folder"]) if self.run else None

    @cached_property
    def run(self) -> dict[str, Any] | None:
        """The report of the run, or None if Stoker does not know one of this name."""
        if Path(self.name).is_file():
            return None
        try:
            (run,) = command.run_json("report", "--format", "json", "--out", "-", self.name)["runs"]
        except NotFoundError:
            return None
        except InvalidError:
            if Path(self.name).is_dir():
                raise
            return None
        return dict(run)

    def lines(self) -> Iterator[tuple[int | None, str]]:
        """Rank and line: the rank if the log is that of a single rank."""
        for log in self.out:
            rank = re.fullmatch(r"rank-(\d+)\.log", log.name)
            is_single = rank is not None and len(self.out) > 1
            for line in read_lines(log):
                yield (int(rank[1]) if is_single and rank else None), line

    def _newest(self, end: str) -> list[Path]:
        named = [path for path in _named("*", "", end) if _is_of_job(path, self.name)]
        return [max(named, key=lambda path: path.stat().st_mtime)] if named else []


def read_lines(log: Path) -> Iterator[str]:
    """Lines of a text file; carriage returns of progress bars end lines, too."""
    try:
        with log.open(errors="replace") as file:
            for line in iter(lambda: file.readline(_MAX_LINE), ""):
                yield line.rstrip("\n")
    except FileNotFoundError:
        raise NotFoundError(f"{log}: no such file") from None
    except OSError as error:
        raise UnavailableError(f"{log}: {(error.strerror or str(error)).lower()}") from error


def jobs(jobid: Any, function: str) -> list[Job]:
    """The jobs of an argument `jobid`: an id as a number or text, a path, or a list of them as of gpu_jobs_submitter."""
    given = list(jobid) if isinstance(jobid, list | tuple) else [jobid]
    if not given:
        raise InvalidError(f"{function}: the list of jobs is empty")
    return [Job(_text(each, function)) for each in given]


def first(jobid: Any, function: str) -> Job:
    """The first job of an argument `jobid`. Prints a note if there are several."""
    given = jobs(jobid, function)
    if len(given) > 1:
        print(f"{function}: job {given[0].name}, the first of {len(given)} jobs")
    return given[0]


def _text(value: Any, function: str) -> str:
    text = str(value).strip()
    if isinstance(value, str | Path) and text and not text.startswith("-"):
        return text
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return str(index(value))
    raise InvalidError(f"{function}: {value!r} is not the id of a job")


_METRIC = re.compile(
    r"Step (\d{1,15}) - (Before|After) metric compute GPU(\d{1,9}): loss: \S+?, accuracy: [-+.\w]+?(?=Step \d|\s|$)"
)


def metric_compute_log(jobid: Any) -> None:
    """Prints the metrics of each GPU before and after their synchronization, sorted by step, moment and GPU."""
    job = first(jobid, "metric_compute_log")
    found = []
    for _, line in job.lines():
        # Ranks share the log: two of their lines may be one.
        for metric in _METRIC.finditer(line) if "metric compute GPU" in line else ():
            found.append((int(metric[1]), metric[2] == "After", int(metric[3]), metric[0]))
    for *_, text in sorted(found):
        print(text)
    if not found:
        print(
            f"{job.out[0]}: no line 'Step N - Before metric compute GPUn: ...' (dlojz2_2.py prints them at --metric-step)"
        )
