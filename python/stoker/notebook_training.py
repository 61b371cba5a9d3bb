"""controle_technique and turbo_profiler: the speed of a training, and the time of each iteration."""

import re
from contextlib import suppress
from typing import Any

from stoker import command, notebook_figures
from stoker import notebook_chronometer as chronometer
from stoker.errors import NotFoundError, StokerError
from stoker.notebook_chronometer import Part, Training
from stoker.notebook_logs import Job, displays, first, package, read_lines

_SHORTEST_S = 1e-9
_GPU_OUT_OF_MEMORY = re.compile(r"CUDA out of memory|CUDA error: out of memory|OutOfMemoryError: CUDA")


def controle_technique(jobid: Any) -> None:
    """Shows the throughput of a training on a gauge, with its GPUs, batch size and optimizer, and prints the times of its steps.
    For a training without such times, shows why: out of memory, another failure, or not yet measured.

    `jobid`: a job id, the list of gpu_jobs_submitter (its first job), a run of Stoker, or the path of a log."""
    job = first(jobid, "controle_technique")
    training = chronometer.read(job)
    for note in training.notes:
        print(f"{job.out[0]}: {note}")
    step, load = training.mean_step_s, training.mean_load_s
    if step is None or step < _SHORTEST_S or not training.global_batch:
        _show_failure(job, training)
        return
    total = step + (load or 0)
    device = {True: "GPU", False: "CPU", None: "Compute"}[training.has_gpu]
    unit, batch = training.unit, training.global_batch
    speed = batch / step
    inside = f"{device} : {speed / 1000:.2f} k" if speed >= 1000 else f"{device} : {speed:.0f}"
    if training.peak_power_w:
        inside += f"\n{training.peak_power_w:.0f} W: highest power of one GPU"
    notebook_figures.dashboard(_title(job), unit, batch / total, inside, _texts(training))
    print(f"Train throughput: {batch / total:.2f} {unit}/second")
    print(f"{device} throughput: {speed:.2f} {unit}/second")
    if training.batches_per_epoch:
        print(f"epoch time: {total * training.batches_per_epoch:.2f} seconds")
    if training.validation_s is not None:
        print(f"validation time: {training.validation_s:.2f} seconds")
    print("-----------")
    print(f"training step time {_text(training.step, training.steps_s)}{_shares(training, step)}")
    print(f"loading step time (IO + CPU to GPU transfer) {_text(training.load, training.loads_s)}")
    if not training.is_recorded and training.has_gpu is not False:
        print(
            "fwd/bkwd are times of the host: without torch.cuda.synchronize(), work of the GPU counts where the host waits"
        )
    _show_link("log", job)


def _text(part: Part | None, single: list[float]) -> str:
    if part is None:
        return "unknown"
    text = f"{part.kind} {part.seconds:.6f} sec"
    mean = sum(single[1:]) / len(single[1:]) if len(single) > 1 else None
    if mean is not None and part.kind != "mean":
        text += f", mean {mean:.6f} sec"
    return text + (f" +/- {part.deviation:.6f}" if part.deviation is not None else "")


def _shares(training: Training, step: float) -> str:
    """Shares of the mean step. Without the single times, its mean is unknown, and the parts are compared with each other."""
    if training.forward is None or training.backward is None:
        return ""
    forward, backward = training.forward.seconds, training.backward.seconds
    is_mean = len(training.steps_s) > 1 or (training.step is not None and training.step.kind == "mean")
    whole = step if is_mean else forward + backward
    if whole <= 0:
        return ""
    text = f" (fwd/bkwd: {100 * forward / whole:.1f}%/{100 * backward / whole:.1f}%"
    rest = 100 * (whole - forward - backward) / whole
    if training.peak_power_w and not training.is_recorded and rest > 0.1:
        text += f", reading the power: {rest:.1f}%"
    return text + ")"


def _texts(training: Training) -> list[tuple[str, str]]:
    texts = []
    if training.processes:
        is_cpu = training.has_gpu is False
        unit = ("process" if training.processes == 1 else "processes") if is_cpu else "GPU"
        where = f" on {training.nodes} nodes" if (training.nodes or 1) > 1 else ""
        texts.append(("size", f"{training.processes} {unit}{where}"))
    batch, each = training.global_batch or 0, training.mini_batch
    texts.append(("batch size", f"{batch} = {batch // each} x {each}" if each and batch % each == 0 else str(batch)))
    if training.optimizer:
        texts.append(("optimizer", "\n".join(line for line in training.optimizer[:14] if line)))
    return texts


def _show_failure(job: Job, training: Training) -> None:
    what, why, cure = _failure(job, training)
    notebook_figures.overheated(_title(job), what, why)
    print(f"{what}: {why}" if why else what)
    if cure:
        print(f"  try: {cure}")
    _show_link("error log", job)


def _failure(job: Job, training: Training) -> tuple[str, str, str]:
    """What happened, why, and the cure."""
    logs = [*job.err, *job.out]
    found = {}
    with suppress(StokerError):  # the figure also helps without a cause
        found = command.run_json("explain", *(str(log.absolute()) for log in logs))["diagnosis"]
    cause, cure = found.get("cause") or "", found.get("cure") or ""
    if line := _first_line(job, _GPU_OUT_OF_MEMORY):
        return "CUDA Out of Memory", cause or line, cure
    state = _state(job)
    if state in ("queued", "running"):
        return "Not measured yet", f"the job is {state}", "display_slurm_queue()"
    if cause:
        return "Some error", cause, cure
    missing = "the size of the batches" if training.step else "the times of the steps"
    return "Not measured", f"the log has no line with {missing}", "start the script of the course with --test"


def _first_line(job: Job, pattern: re.Pattern[str]) -> str:
    for log in [*job.err, *job.out]:
        for line in read_lines(log):
            if pattern.search(line):
                return line.strip()[:300]
    return ""


def _state(job: Job) -> str:
    with suppress(StokerError):
        answer = command.run_json("status", job.name)
        found = answer.get("runs") or answer.get("jobs") or [{}]
        return str(found[0].get("state", ""))
    return ""


def _title(job: Job) -> str:
    log = job.out[0]
    return log.stem if "@" in log.name or job.run is None else str(job.run["id"])


def _show_link(what: str, job: Job) -> None:
    log = (job.err or job.out)[0] if what == "error log" else job.out[0]
    if (display := displays()) is not None:
        display.display(display.Markdown(f"[Click here to display the {what}]({log})"))
    else:
        print(f"{what}: {log}")


def turbo_profiler(jobid: Any, dataloader_info: bool = False) -> Any:
    """Shows the time of each iteration on rank 0: forward and backward, and the wait for the data loader.

    With `dataloader_info`, returns a DataFrame of one row for comparisons of trials: jobid, num_workers, persistent_workers,
    pin_memory, non_blocking, prefetch_factor, drop_last, loading_time, 1st_step_loading_time, CPU_memory_usage(GB)."""
    job = first(jobid, "turbo_profiler")
    training = chronometer.read(job)
    for note in training.notes:
        print(f"{job.out[0]}: {note}")
    if not training.steps_s:
        raise NotFoundError(
            f"{job.out[0]}: has no times of single iterations (line '>>>JSON ...')\n"
            "  try: start the script of the course with --test"
        )
    if training.complete_s is None:
        print("Turbo Profiler >>> The training is not complete")
    else:
        clock = f"{int(training.complete_s // 3600)}:{int(training.complete_s // 60) % 60:02}:{training.complete_s % 60:05.2f}"
        print(f"Turbo Profiler >>> Training complete in {training.complete_s:.2f} s ({clock})")
    title, memory = ">>> Turbo Profiler >>>", None
    if dataloader_info and (peak := chronometer.peak_memory(training, job)):
        memory = peak / 2**30
        title += f" CPU Memory Usage: {memory:.2f} GB"
    series = {chronometer.STEP_KEY: training.steps_s, chronometer.LOAD_KEY: training.loads_s}
    notebook_figures.times(title, series)
    return _trial(job, training, memory) if dataloader_info else None


def _trial(job: Job, training: Training, memory: float | None) -> Any:
    loader = training.loader
    first_load = training.first_load_s
    if first_load is None and training.loads_s:
        first_load = training.loads_s[0]
    facts = {"DATALOADER": loader, "Loading performance time": training.load, "VmHWM": memory}
    for missing in [name for name, value in facts.items() if not value]:
        print(f"{job.out[0]}: no line '{missing} ...', so the row has gaps")
    row = {
        "jobid": job.name,
        "num_workers": _whole(loader.get("num_workers")),
        "persistent_workers": loader.get("persistent_workers"),
        "pin_memory": loader.get("pin_memory"),
        "non_blocking": loader.get("non_blocking"),
        "prefetch_factor": _whole(loader.get("prefetch_factor")),
        "drop_last": loader.get("drop_last"),
        "loading_time": training.load.seconds if training.load else None,
        "1st_step_loading_time": first_load,
        "CPU_memory_usage(GB)": memory,
    }
    return package("pandas", "turbo_profiler").DataFrame([row])


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
