"""Measures whether threads speed up a dataset's Python code, or whether it holds the GIL and needs processes. The measurement
runs in a short-lived forked process and leaves the caller's dataset, open files and random states unchanged."""

import itertools
import json
import os
import select
import signal
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# Below this parallel efficiency, processes are worth their memory and start-up time.
_MIN_EFFICIENCY = 0.9
_MIN_SAMPLES = 4
_ROUNDS = 3  # alternating; the median ratio is used
_MAX_MEASURE_S = 0.5  # no new round after this time
_TIMEOUT_S = 2.0  # of the whole measurement; a sample may take minutes or hang
_ROUND_S = 0.06  # many times the 5 ms switch interval of the GIL
# Maximum number of busy cores for code that holds the GIL, with any number of threads: one, plus some switching.
_ONE_CORE = 1.15
# A faster batch gains nothing from workers.
_QUICK_BATCH_S = 0.001
# Libraries with file handles that threads must not share: they have one file position.
_HANDLES = ("h5py", "sqlite3", "tarfile", "zipfile", "netCDF4", "cv2")
# Limits of the search for open files in a dataset: values per list or dict, and objects in total.
_MAX_PER_CONTAINER = 8
_MAX_OBJECTS = 2000


@dataclass(frozen=True)
class Choice:
    """Kind and number of workers, with the reason."""

    mode: Literal["threads", "processes"]
    workers: int
    reason: str

    def __str__(self) -> str:
        what = self.mode if self.workers != 1 else self.mode.removesuffix("es" if self.mode == "processes" else "s")
        return f"{self.workers} {what}: {self.reason}"


def _run_queue_wait_s() -> float:
    """Time that the calling thread waited for a core. It is excluded, so that other load on the machine has no influence."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


@dataclass(frozen=True)
class _Throughput:
    rate: float  # samples per second, on a separate core
    computed_s: float
    ended: float


def _throughput(get: Callable[[int], Any], indices: Sequence[int], end: float) -> _Throughput:
    """Measures the calling thread until `end` (perf_counter)."""
    started, waited, used = time.perf_counter(), _run_queue_wait_s(), time.thread_time()
    done = 0
    for index in itertools.cycle(indices):
        get(index)
        done += 1
        if done >= _MIN_SAMPLES and time.perf_counter() > end:
            break
    ended, computed = time.perf_counter(), time.thread_time() - used
    on_a_core = max(1e-9, ended - started - (_run_queue_wait_s() - waited), computed)
    return _Throughput(done / on_a_core, computed, ended)


def _threads_throughput(get: Callable[[int], Any], shares: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Samples per second of threads, one per share, and the number of busy cores."""
    throughputs: list[_Throughput] = []
    failures: list[BaseException] = []
    begun: list[float] = []
    begin = threading.Barrier(len(shares), lambda: begun.append(time.perf_counter()))

    def work(number: int) -> None:
        try:
            begin.wait()
            throughputs.append(_throughput(get, shares[number], begun[0] + _ROUND_S))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, len(shares))]
    for thread in threads:
        thread.start()
    work(0)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    seconds = max(throughput.ended for throughput in throughputs) - begun[0]
    return sum(throughput.rate for throughput in throughputs), sum(
        throughput.computed_s for throughput in throughputs
    ) / max(1e-9, seconds)


def _is_handle(value: Any) -> bool:
    if isinstance(value, type):
        return False
    if type(value).__module__.partition(".")[0] in _HANDLES:
        return True
    if not (hasattr(value, "seek") and hasattr(value, "read")):
        return False
    try:
        return bool(value.readable()) if hasattr(value, "readable") else True
    except (OSError, ValueError):  # closed
        return False


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Parts of an object, each with its access path."""
    if isinstance(value, (list, tuple)):
        yield from ((f"[{i}]", part) for i, part in enumerate(value[:_MAX_PER_CONTAINER]))
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]", part) for key, part in itertools.islice(value.items(), _MAX_PER_CONTAINER))
    elif not isinstance(value, (type, types.ModuleType)):
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            yield from ((f".{name}", part) for name, part in attributes.items())


def open_handle(dataset: Any, depth: int = 6) -> str | None:
    """The attribute path to an open file or similar handle in a dataset; the shortest one."""
    level: list[tuple[str, Any]] = [("", dataset)]
    seen: set[int] = set()
    for _ in range(depth):
        found: list[tuple[str, Any]] = []
        for path, value in level:
            for name, part in _parts(value):
                if _is_handle(part):
                    return (path + name).removeprefix(".")
                if id(part) not in seen and len(seen) < _MAX_OBJECTS:
                    seen.add(id(part))
                    found.append((path + name, part))
        level = found
    return None


def measure(dataset: Any, indices: Sequence[int], workers: int) -> dict[str, Any]:
    """Samples per second of one thread, and the speed-up by `workers` threads."""
    get = dataset.__getitem__
    get(indices[0])  # excludes imports and caches of the first call
    handle = open_handle(dataset)
    if handle is not None:
        return {"handle": handle}
    shares = [indices[i % len(indices) :] for i in range(workers)]
    throughputs: list[tuple[tuple[float, float], tuple[float, float]]] = []
    end = time.perf_counter() + _MAX_MEASURE_S
    while not throughputs or (len(throughputs) < _ROUNDS and time.perf_counter() < end):
        throughputs.append((_threads_throughput(get, [indices]), _threads_throughput(get, shares)))
    gain = sorted(together / alone for (alone, _), (together, _) in throughputs)[len(throughputs) // 2]
    busy_alone = max(busy for (_, busy), _ in throughputs)
    busy = max(busy for _, (_, busy) in throughputs)
    # On a busy machine, a thread that waits for the GIL may also wait for a core.
    if busy_alone > 0.5 and busy < _ONE_CORE:
        gain = min(gain, busy)
    return {"alone": max(alone for (alone, _), _ in throughputs), "gain": gain}


def _measure_in_fork(dataset: Any, indices: Sequence[int], workers: int) -> dict[str, Any]:
    """The result of measure(), or the reason as `failed`."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.write(write, json.dumps(measure(dataset, indices, workers)).encode())
        finally:
            os._exit(0)  # no cleanup of the caller's objects
    os.close(write)
    try:
        ready = select.poll()
        ready.register(read, select.POLLIN)
        if not ready.poll(1000 * _TIMEOUT_S):
            return {"failed": f"samples are too slow to measure within {_TIMEOUT_S:g} s whether threads help"}
        answer = os.read(read, 1 << 16)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)  # if it is still running
        os.waitpid(child, 0)
    if not answer:
        return {"failed": "loading a sample failed while measuring whether threads help"}
    found: dict[str, Any] = json.loads(answer)
    return found


def choose(dataset: Any, batch_size: int, workers: int) -> Choice:
    """Compares the loading of a few samples in one thread and in all threads."""
    if workers <= 1:
        return Choice("threads", 1, "one core, or as requested")
    name = type(dataset).__name__
    try:
        count = len(dataset)
    except (TypeError, NotImplementedError):
        return Choice("processes", workers, f"{name} has no length, so that threads cannot be measured")
    if count == 0:
        return Choice("threads", 1, "no samples")
    # Spread over the dataset: its beginning may not be representative.
    indices = [number * count // 64 for number in range(min(64, count))]
    found = _measure_in_fork(dataset, indices, workers)
    if "failed" in found:
        return Choice("processes", workers, found["failed"])
    if "handle" in found:
        return Choice("processes", workers, f"{name}.{found['handle']} is an open handle, which threads would share")
    if batch_size / found["alone"] < _QUICK_BATCH_S:
        return Choice(
            "threads", 1, f"a batch takes {1e3 * batch_size / found['alone']:.2f} ms: more workers would not help"
        )
    gain = found["gain"]
    text = f"{workers} threads are {gain:.2f} times as fast as one"
    if gain >= _MIN_EFFICIENCY * workers:
        return Choice("threads", workers, f"{text}: {name} releases the GIL")
    return Choice("processes", workers, f"{text}: {name} holds the GIL")
