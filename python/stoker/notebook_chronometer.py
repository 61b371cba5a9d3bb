"""What a training measured: from the lines that the course's chronometer and scripts print, else from the records of a run
of Stoker. Lines are found by their words, so a prefix, as of `srun --label`, does not matter."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

from stoker.notebook_logs import Job

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf))"
_DURATION = re.compile(r"(?:(\d{1,9}) days?, *)?(\d{1,9}):(\d\d):(\d\d(?:\.\d+)?)")
STEP_KEY, LOAD_KEY = "GPU process - Forward/Backward", "CPU process - Dataloader"
# The optimizer's text has a line for each value of each parameter group.
_MAX_OPTIMIZER_LINES = 200


@dataclass(frozen=True)
class Part:
    """The time of a part of a step, over all steps but the first."""

    seconds: float
    kind: str  # "median" or "mean"
    deviation: float | None = None


@dataclass
class Training:
    """None and empty: unknown."""

    unit: str = "images"
    complete_s: float | None = None
    step: Part | None = None
    load: Part | None = None
    forward: Part | None = None
    backward: Part | None = None
    steps_s: list[float] = field(default_factory=list)
    loads_s: list[float] = field(default_factory=list)
    first_load_s: float | None = None
    validation_s: float | None = None
    peak_power_w: float | None = None
    has_gpu: bool | None = None
    processes: int | None = None
    nodes: int | None = None
    global_batch: int | None = None
    mini_batch: int | None = None
    batches_per_epoch: int | None = None
    optimizer: list[str] = field(default_factory=list)
    loader: dict[str, str] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    is_recorded: bool = False  # by Stoker; else printed by the chronometer
    notes: list[str] = field(default_factory=list)

    @property
    def mean_step_s(self) -> float | None:
        """Mean of all steps but the first, of the single times if they are known."""
        return _mean(self.steps_s[1:]) or (self.step.seconds if self.step else None)

    @property
    def mean_load_s(self) -> float | None:
        return _mean(self.loads_s[1:]) or (self.load.seconds if self.load else None)


def read(job: Job) -> Training:
    """Reads the logs, and the records of the run where the logs have no time of a step."""
    training = _Reader().read(job)
    if training.step is None and job.run is not None:
        _add_records(training, job, job.run)
    return training


class _Reader:
    def __init__(self) -> None:
        self._training = Training()
        self._open_brackets = 0  # of the optimizer's text

    def read(self, job: Job) -> Training:
        for _, line in job.lines():
            if self._open_brackets:
                self._continue_optimizer(line)
            else:
                self._line(line)
        return self._training

    def _line(self, line: str) -> None:
        for words, handle in _LINES:
            if words in line:
                handle(self, line)

    def _complete(self, line: str) -> None:
        self._training.complete_s = duration(line) or self._training.complete_s

    def _part(self, line: str) -> None:
        name = re.search(r"(Training|Loading|Forward|Backward) performance time:(.*)", line)
        if not name:
            return
        # Of training, `avg` is a median; the form without `min` has only means.
        is_median = name[1] == "Training" and "avg" in name[2]
        value = re.search(rf"(?:avg|^) *{_NUMBER} seconds", name[2].strip())
        deviation = re.search(rf"\+/- *{_NUMBER}", name[2])
        seconds = _finite(value)
        if seconds is None:
            self._training.notes.append(f"no time of a step after the first: {name[0].strip()}")
            return
        part = Part(seconds, "median" if is_median else "mean", _finite(deviation))
        setattr(self._training, _PARTS[name[1]], part)

    def _first_load(self, line: str) -> None:
        self._training.first_load_s = _finite(re.search(rf"loading time: *{_NUMBER}", line))

    def _validation(self, line: str) -> None:
        if re.search(r"Validation (?:time|complete in|time estimation):", line):
            self._training.validation_s = duration(line)

    def _power(self, line: str) -> None:
        self._training.peak_power_w = _finite(re.search(rf"during training: *{_NUMBER} W", line))
        self._training.has_gpu = True

    def _place(self, line: str) -> None:
        found = re.search(r"Training on +(\d{1,9}) +nodes? and +(\d{1,9}) +process", line)
        if found:
            self._training.nodes, self._training.processes = int(found[1]), int(found[2])

    def _batch(self, line: str) -> None:
        found = re.search(r"global batch size: *(\d{1,15})\b(?: *- *mini batch size: *(\d{1,15})\b)?", line)
        if found:
            self._training.global_batch = int(found[1])
            self._training.mini_batch = int(found[2]) if found[2] else None

    def _batches(self, line: str) -> None:
        found = re.search(r"batch(?:es)? per epoch: *(\d{1,15})\b", line)
        self._training.batches_per_epoch = int(found[1]) if found else self._training.batches_per_epoch

    def _memory(self, line: str) -> None:
        found = re.search(r"VmHWM:\s*(\d{1,15})\s*kB", line)
        self._training.peak_memory_bytes = int(found[1]) << 10 if found else self._training.peak_memory_bytes

    def _gpu_memory(self, line: str) -> None:
        found = re.search(r"Max Memory Allocated *(\d{1,18}) *Bytes", line)
        if found and self._training.has_gpu is None:
            self._training.has_gpu = int(found[1]) > 0

    def _gpu(self, _line: str) -> None:
        self._training.has_gpu = True

    def _sequences(self, _line: str) -> None:
        self._training.unit = "sequences"

    def _loader(self, line: str) -> None:
        words = line.partition("DATALOADER")[2].split()
        if len(words) >= len(_LOADER):
            self._training.loader = dict(zip(_LOADER, words, strict=False))

    def _times(self, line: str) -> None:
        try:
            times = json.loads(line.partition(">>>JSON")[2])
            self._training.steps_s = _numbers(times[STEP_KEY])
            self._training.loads_s = _numbers(times[LOAD_KEY])
        except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
            self._training.notes.append("the times of the single steps are damaged (line '>>>JSON ...')")

    def _optimizer(self, line: str) -> None:
        text = line.partition("Optimizer:")[2].strip()
        self._training.optimizer = [text]
        self._open_brackets = max(text.count("(") - text.count(")"), 0)

    def _continue_optimizer(self, line: str) -> None:
        if "NCCL INFO" in line or "Train step" in line:
            return
        text = re.sub(r"^ *\d+: ", "", line)  # the task of `srun --label`
        self._open_brackets = max(self._open_brackets + text.count("(") - text.count(")"), 0)
        self._training.optimizer.append(text.rstrip())
        if len(self._training.optimizer) >= _MAX_OPTIMIZER_LINES:
            self._open_brackets = 0

    def _deepspeed(self, line: str) -> None:
        found = re.search(r"\b(optimizer|scheduler)_(name|params) *\.+ *(.*)", line)
        if found:
            self._training.optimizer.append(found[3].strip())


_PARTS = {"Training": "step", "Loading": "load", "Forward": "forward", "Backward": "backward"}
_LOADER = ("num_workers", "persistent_workers", "pin_memory", "non_blocking", "prefetch_factor", "drop_last")
_LINES: tuple[tuple[str, Callable[[_Reader, str], None]], ...] = (
    ("Training complete in:", _Reader._complete),
    ("performance time:", _Reader._part),
    ("First step loading time:", _Reader._first_load),
    ("Validation ", _Reader._validation),
    ("Peak Power during training:", _Reader._power),
    ("Training on ", _Reader._place),
    ("global batch size:", _Reader._batch),
    ("per epoch:", _Reader._batches),
    ("VmHWM:", _Reader._memory),
    ("Max Memory Allocated", _Reader._gpu_memory),
    ("NCCL INFO", _Reader._gpu),
    ("Perplexity:", _Reader._sequences),
    ("DATALOADER ", _Reader._loader),
    (">>>JSON", _Reader._times),
    ("Optimizer:", _Reader._optimizer),
    ("optimizer_", _Reader._deepspeed),
    ("scheduler_", _Reader._deepspeed),
)


def peak_memory(training: Training, job: Job) -> float | None:
    """Bytes of memory on the host: of the log, else of the samples of the run."""
    if training.peak_memory_bytes or job.run is None:
        return training.peak_memory_bytes
    peak = (job.run.get("efficiency") or {}).get("memory_peak_bytes")
    return float(peak) if peak else None


def duration(text: str) -> float | None:
    """Seconds of the last duration in the text, as Python prints it: "1 day, 0:02:12.345"."""
    found = _DURATION.findall(text)
    if not found:
        return None
    days, hours, minutes, seconds = found[-1]
    return ((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)


def _finite(found: re.Match[str] | None) -> float | None:
    number = float(found[1]) if found else math.nan
    return number if math.isfinite(number) else None


def _numbers(values: Any) -> list[float]:
    numbers = [float(value) for value in values]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("not finite")
    return numbers


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _add_records(training: Training, job: Job, run: dict[str, Any]) -> None:
    """Adds what stoker-train recorded. As in the chronometer's times, the first step does not count."""
    folder = job.folder
    attempts = [attempt["attempt"] for attempt in run.get("attempts", [])]
    if folder is None or not attempts:
        return
    rows = list(_rows(folder / f"attempts/{max(attempts)}/metrics-0000.csv"))
    training.processes = training.processes or run.get("world_size")
    training.nodes = training.nodes or len(run.get("nodes") or []) or None
    training.has_gpu = bool(run.get("gpus")) if training.has_gpu is None else training.has_gpu
    training.complete_s = training.complete_s or run.get("running_s")
    if len(rows) < 2 or "step_s" not in rows[0]:
        return
    training.is_recorded = True
    training.unit = "samples"
    training.loads_s = [row.get("data_s", 0.0) for row in rows]
    training.steps_s = [row["step_s"] - load for row, load in zip(rows, training.loads_s, strict=True)]
    training.first_load_s = training.loads_s[0]
    training.step, training.load = _part(training.steps_s), _part(training.loads_s)
    training.forward = _part([row.get("forward_s", 0.0) for row in rows])
    training.backward = _part([row.get("backward_s", 0.0) for row in rows])
    training.mini_batch = int(median(row.get("samples", 0.0) for row in rows))
    training.global_batch = training.mini_batch * (training.processes or 1)
    epochs = [row.get("epoch") for row in rows]
    training.batches_per_epoch = epochs.count(epochs[0]) if epochs[0] != epochs[-1] else None
    validated = [row["validation_s"] for row in _rows(folder / f"attempts/{max(attempts)}/epochs.csv")]
    training.validation_s = validated[-1] if validated else None
    powers = [gpu["power_w_peak"] for gpu in run.get("gpus") or [] if gpu.get("power_w_peak")]
    training.peak_power_w = max(powers) if powers else None


def _rows(file: Path) -> Iterator[dict[str, float]]:
    """Rows of a CSV file of a run. A torn last row and damaged rows are skipped."""
    if not file.is_file():
        return
    with file.open(errors="replace") as lines:
        columns = next(lines, "").rstrip("\n").split(",")
        for line in lines:
            try:
                values = [float(cell or "nan") for cell in line.split(",")]
            except ValueError:
                continue
            if line.endswith("\n") and len(values) == len(columns):
                yield dict(zip(columns, values, strict=True))


def _part(values: list[float]) -> Part:
    return Part(fmean(values[1:]), "mean", pstdev(values[1:]))
