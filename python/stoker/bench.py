"""`python -m stoker.bench MODULE:FUNCTION DATASET` measures torch's DataLoader and stoker.DataLoader over the dataset returned
by the function, with several settings, each in a separate process. `stoker data bench --python` runs it and prints the table.
The rows are described in docs/formats/trials.md."""

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

COLUMNS = [
    "jobid",
    "dataset",
    "loader",
    "batch",
    "num_workers",
    "pin_memory",
    "non_blocking",
    "prefetch_factor",
    "persistent_workers",
    "drop_last",
    "loading_time",
    "1st_step_loading_time",
    "cpu_memory",
    "samples_per_s",
    "limit",
]


def line_of(trial: dict[str, Any]) -> str:
    """One trial as a line of a trials file."""
    cells = [str(trial[name]).replace(",", " ").replace("\n", " ") for name in COLUMNS]
    return ",".join(cells) + "\n"


def append(path: str, trial: dict[str, Any]) -> None:
    """Appends a trial to a trials file, created if missing."""
    header = "" if os.path.exists(path) else ",".join(COLUMNS) + "\n"
    with open(path, "a") as file:
        file.write(header + line_of(trial))


def settings(workers: int, has_gpu: bool) -> Iterator[dict[str, Any]]:
    """Settings of the trials: first the number of workers, then each other argument alone, with all workers."""
    base = {
        "loader": "torch",
        "num_workers": workers,
        "pin_memory": False,
        "non_blocking": False,
        "prefetch_factor": 2,
        "persistent_workers": True,
        "drop_last": False,
    }
    for count in sorted({0, 1, workers}):
        yield base | {"num_workers": count, "persistent_workers": count > 0}
    yield base | {"prefetch_factor": 4}
    yield base | {"persistent_workers": False}
    if has_gpu:
        yield base | {"pin_memory": True}
        yield base | {"pin_memory": True, "non_blocking": True}
    for prefetch in (2, 4):
        pins = {"pin_memory": has_gpu, "non_blocking": has_gpu}
        yield base | {"loader": "stoker.DataLoader", "prefetch_factor": prefetch} | pins


def _open(dataset: Any, batch: int, trial: dict[str, Any]) -> tuple[Any, str]:
    """The loader and its plan."""
    common = {"batch_size": batch, "shuffle": True, "num_workers": trial["num_workers"]}
    common |= {name: trial[name] for name in ("pin_memory", "drop_last")}
    if trial["loader"] == "torch":
        import torch

        more = {name: trial[name] for name in ("prefetch_factor", "persistent_workers")} if trial["num_workers"] else {}
        return torch.utils.data.DataLoader(dataset, **common, **more), ""
    from stoker.data_loader import DataLoader

    loader = DataLoader(dataset, **common, prefetch_factor=trial["prefetch_factor"], quiet=True)
    return loader, loader.plan()


def memory_of_processes() -> int:
    """Memory of this process and its children in bytes (PSS: shared pages are divided among their processes)."""
    total, pids = 0, [str(os.getpid())]
    while pids:
        pid = pids.pop()
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                pids += file.read().split()
        except OSError:
            continue
    return total


def _count(batch: Any) -> int:
    """Number of samples in a batch of default_collate."""
    if isinstance(batch, dict):
        return max(map(_count, batch.values()), default=0)
    if isinstance(batch, (list, tuple)) and batch and not isinstance(batch[0], (str, bytes)):
        return max(map(_count, batch))
    return len(batch)


def _to_device(batch: Any, device: str | None, non_blocking: bool) -> Any:
    if device is None:
        return batch
    if isinstance(batch, dict):
        return {name: _to_device(value, device, non_blocking) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [_to_device(value, device, non_blocking) for value in batch]
    return batch.to(device, non_blocking=non_blocking) if hasattr(batch, "to") else batch


def measure(dataset: Any, batch: int, seconds: float, trial: dict[str, Any]) -> dict[str, Any]:
    """Loads epochs for the given time; the first batch is measured separately."""
    import torch

    device = "cuda" if torch.cuda.is_available() else None
    started = time.perf_counter()
    loader, why = _open(dataset, batch, trial)
    first, samples, batches = 0.0, 0, 0
    begun, memory = started, 0
    while True:
        for got in loader:
            got = _to_device(got, device, trial["non_blocking"])
            if not first:
                first, begun = time.perf_counter() - started, time.perf_counter()
                continue
            samples, batches = samples + _count(got), batches + 1
            if time.perf_counter() - begun > seconds:
                break
        memory = max(memory, memory_of_processes())
        if time.perf_counter() - begun > seconds and batches:
            break
    elapsed = time.perf_counter() - begun
    found = {"loading_time": f"{elapsed / batches:.6f}", "1st_step_loading_time": f"{first:.6f}"}
    return trial | found | {"cpu_memory": memory, "samples_per_s": f"{samples / elapsed:.1f}", "limit": why}


def run_in_process(function: Any, *arguments: Any) -> dict[str, Any]:
    """The result of `function`, called in a forked child, so that its memory does not affect the next trial."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            os.write(write, json.dumps(function(*arguments)).encode())
            code = 0
        except Exception as error:
            os.write(write, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(answer or b'{"error": "the trial was killed"}')
    if "error" in found:
        raise SystemExit(f"stoker.bench: {found['error']}")
    return found


def load(name: str, dataset: str) -> Any:
    """The dataset returned by MODULE:FUNCTION."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise SystemExit(f"stoker.bench: '{name}' is not MODULE:FUNCTION")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"stoker.bench: {error}") from error
    made = found(dataset)
    if not hasattr(made, "__getitem__") or not hasattr(made, "__len__"):
        raise SystemExit(f"stoker.bench: {name} returned a {type(made).__name__}, expected a map-style dataset")
    return made


def main(words: list[str] | None = None) -> None:
    """Writes each finished trial to the file of --trials, otherwise to standard output."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m stoker.bench", description="Measure DataLoader settings on a dataset."
    )
    parser.add_argument("function", metavar="MODULE:FUNCTION")
    parser.add_argument("dataset")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--trials")
    parser.add_argument("--job", default="here")
    given = parser.parse_args(words)
    import torch

    from stoker.data_loader import cores

    dataset = load(given.function, given.dataset)
    known = {"jobid": given.job, "dataset": given.function, "batch": given.batch}
    # CUDA is initialized only in the children: it does not survive a fork.
    has_gpu = torch.cuda.device_count() > 0
    for trial in settings(cores(), has_gpu):
        found = run_in_process(measure, dataset, given.batch, given.seconds, known | trial)
        if given.trials:
            append(given.trials, found)
        else:
            print(line_of(found), end="", flush=True)


if __name__ == "__main__":
    main()
