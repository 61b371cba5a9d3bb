"""stoker.DataLoader: torch's DataLoader over somebody's own map-style Dataset, with threads, or with processes where
threads do not help."""

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
    """Of a multiprocessing_context: None, a name, or what multiprocessing.get_context() returns."""
    start_method = getattr(context, "get_start_method", None)
    return context in (None, "fork") or (callable(start_method) and start_method() == "fork")


def cores() -> int:
    """What this process may use, shared among the ranks of the machine."""
    from stoker import _core

    return int(_core.advised_threads())


class _Source:
    """What workers need to make a batch, or with `is_batched` unset (batch_size=None) a sample by itself."""

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
        """The batch, or the Failure that there was."""
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
            error.add_note(f"in one of the samples {errors.few(indices)} of {type(self.dataset).__name__}")
            raise

    def _sample(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            error.add_note(f"in sample {index!r} of {type(self.dataset).__name__}")
            raise


class DataLoader:
    """`torch.utils.data.DataLoader` for a map-style dataset, with its arguments and their meaning, but:

    - `num_workers="auto"` (default) is the cores of this process; 0 makes batches in the caller, as there;
    - `worker_init_fn` is for processes; with `mode="threads"` each thread of an iteration calls it with its number;
    - `mode="auto"` (default) measures, on a few samples, whether threads run the dataset's code in parallel. Where it holds
      Python's lock, or keeps a file open, processes are forked instead. The choice is said once on standard error (`quiet=True`: not),
      and by `plan()`;
    - batches come back in memory that is shared once, not per batch;
    - with processes, Python's, numpy's and torch's random numbers are seeded for each batch, so that they do not depend on
      the number of processes.

    Batches come in the order of the sampler, which is torch's own. With `batch_size=None` samples come one by one, as there."""

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
                f"loader: {type(dataset).__name__} is no map-style dataset (it needs __getitem__ and __len__)"
            )
        workers = arguments.workers(num_workers)
        if not _is_fork(multiprocessing_context):
            raise InvalidError("loader: multiprocessing_context: batches come back in memory that only a fork shares")
        if worker_init_fn is not None and not callable(worker_init_fn):
            raise arguments.refusal("worker_init_fn", worker_init_fn, "no function")
        # torch's DataLoader knows how the arguments about sampling exclude each other, and makes the samplers.
        theirs = torch.utils.data.DataLoader(
            dataset, batch_size, shuffle, sampler, batch_sampler, 0, generator=generator, drop_last=drop_last
        )
        self.dataset, self.generator = dataset, generator
        self.batch_size, self.sampler = theirs.batch_size, theirs.sampler
        self.batch_sampler: Any = theirs.batch_sampler
        self.collate_fn, self.worker_init_fn = collate_fn or theirs.collate_fn, worker_init_fn
        self.drop_last, self.pin_memory, self.pin_memory_device = drop_last, pin_memory, pin_memory_device
        self.in_order = in_order  # batches come in order even where they need not
        self.timeout = arguments.seconds("timeout", timeout)
        self.num_workers = cores() if workers is None else workers
        ahead = _PREFETCH_FACTOR if prefetch_factor is None else prefetch_factor
        self.prefetch_factor = arguments.whole("prefetch_factor", ahead, 1)
        self.persistent_workers = persistent_workers
        self._source = _Source(dataset, collate_fn, worker_init_fn, self.batch_sampler is not None)
        self._mode, self._quiet = mode, quiet
        self._choice: gil.Choice | None = None
        self._processes: Any = None

    @property
    def _drawn(self) -> Any:
        """What gives the indices of each batch, or with batch_size=None that of each sample."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        count: int = len(self._drawn)
        return count

    def plan(self) -> str:
        """How batches are made, and why: "2 processes: 2 threads are 1.04 times as fast as one: ..."."""
        return str(self._chosen())

    def set_epoch(self, epoch: int) -> None:
        """Passed on to the sampler, where it has one: DistributedSampler."""
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    def _chosen(self) -> gil.Choice:
        if self._choice is None:
            self._choice = self._choose()
            is_worth_saying = self.num_workers > 1 or self._choice.mode == "processes"
            if not self._quiet and self._mode == "auto" and is_worth_saying:
                print(f"stoker.DataLoader: {self._choice}", file=sys.stderr)
        return self._choice

    def _choose(self) -> gil.Choice:
        if self.num_workers == 0:
            return gil.Choice("threads", 0, "num_workers=0")
        if self._mode == "auto" and self._source.worker_init_fn is not None:
            return gil.Choice("processes", self.num_workers, "worker_init_fn is called in each")
        if self._mode == "threads" or (self._mode == "auto" and self.num_workers == 1):
            return gil.Choice("threads", self.num_workers, "as asked")
        if self._mode == "processes":
            return gil.Choice("processes", self.num_workers, "as asked")
        return gil.choose(self.dataset, self.batch_size or 64, self.num_workers)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_processes": None}  # a copy has its own

    def __iter__(self) -> Iterator[Any]:
        choice = self._chosen()
        # As torch does: one draw per epoch, so that a seeded program stays the same.
        torch = sys.modules["torch"]
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self.generator).item())
        batches = iter(self._drawn)
        made: Iterator[Any]
        if choice.workers == 0:
            made = map(self._source.make_or_fail, batches)
        elif choice.mode == "threads":
            ahead = self.prefetch_factor * choice.workers
            source = self._source
            made = ThreadWorkers(source.make, choice.workers, ahead, source.worker_init_fn).run(batches, self.timeout)
        else:
            made = self._of_processes(choice.workers, batches, seed)
        return Iteration(made, self, self._pinned if self.pin_memory and torch.cuda.is_available() else None)

    def _of_processes(self, count: int, batches: Iterator[Any], seed: int) -> Iterator[Any]:
        from stoker.process_workers import ProcessWorkers

        # An iteration within another one, or in another thread, has processes of its own, as with torch.
        kept = self._processes
        if kept is not None and kept.pid != os.getpid():
            kept = None  # a fork's child shares neither its parent's processes nor their memory
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

    def _pinned(self, batch: Any) -> Any:
        from torch.utils.data._utils.pin_memory import pin_memory

        return pin_memory(batch, self.pin_memory_device or None)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Ends the worker processes; a later iteration starts others."""
        if self._processes is not None:
            self._processes.close()
