"""Whether threads make somebody's Python code faster, or it holds the interpreter's lock and needs processes: measured, in
a forked process that ends at once, so that the caller's dataset, open files and random states stay as they are."""

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

# Below this share of what so many cores could do, processes are worth their memory and their start.
_GOOD_ENOUGH = 0.9
_LEAST_SAMPLES = 4
_ROUNDS = 3  # in turns; the median of the ratios counts
_LONG_S = 0.5  # after which the rounds so far are enough
_PATIENCE_S = 2.0  # for all of it; a sample may take minutes, or never come
_ROUND_S = 0.06  # many times the 5 ms after which a thread must let go of the lock
# What code that holds the lock keeps busy, however many threads run it: one core, and a little for handing it over.
_ONE_CORE = 1.15
# A batch that is ready sooner than this gains nothing from being made elsewhere.
_QUICK_BATCH_S = 0.001
# What threads must not share: somebody's position in a file is everybody's.
_HANDLES = ("h5py", "sqlite3", "tarfile", "zipfile", "netCDF4", "cv2")
# Of a dataset, where open files are looked for: so many of a list's or dict's values, and so many objects in all.
_FEW_OF_EACH = 8
_MOST_OBJECTS = 2000


@dataclass(frozen=True)
class Choice:
    """How batches are made, by how many, and why."""

    mode: Literal["threads", "processes"]
    workers: int
    reason: str

    def __str__(self) -> str:
        what = self.mode if self.workers != 1 else self.mode.removesuffix("es" if self.mode == "processes" else "s")
        return f"{self.workers} {what}: {self.reason}"


def _waited_for_a_core_s() -> float:
    """How long the calling thread was ready to run while others did: what else the machine does must not decide."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


@dataclass(frozen=True)
class _Pace:
    rate: float  # samples per second, on a core of its own
    computed_s: float
    ended: float


def _pace(get: Callable[[int], Any], indices: Sequence[int], end: float) -> _Pace:
    """Of the calling thread, until that time of perf_counter."""
    started, waited, used = time.perf_counter(), _waited_for_a_core_s(), time.thread_time()
    done = 0
    for index in itertools.cycle(indices):
        get(index)
        done += 1
        if done >= _LEAST_SAMPLES and time.perf_counter() > end:
            break
    ended, computed = time.perf_counter(), time.thread_time() - used
    on_a_core = max(1e-9, ended - started - (_waited_for_a_core_s() - waited), computed)
    return _Pace(done / on_a_core, computed, ended)


def _pace_of(get: Callable[[int], Any], shares: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Samples per second of so many threads, each with its share, and how many cores computed."""
    paces: list[_Pace] = []
    failures: list[BaseException] = []
    begun: list[float] = []
    begin = threading.Barrier(len(shares), lambda: begun.append(time.perf_counter()))

    def work(number: int) -> None:
        try:
            begin.wait()
            paces.append(_pace(get, shares[number], begun[0] + _ROUND_S))
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
    seconds = max(pace.ended for pace in paces) - begun[0]
    return sum(pace.rate for pace in paces), sum(pace.computed_s for pace in paces) / max(1e-9, seconds)


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
    """What an object consists of, each with how it is reached."""
    if isinstance(value, (list, tuple)):
        yield from ((f"[{i}]", part) for i, part in enumerate(value[:_FEW_OF_EACH]))
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]", part) for key, part in itertools.islice(value.items(), _FEW_OF_EACH))
    elif not isinstance(value, (type, types.ModuleType)):
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            yield from ((f".{name}", part) for name, part in attributes.items())


def open_handle(dataset: Any, depth: int = 6) -> str | None:
    """The attribute in which a dataset, or something inside it, keeps an open file or the like; the nearest one."""
    level: list[tuple[str, Any]] = [("", dataset)]
    seen: set[int] = set()
    for _ in range(depth):
        found: list[tuple[str, Any]] = []
        for path, value in level:
            for name, part in _parts(value):
                if _is_handle(part):
                    return (path + name).removeprefix(".")
                if id(part) not in seen and len(seen) < _MOST_OBJECTS:
                    seen.add(id(part))
                    found.append((path + name, part))
        level = found
    return None


def measure(dataset: Any, indices: Sequence[int], workers: int) -> dict[str, Any]:
    """Samples per second of one thread, and how many times as many `workers` threads make."""
    get = dataset.__getitem__
    get(indices[0])  # imports and caches of the first call are not measured
    handle = open_handle(dataset)
    if handle is not None:
        return {"handle": handle}
    shares = [indices[i % len(indices) :] for i in range(workers)]
    paces: list[tuple[tuple[float, float], tuple[float, float]]] = []
    end = time.perf_counter() + _LONG_S
    while not paces or (len(paces) < _ROUNDS and time.perf_counter() < end):
        paces.append((_pace_of(get, [indices]), _pace_of(get, shares)))
    gain = sorted(together / alone for (alone, _), (together, _) in paces)[len(paces) // 2]
    busy_alone = max(busy for (_, busy), _ in paces)
    busy = max(busy for _, (_, busy) in paces)
    # A thread that waits for the lock may wait for a core as well, on a machine with much to do.
    if busy_alone > 0.5 and busy < _ONE_CORE:
        gain = min(gain, busy)
    return {"alone": max(alone for (alone, _), _ in paces), "gain": gain}


def _measure_in_a_fork(dataset: Any, indices: Sequence[int], workers: int) -> dict[str, Any]:
    """What measure() gives, or as `failed` why it gave nothing."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.write(write, json.dumps(measure(dataset, indices, workers)).encode())
        finally:
            os._exit(0)  # no cleanup of what belongs to the caller
    os.close(write)
    try:
        ready = select.poll()
        ready.register(read, select.POLLIN)
        if not ready.poll(1000 * _PATIENCE_S):
            return {"failed": f"samples take too long to measure within {_PATIENCE_S:g} s whether threads help"}
        answer = os.read(read, 1 << 16)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)  # its end, if it is not yet there
        os.waitpid(child, 0)
    if not answer:
        return {"failed": "a sample could not be taken to measure whether threads help"}
    found: dict[str, Any] = json.loads(answer)
    return found


def choose(dataset: Any, batch_size: int, workers: int) -> Choice:
    """Takes a few samples in one thread and then in all, and compares."""
    if workers <= 1:
        return Choice("threads", 1, "one core, or as asked")
    name = type(dataset).__name__
    try:
        count = len(dataset)
    except (TypeError, NotImplementedError):
        return Choice("processes", workers, f"{name} has no length, by which samples could be measured")
    if count == 0:
        return Choice("threads", 1, "no samples")
    # Spread over the dataset: its beginning may be of one kind.
    indices = [number * count // 64 for number in range(min(64, count))]
    found = _measure_in_a_fork(dataset, indices, workers)
    if "failed" in found:
        return Choice("processes", workers, found["failed"])
    if "handle" in found:
        return Choice("processes", workers, f"{name}.{found['handle']} is open, and threads would share it")
    if batch_size / found["alone"] < _QUICK_BATCH_S:
        return Choice("threads", 1, f"a batch takes {1e3 * batch_size / found['alone']:.2f} ms: not worth more")
    gain = found["gain"]
    said = f"{workers} threads are {gain:.2f} times as fast as one"
    if gain >= _GOOD_ENOUGH * workers:
        return Choice("threads", workers, f"{said}: {name} lets go of Python's lock")
    return Choice("processes", workers, f"{said}: {name} holds Python's lock")
