"""Batches made by processes, for Python code that holds the interpreter's lock. Batches come back through memory that was
shared before the processes were forked: no file in /dev/shm, no descriptor per batch, and no page is touched twice.

A slot holds one batch. It is given to a worker with the batch's indices in it; the worker puts the batch's tensors there
instead and sends the rest by a pipe; the tensors that the caller gets lie in the slot, which is free again when the last is
gone. When the caller holds so many batches that workers would lack slots, it gets copies.

The caller's messages are short and few enough for the pipe to hold them all: it never waits for a worker that waits for it."""

import io
import multiprocessing
import multiprocessing.connection
import os
import pickle
import random
import signal
import sys
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy
import torch
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import worker as torch_worker

from stoker import errors
from stoker.errors import StokerError, UnavailableError, WaitTimeoutError
from stoker.iteration import Failure
from stoker.slots import Lease, Packer, Slot, Unpacker, pickled, stack, stack_in

# Batches that one worker is asked for at a time. Linux holds about 270 short messages in a pipe of multiprocessing's.
_MOST_AHEAD = 64

# Held while a process is forked: it must not get another thread's ends of pipes, which are closed once that one has forked.
_forking = threading.Lock()


def _renew_lock() -> None:
    global _forking
    _forking = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def seed_all(seed: int) -> None:
    """Python's, numpy's and torch's global generators."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy.random.seed(seed % 2**32)


def _make(source: Any, slot: Slot, indices: Any) -> bytes:
    slot.used = 0
    batch = source.make(indices, stack_in(slot) if source.collates_by_default else None)
    file = io.BytesIO()
    Packer(file, slot).dump(batch)
    return file.getvalue()


def _begin(number: int, source: Any, count: int) -> None:
    """Makes a process that number's worker, as torch's are."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    if torch_collate.default_collate_fn_map.get(torch.Tensor) is torch_collate.collate_tensor_fn:
        torch_collate.default_collate_fn_map[torch.Tensor] = stack
    torch_worker._worker_info = torch_worker.WorkerInfo(
        id=number, num_workers=count, seed=source.seed + number, dataset=source.dataset
    )
    if source.worker_init_fn is not None:
        seed_all(source.seed + number)
        source.worker_init_fn(number)


def _answer(source: Any, slots: list[Slot], task: "_Task") -> "_Answer":
    slot = slots[task.slot]
    seed_all(task.seed)
    try:
        return _Answer(_make(source, slot, pickle.loads(task.indices or slot.memory[: task.size])))
    except BaseException as error:
        return _Answer(error=_portable(error))


def _flush() -> None:
    # The end of a worker may come at any time, and must not take with it what the dataset printed.
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _work(number: int, connection: Any, others: list[Any], source: Any, slots: list[Slot], count: int) -> None:
    """A worker's life: batches until the pipe is closed."""
    for other in others:  # copies of the caller's ends: while one is open, the end of the caller is not noticed
        other.close()
    failure: tuple[bytes | None, str] | None = None
    try:
        _begin(number, source, count)
    except BaseException as error:  # raised where the worker's first batch is asked for
        failure = _portable(error)
    try:
        while True:
            task = connection.recv()
            answer = _Answer(error=failure) if failure else _answer(source, slots, task)
            _flush()
            connection.send(answer)
    except (EOFError, OSError):
        pass
    os._exit(0)  # nothing of the caller's that was copied is to be torn down here


def _portable(error: BaseException) -> tuple[bytes | None, str]:
    text = "".join(traceback.format_exception(error))
    try:
        return pickle.dumps(error), text
    except Exception:
        return None, text


class _Answer:
    """A batch as Packer made it, or the error there was instead."""

    def __init__(self, batch: bytes = b"", error: tuple[bytes | None, str] | None = None) -> None:
        self.batch, self.error = batch, error


class _Task:
    """What a worker is asked for: the pickled indices lie at the slot's beginning, or are too many for that."""

    def __init__(self, slot: int, seed: int, size: int, indices: bytes | None) -> None:
        self.slot, self.seed, self.size, self.indices = slot, seed, size, indices


class _Pending:
    """A batch that was asked for, in the caller."""

    def __init__(self, slot: int, indices: Any) -> None:
        self.slot, self.indices = slot, indices
        self.answer: _Answer | None = None


class ProcessWorkers:
    """`source` has dataset, seed, collates_by_default, worker_init_fn, and make(indices, collate or None)."""

    def __init__(self, source: Any, count: int, ahead: int) -> None:
        self._source, self._count = source, count
        self._ahead = min(max(ahead, count), _MOST_AHEAD * count)
        self._slots = [Slot() for _ in range(self._ahead + count + 1)]
        # Without a lock: a slot comes back from wherever its last tensor dies, also from within a garbage collection.
        self._free = deque(range(len(self._slots)))
        self.pid = os.getpid()  # of the caller, whose these processes are
        self._claimed = threading.Lock()  # by the one that iterates over run()
        self._context = multiprocessing.get_context("fork")
        self._workers: list[tuple[Any, Any, deque[_Pending]]] = []  # process, connection, what it was asked for

    def claim(self) -> bool:
        """Whether the caller is now the one that may iterate over run(), until it calls release()."""
        return self._claimed.acquire(blocking=False)

    def release(self) -> None:
        """Gives back what claim() took."""
        self._claimed.release()

    def _start(self, seed: int) -> None:
        if not all(process.is_alive() for process, _, _ in self._workers):
            self.close()  # one was killed while nobody waited for it
        if self._workers:
            return
        self._source.seed = seed
        ends: list[Any] = []
        for number in range(self._count):
            with _forking:
                ours, theirs = self._context.Pipe()
                ends.append(ours)
                arguments = (number, theirs, list(ends), self._source, self._slots, self._count)
                process = self._context.Process(target=_work, args=arguments, daemon=True)
                process.start()
                theirs.close()
            self._workers.append((process, ours, deque()))

    def run(self, batches: Iterator[Any], timeout: float, seed: int) -> Iterator[Any]:
        """The batches in order. An error of the dataset comes as a Failure in its batch's place."""
        self._start(seed)
        ordered: deque[_Pending] = deque()
        number = 0
        try:
            while True:
                number = self._plan(batches, ordered, seed, number)
                if not ordered:
                    return
                while ordered[0].answer is None:
                    self._receive(timeout, ordered[0])
                number = self._plan(batches, ordered, seed, number)
                yield self._open(ordered.popleft())
                if os.getpid() != self.pid:
                    raise errors.after_fork(self.pid, os.getpid())
        finally:
            if ordered:  # left early, or failed: what the workers are at belongs to no one
                self.close()
                self._free.extend(pending.slot for pending in ordered)

    def _plan(self, batches: Iterator[Any], ordered: deque[_Pending], seed: int, number: int) -> int:
        while len(ordered) < self._ahead and self._free:
            indices = next(batches, None)
            if indices is None:
                return number
            number += 1
            pending = _Pending(self._free.popleft(), indices)
            ordered.append(pending)
            self._ask(pending, (seed + 0x9E3779B97F4A7C15 * number) % 2**63)
        return number

    def _ask(self, pending: _Pending, seed: int) -> None:
        process, connection, queue = min(self._workers, key=lambda worker: len(worker[2]))
        message = pickled(pending.indices)
        is_in_slot = self._slots[pending.slot].write(message)
        try:
            connection.send(_Task(pending.slot, seed, len(message), None if is_in_slot else message))
        except OSError:
            raise self._died(process, queue[0] if queue else pending) from None
        queue.append(pending)

    def _receive(self, timeout: float, front: _Pending) -> None:
        busy: dict[Any, Any] = {worker[1]: worker for worker in self._workers if worker[2]}
        ready = multiprocessing.connection.wait(list(busy), timeout or None)
        if not ready:
            few = errors.few(front.indices)
            raise WaitTimeoutError(f"loader: no batch within {timeout:g} s (timeout): samples {few}")
        for connection in ready:
            process, _, queue = busy[connection]
            try:
                answer = busy[connection][1].recv()
            except (EOFError, OSError):
                raise self._died(process, queue[0]) from None
            queue.popleft().answer = answer

    def _died(self, process: Any, pending: _Pending) -> StokerError:
        process.join(5)
        code = process.exitcode
        how = f"exit code {code}" if code is None or code >= 0 else f"killed by signal {-code}"
        few = errors.few(pending.indices)
        text = f"loader: worker process {process.pid} ended ({how}) while it made the batch of samples {few}"
        if code == -signal.SIGKILL:
            text += "\n  try: fewer workers: the kernel kills processes when memory is short"
        return UnavailableError(text)

    def _open(self, pending: _Pending) -> Any:
        answer, slot = pending.answer, pending.slot
        assert answer is not None
        if answer.error is not None:
            self._free.append(slot)
            return Failure(_raised(*answer.error))
        if not self._free:
            try:
                return Unpacker(io.BytesIO(answer.batch), self._slots[slot], None).load()
            finally:
                self._free.append(slot)
        lease = self._slots[slot].array.view(Lease)
        weakref.finalize(lease, self._free.append, slot).atexit = False
        return Unpacker(io.BytesIO(answer.batch), self._slots[slot], lease).load()

    def close(self) -> None:
        """Ends the processes; the next run starts others."""
        workers, self._workers = self._workers, []
        if os.getpid() != self.pid:
            return  # they are the parent's
        for process, connection, _ in workers:
            connection.close()
            process.terminate()
        for process, _, _ in workers:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()


def _raised(message: bytes | None, text: str) -> BaseException:
    error: BaseException | None = None
    if message is not None:
        try:
            error = pickle.loads(message)
        except Exception:
            error = None
    if error is None:
        error = RuntimeError(text.strip().rsplit("\n", 1)[-1])
    note = f"in a worker process of stoker.DataLoader:\n{text}"
    error.add_note(note)
    return error
