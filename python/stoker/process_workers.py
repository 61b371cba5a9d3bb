"""Worker processes, for Python code that holds the GIL. Batches are returned in memory that was shared before the fork: no
file in /dev/shm, no descriptor per batch, and no page is touched twice.

A slot contains one batch. The caller writes the batch's indices to it; the worker replaces them with the batch's tensors and
sends the rest through a pipe. The caller's tensors are views into the slot, which is free again after the last of them is
freed. If the caller keeps too many batches and workers would run out of slots, it gets copies.

All messages of the caller fit into the pipe, so that caller and worker never wait for each other."""

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

# Maximum number of batches requested from one worker. A multiprocessing pipe on Linux has room for about 270 messages.
_MAX_PREFETCH = 64

# Held during a fork: the child must not inherit pipe ends that a second thread is about to close.
_forking = threading.Lock()


def _renew_lock() -> None:
    global _forking
    _forking = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def seed_all(seed: int) -> None:
    """Seeds the global generators of Python, numpy and torch."""
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
    """Initializes a worker process like torch does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller handles Ctrl-C and ends its workers
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
    # A worker can be terminated at any time; the dataset's output must not be lost.
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _work(number: int, connection: Any, others: list[Any], source: Any, slots: list[Slot], count: int) -> None:
    """Main function of a worker: makes batches until the pipe is closed."""
    for other in others:  # copies of the caller's pipe ends: an open one would hide the caller's exit
        other.close()
    failure: tuple[bytes | None, str] | None = None
    try:
        _begin(number, source, count)
    except BaseException as error:  # raised for the worker's first batch
        failure = _portable(error)
    try:
        while True:
            task = connection.recv()
            answer = _Answer(error=failure) if failure else _answer(source, slots, task)
            _flush()
            connection.send(answer)
    except (EOFError, OSError):
        pass
    os._exit(0)  # no cleanup of objects inherited from the caller


def _portable(error: BaseException) -> tuple[bytes | None, str]:
    text = "".join(traceback.format_exception(error))
    try:
        return pickle.dumps(error), text
    except Exception:
        return None, text


class _Answer:
    """A batch packed by Packer, or an error."""

    def __init__(self, batch: bytes = b"", error: tuple[bytes | None, str] | None = None) -> None:
        self.batch, self.error = batch, error


class _Task:
    """A request to a worker. The pickled indices are at the slot's beginning, or in the message if too large."""

    def __init__(self, slot: int, seed: int, size: int, indices: bytes | None) -> None:
        self.slot, self.seed, self.size, self.indices = slot, seed, size, indices


class _Pending:
    """A requested batch, in the caller."""

    def __init__(self, slot: int, indices: Any) -> None:
        self.slot, self.indices = slot, indices
        self.answer: _Answer | None = None


class ProcessWorkers:
    """`source` has dataset, seed, collates_by_default, worker_init_fn and make(indices, collate or None)."""

    def __init__(self, source: Any, count: int, ahead: int) -> None:
        self._source, self._count = source, count
        self._ahead = min(max(ahead, count), _MAX_PREFETCH * count)
        self._slots = [Slot() for _ in range(self._ahead + count + 1)]
        # Without a lock: a slot is returned wherever its last tensor is freed, even during garbage collection.
        self._free = deque(range(len(self._slots)))
        self.pid = os.getpid()  # of the caller, which owns these processes
        self._claimed = threading.Lock()  # held during an iteration over run()
        self._context = multiprocessing.get_context("fork")
        self._workers: list[tuple[Any, Any, deque[_Pending]]] = []  # process, connection, requested batches

    def claim(self) -> bool:
        """True if the caller may now iterate over run(), until it calls release()."""
        return self._claimed.acquire(blocking=False)

    def release(self) -> None:
        """Ends the claim of claim()."""
        self._claimed.release()

    def _start(self, seed: int) -> None:
        if not all(process.is_alive() for process, _, _ in self._workers):
            self.close()  # one was killed between iterations
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
        """The batches in order. An error of the dataset becomes a Failure in place of its batch."""
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
            if ordered:  # ended early or failed: the pending batches are not needed
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
            few = errors.sample_names(front.indices)
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
        few = errors.sample_names(pending.indices)
        text = f"loader: worker process {process.pid} ended ({how}) during the batch of samples {few}"
        if code == -signal.SIGKILL:
            text += "\n  try: fewer workers (the kernel kills processes when memory is short)"
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
        """Ends the processes; the next run starts new ones."""
        workers, self._workers = self._workers, []
        if os.getpid() != self.pid:
            return  # they belong to the parent
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
    errors.add_note(error, f"in a worker process of stoker.DataLoader:\n{text}")
    return error
