"""stoker.DataLoader: a replacement for torch's DataLoader over a map-style Dataset, with threads, or with processes where
threads are not faster."""

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal

from stoker import arguments, errors, gil
from stoker.errors import InvalidError
from stoker.iteration import Failure, Iteration
from stoker.thread_workers import ThreadWorkers

_MODES = ("auto", "threads", "processes")
_PREFETCH_FACTOR = 2  # torch's


def _is_fork(context: Any) -> bool:
    """`context`: None, a name, or a context of multiprocessing.get_context()."""
    start_method = getattr(context, "get_start_method", None)
    return context in (None, "fork") or (callable(start_method) and start_method() == "fork")


def cores() -> int:
    """Number of cores for this process, when divided among the ranks of the machine."""
    from stoker import _core

    return int(_core.advised_threads())


class _Source:
    """Makes batches in workers, or single samples with `is_batched` unset (batch_size=None)."""

    def __init__(
        self, dataset: Any, collate_fn: Callable[[Any], Any] | None, worker_init_fn: Any, is_batched: bool
    ) -> None:
        self.dataset, self.worker_init_fn = dataset, worker_init_fn
        data = sys.modules["torch"].utils.data
        self.collates_by_default = collate_fn in (None, data.default_collate) and is_batched
        self._collate = collate_fn or (data.default_collate if is_batched else data.default_convert)
        self._is_batched = is_batched
        self.seed = 0

    def make(self, indices: Any, collate: Callable[[Any], Any] | None = None) -> Any:
        if not self._is_batched:
            return self._collate(self._sample(indices))
        return (collate or self._collate)(self._samples(indices))

    def make_or_fail(self, indices: Any) -> Any:
        """The batch, or a Failure."""
        try:
            return self.make(indices)
        except Exception as error:
            return Failure(error)

    def _samples(self, indices: Any) -> Any:
        get = getattr(self.dataset, "__getitems__", None)
        if get is None:
            return [self._sample(index) for index in indices]
        try:
            return get(indices)
        except Exception as error:
            names = errors.sample_names(indices)
            errors.add_note(error, f"in one of the samples {names} of {type(self.dataset).__name__}")
            raise

    def _sample(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            errors.add_note(error, f"in sample {index!r} of {type(self.dataset).__name__}")
            raise


class DataLoader:
    """`torch.utils.data.DataLoader` for a map-style dataset, with the same arguments, except:

    - `num_workers="auto"` (default) uses the cores of this process; 0 loads in the caller, as in torch
    - `worker_init_fn` is meant for processes; with `mode="threads"` each thread of an iteration calls it with its number
    - `mode="auto"` (default) measures on a few samples whether threads run the dataset's code in parallel. If the code
      holds the GIL or keeps a file open, processes are forked instead. The choice is printed once to standard error
      (unless `quiet=True`) and returned by `plan()`
    - processes return batches in memory that is shared once, not per batch
    - with processes, Python's, numpy's and torch's random generators are seeded for each batch, so that random numbers do
      not depend on the number of processes

    Batches have the order of the sampler, which is torch's. With `batch_size=None` samples are returned one by one."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int | Literal["auto"] = "auto",
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = True,
        pin_memory_device: str = "",
        in_order: bool = True,
        mode: Literal["auto", "threads", "processes"] = "auto",
        quiet: bool = False,
    ) -> None:
        import torch.utils.data

        if mode not in _MODES:
            raise InvalidError(f"loader: mode: unknown value '{mode}' (one of: {', '.join(_MODES)})")
        if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise InvalidError(
                f"loader: {type(dataset).__name__} is not a map-style dataset (it needs __getitem__ and __len__)"
            )
        workers = arguments.workers(num_workers)
        if not _is_fork(multiprocessing_context):
            raise InvalidError(
                "loader: multiprocessing_context: only 'fork' is supported: workers share memory with the caller"
            )
        if worker_init_fn is not None and not callable(worker_init_fn):
            raise arguments.invalid_argument("worker_init_fn", worker_init_fn, "not a function")
        # torch's DataLoader checks the sampling arguments and creates the samplers.
        torch_loader = torch.utils.data.DataLoader(
            dataset, batch_size, shuffle, sampler, batch_sampler, 0, generator=generator, drop_last=drop_last
        )
        self.dataset, self.generator = dataset, generator
        self.batch_size, self.sampler = torch_loader.batch_size, torch_loader.sampler
        self.batch_sampler: Any = torch_loader.batch_sampler
        self.collate_fn, self.worker_init_fn = collate_fn or torch_loader.collate_fn, worker_init_fn
        self.drop_last, self.pin_memory, self.pin_memory_device = drop_last, pin_memory, pin_memory_device
        self.in_order = in_order  # no effect: batches are always in order
        self.timeout = arguments.seconds("timeout", timeout)
        self.num_workers = cores() if workers is None else workers
        ahead = _PREFETCH_FACTOR if prefetch_factor is None else prefetch_factor
        self.prefetch_factor = arguments.integer("prefetch_factor", ahead, 1)
        self.persistent_workers = persistent_workers
        self._source = _Source(dataset, collate_fn, worker_init_fn, self.batch_sampler is not None)
        self._mode, self._quiet = mode, quiet
        self._choice: gil.Choice | None = None
        self._processes: Any = None

    @property
    def _index_source(self) -> Any:
        """The sampler of batch indices, or of sample indices with batch_size=None."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        count: int = len(self._index_source)
        return count

    def plan(self) -> str:
        """The kind of workers, with the reason: "2 processes: 2 threads are 1.04 times as fast as one: ..."."""
        return str(self._get_choice())

    def set_epoch(self, epoch: int) -> None:
        """Calls the sampler's set_epoch() if it has one, such as DistributedSampler."""
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    def _get_choice(self) -> gil.Choice:
        if self._choice is None:
            self._choice = self._choose()
            is_relevant = self.num_workers > 1 or self._choice.mode == "processes"
            if not self._quiet and self._mode == "auto" and is_relevant:
                print(f"stoker.DataLoader: {self._choice}", file=sys.stderr)
        return self._choice

    def _choose(self) -> gil.Choice:
        if self.num_workers == 0:
            return gil.Choice("threads", 0, "num_workers=0")
        if self._mode == "auto" and self._source.worker_init_fn is not None:
            return gil.Choice("processes", self.num_workers, "worker_init_fn is set")
        if self._mode == "threads" or (self._mode == "auto" and self.num_workers == 1):
            return gil.Choice("threads", self.num_workers, "as requested")
        if self._mode == "processes":
            return gil.Choice("processes", self.num_workers, "as requested")
        return gil.choose(self.dataset, self.batch_size or 64, self.num_workers)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_processes": None}  # a copy starts new processes

    def __iter__(self) -> Iterator[Any]:
        choice = self._get_choice()
        # One draw per epoch, as in torch, so that seeded programs stay reproducible.
        torch = sys.modules["torch"]
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self.generator).item())
        batches = iter(self._index_source)
        made: Iterator[Any]
        if choice.workers == 0:
            made = map(self._source.make_or_fail, batches)
        elif choice.mode == "threads":
            ahead = self.prefetch_factor * choice.workers
            source = self._source
            made = ThreadWorkers(source.make, choice.workers, ahead, source.worker_init_fn).run(batches, self.timeout)
        else:
            made = self._iterate_processes(choice.workers, batches, seed)
        return Iteration(made, self, self._pin if self.pin_memory and torch.cuda.is_available() else None)

    def _iterate_processes(self, count: int, batches: Iterator[Any], seed: int) -> Iterator[Any]:
        from stoker.process_workers import ProcessWorkers

        # A nested iteration, or one in a second thread, gets separate processes, as in torch.
        kept = self._processes
        if kept is not None and kept.pid != os.getpid():
            kept = None  # after a fork: the processes and their memory belong to the parent
        workers = kept
        if workers is None or not workers.claim():
            workers = ProcessWorkers(self._source, count, self.prefetch_factor * count)
            workers.claim()
        if kept is None:
            weakref.finalize(self, workers.close)
            self._processes = workers
        try:
            yield from workers.run(batches, self.timeout, seed)
        finally:
            workers.release()
            if workers is not self._processes or not self.persistent_workers:
                workers.close()

    def _pin(self, batch: Any) -> Any:
        from torch.utils.data._utils.pin_memory import pin_memory

        return pin_memory(batch, self.pin_memory_device or None)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Ends the worker processes; a later iteration starts new ones."""
        if self._processes is not None:
            self._processes.close()
