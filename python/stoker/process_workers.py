"""Batches made by processes, for Python code that holds the interpreter's lock. Batches come back through memory that was
shared before the processes were forked: no file in /dev/shm, no descriptor per batch, and no page is touched twice.

A slot holds one batch. It is given to a worker with the batch's indices; the worker puts the batch's tensors into it and
sends the rest by a pipe; the tensors that the caller gets lie in the slot, which is free again when the last is gone. When
the caller holds so many batches that workers would lack slots, it gets copies."""

import io
import mmap
import multiprocessing
import multiprocessing.connection
import os
import pickle
import random
import signal
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import worker as torch_worker

from stoker import errors
from stoker.errors import StokerError, UnavailableError, WaitTimeoutError

_ALIGNMENT = 64
_NORESERVE = 0x4000  # MAP_NORESERVE: pages take memory when they are first written
# A batch's tensors beyond this are sent by the pipe instead. Only what is written takes memory.
_SLOT_BYTES = 1 << 30
_LEAST_SLOT_BYTES = 1 << 24


class _Slot:
    """One batch's tensors, one after the other."""

    def __init__(self) -> None:
        self.memory = _shared_memory(_SLOT_BYTES)
        self.array = numpy.frombuffer(self.memory, dtype=numpy.uint8)
        self.begin = self.array.ctypes.data
        self.used = 0

    def place(self, size: int) -> int | None:
        """The offset of so many fresh bytes, or None when they do not fit."""
        offset = -(-self.used // _ALIGNMENT) * _ALIGNMENT
        if offset + size > self.array.size:
            return None
        self.used = offset + size
        return offset

    def tensor(self, offset: int, shape: Any, dtype: torch.dtype, array: Any = None) -> torch.Tensor:
        size = dtype.itemsize
        for side in shape:
            size *= side
        raw = (self.array if array is None else array)[offset : offset + size]
        return torch.from_numpy(raw).view(dtype).view(shape)


def _shared_memory(size: int) -> mmap.mmap:
    """Less of it where address space is limited or overcommitting is forbidden."""
    while True:
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NORESERVE)
        except OSError:
            if size <= _LEAST_SLOT_BYTES:
                raise
            size //= 2


class _Lease(numpy.ndarray[Any, Any]):
    """A slot's memory while somebody holds tensors in it: numpy's views keep the object alive that they are taken from."""


class _Tensor:
    """Stands for a tensor in what is sent."""

    def __init__(self, offset: int, shape: tuple[int, ...], dtype: torch.dtype, is_numpy: bool) -> None:
        self.offset, self.shape, self.dtype, self.is_numpy = offset, shape, dtype, is_numpy


class _Packer(pickle.Pickler):
    """Pickles a batch with its dense tensors put into the slot."""

    def __init__(self, file: Any, slot: _Slot) -> None:
        super().__init__(file, protocol=5)
        self._slot = slot

    def persistent_id(self, value: Any) -> Any:
        is_numpy = type(value) is numpy.ndarray and value.dtype.kind in "biuf" and value.dtype.isnative
        if not is_numpy and not (type(value) is torch.Tensor and _is_dense(value)):
            return None
        tensor = torch.from_numpy(numpy.ascontiguousarray(value)) if is_numpy else value.detach().contiguous()
        size = tensor.numel() * tensor.dtype.itemsize
        if size == 0:
            return None
        offset = tensor.data_ptr() - self._slot.begin
        if not 0 <= offset < self._slot.array.size:  # else collated in place
            placed = self._slot.place(size)
            if placed is None:
                return None
            offset = placed
            self._slot.tensor(offset, tuple(tensor.shape), tensor.dtype).copy_(tensor)
        return _Tensor(offset, tuple(tensor.shape), tensor.dtype, is_numpy)


def _is_dense(value: torch.Tensor) -> bool:
    return value.device.type == "cpu" and value.layout == torch.strided and not value.is_quantized


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: Any, slot: _Slot, array: Any) -> None:
        super().__init__(file)
        self._slot, self._array = slot, array

    def persistent_load(self, value: _Tensor) -> Any:
        tensor = self._slot.tensor(value.offset, value.shape, value.dtype, self._array)
        if self._array is None:
            tensor = tensor.clone()
        return tensor.numpy() if value.is_numpy else tensor


def _stack_in(slot: _Slot) -> Callable[..., Any]:
    """torch's default_collate, with tensors stacked where they will be sent from."""

    def stack(batch: list[torch.Tensor], *, collate_fn_map: Any = None) -> torch.Tensor:
        first = batch[0]
        if _is_dense(first) and not any(t.requires_grad or t.dtype != first.dtype for t in batch):
            size = len(batch) * first.numel() * first.dtype.itemsize
            offset = slot.place(size) if size else None
            if offset is not None:
                out = slot.tensor(offset, (len(batch), *first.shape), first.dtype)
                return torch.stack(batch, 0, out=out)
        return torch.stack(batch, 0)

    mapping = dict(torch_collate.default_collate_fn_map) | {torch.Tensor: stack}
    return lambda samples: torch_collate.collate(samples, collate_fn_map=mapping)


def seed_all(seed: int) -> None:
    """Python's, numpy's and torch's global generators."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy.random.seed(seed % 2**32)


def _make(source: Any, slot: _Slot, indices: Any) -> bytes:
    slot.used = 0
    batch = source.make(indices, _stack_in(slot) if source.collates_by_default else None)
    file = io.BytesIO()
    _Packer(file, slot).dump(batch)
    return file.getvalue()


def _work(number: int, connection: Any, others: list[Any], source: Any, slots: list[_Slot], count: int) -> None:
    """A worker's life: batches until the pipe is closed."""
    for other in others:  # copies of the caller's ends: while one is open, the end of the caller is not noticed
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    torch_worker._worker_info = torch_worker.WorkerInfo(
        id=number, num_workers=count, seed=source.seed, dataset=source.dataset
    )
    if source.worker_init_fn is not None:
        seed_all(source.seed + number)
        source.worker_init_fn(number)
    try:
        while True:
            task = connection.recv()
            seed_all(task.seed)
            try:
                answer = _Answer(_make(source, slots[task.slot], task.indices))
            except BaseException as error:
                answer = _Answer(error=_portable(error))
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
    """A batch as _Packer made it, or the error there was instead."""

    def __init__(self, batch: bytes = b"", error: tuple[bytes | None, str] | None = None) -> None:
        self.batch, self.error = batch, error


class _Task:
    """What a worker is asked for."""

    def __init__(self, slot: int, indices: Any, seed: int) -> None:
        self.slot, self.indices, self.seed = slot, indices, seed

    def first(self) -> list[Any]:
        """Samples of the batch, to name it by; of one without batches its only one."""
        return list(self.indices)[:4] if hasattr(self.indices, "__iter__") else [self.indices]


class _Pending:
    """A batch that was asked for, in the caller."""

    def __init__(self, task: _Task) -> None:
        self.task = task
        self.answer: _Answer | None = None


class ProcessWorkers:
    """`source` has dataset, seed, collates_by_default, worker_init_fn, and make(indices, collate or None)."""

    def __init__(self, source: Any, count: int, ahead: int) -> None:
        self._source, self._count = source, count
        self._ahead = max(ahead, count)
        self._slots = [_Slot() for _ in range(self._ahead + count + 1)]
        # Without a lock: a slot comes back from wherever its last tensor dies, also from within a garbage collection.
        self._free = deque(range(len(self._slots)))
        self.pid = os.getpid()  # of the caller, whose these processes are
        self.is_running = False  # somebody iterates over run()
        self._context = multiprocessing.get_context("fork")
        self._workers: list[tuple[Any, Any, deque[_Pending]]] = []  # process, connection, what it was asked for

    def _start(self) -> None:
        if self._workers:
            return
        ends: list[Any] = []
        for number in range(self._count):
            ours, theirs = self._context.Pipe()
            ends.append(ours)
            arguments = (number, theirs, list(ends), self._source, self._slots, self._count)
            process = self._context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours, deque()))

    def run(self, batches: Iterator[Any], timeout: float, seed: int) -> Iterator[Any]:
        """The batches in order. An error of the dataset is raised in its batch's place."""
        self._start()
        self.is_running = True
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
            self.is_running = False
            if ordered:  # left early, or failed: what the workers are at belongs to no one
                self.close()
                self._free.extend(pending.task.slot for pending in ordered)

    def _plan(self, batches: Iterator[Any], ordered: deque[_Pending], seed: int, number: int) -> int:
        while len(ordered) < self._ahead:
            if not self._free:
                return number
            indices = next(batches, None)
            if indices is None:
                return number
            slot = self._free.popleft()
            pending = _Pending(_Task(slot, indices, (seed + 0x9E3779B97F4A7C15 * (number + 1)) % 2**63))
            process, connection, queue = min(self._workers, key=lambda worker: len(worker[2]))
            try:
                connection.send(pending.task)
            except OSError:
                raise self._died(process, pending) from None
            queue.append(pending)
            ordered.append(pending)
            number += 1
        return number

    def _receive(self, timeout: float, front: _Pending) -> None:
        busy: dict[Any, Any] = {worker[1]: worker for worker in self._workers if worker[2]}
        ready = multiprocessing.connection.wait(list(busy), timeout or None)
        if not ready:
            few = front.task.first()
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
        few = pending.task.first()
        text = f"loader: worker process {process.pid} ended ({how}) while it made the batch of samples {few}"
        if code == -signal.SIGKILL:
            text += "\n  try: fewer workers: the kernel kills processes when memory is short"
        return UnavailableError(text)

    def _open(self, pending: _Pending) -> Any:
        answer, slot = pending.answer, pending.task.slot
        assert answer is not None
        if answer.error is not None:
            self._free.append(slot)
            raise _raised(*answer.error)
        if not self._free:
            batch = _Unpacker(io.BytesIO(answer.batch), self._slots[slot], None).load()
            self._free.append(slot)
            return batch
        lease = self._slots[slot].array.view(_Lease)
        weakref.finalize(lease, self._free.append, slot).atexit = False
        return _Unpacker(io.BytesIO(answer.batch), self._slots[slot], lease).load()

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


def _raised(pickled: bytes | None, text: str) -> BaseException:
    error: BaseException | None = None
    if pickled is not None:
        try:
            error = pickle.loads(pickled)
        except Exception:
            error = None
    if error is None:
        error = RuntimeError(text.strip().rsplit("\n", 1)[-1])
    note = f"in a worker process of stoker.DataLoader:\n{text}"
    error.add_note(note)
    return error
