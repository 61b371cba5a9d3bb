"""stoker.Loader: batches of a dataset packed by `stoker data pack`."""

import atexit
import contextlib
import os
import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from stoker import _core, arguments, arrays, contents, options
from stoker.errors import InvalidError
from stoker.iteration import HostBatches, Iteration, Place

if TYPE_CHECKING:
    import torch

    from stoker.device_copy import CopiedBatches, CopyStream

Batch = dict[str, Any]
# Integers of state_dict, in the order of _core.Feed.
_PLACE = ("seed", "epoch", "position", "samples")
_MAX_LISTED = 1000  # skipped samples, as in _core.Feed
# Loaders with running threads. At interpreter exit they must stop before the libraries they use are unloaded.
_open_loaders: "weakref.WeakSet[Loader]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_open_loaders):
        loader.close()


class _Ended:
    """Statistics of a loader's ended threads."""

    def __init__(self) -> None:
        self.stats: dict[str, Any] = {}
        self.skipped: list[dict[str, Any]] = []
        self.batches_per_epoch = self.batches_left = 0

    def with_stats(self, feed: _core.Feed) -> dict[str, Any]:
        """The sum with the statistics of `feed`."""
        now: dict[str, Any] = feed.stats()
        stats = {
            name: value if name == "cache_bytes" else value + self.stats.get(name, 0) for name, value in now.items()
        }
        return stats | {"limit": feed.limiting_stage()}

    def add(self, feed: _core.Feed, batches_left: int) -> None:
        """Adds the statistics of `feed`; called before its threads end."""
        self.stats, self.skipped = self.with_stats(feed), (self.skipped + feed.skipped())[:_MAX_LISTED]
        self.batches_per_epoch, self.batches_left = feed.batches_per_epoch, batches_left


class Loader:
    """Iterates over one epoch of batches; each new iteration is the next epoch, in a new order.

    A batch is a dict: `image` (float32, N x 3 x H x W), `label` (int64) and `key` (a list of str), or the given `fields`.
    With `array`, `tokens` or transform=None it contains other data than images, with `columns` also values from the
    samples' JSON or CSV. Several paths form one dataset, mixed by `weights`. The arrays are torch tensors if torch has
    been imported, otherwise numpy arrays. They use the loader's memory, which is reused after the last of them is freed.
    With `device="cuda"` they are tensors on the GPU, and the next batch is copied there during the current one.

    The order of samples depends only on (seed, epoch), and the transform of a sample only on (seed, epoch, sample), not
    on threads, ranks or interruptions. `state_dict` is a few integers and their context. It can be loaded with a different
    `batch_size` or `world_size`.

    There are no worker processes. After a fork, create a new loader in the child. A pickled loader is reopened at the same
    position."""

    def __init__(
        self,
        path: options.Path | Sequence[options.Path],
        batch_size: int = 64,
        shuffle: "bool | Literal['full', 'by_shard', 'by_chunk']" = True,
        transform: "contents.Transform | None" = "imagenet-train",
        num_workers: int | Literal["auto"] = "auto",
        *,
        split: str | None = None,
        dtype: "Literal['float32', 'float16', 'bfloat16', 'uint8'] | Any" = "float32",
        channels_last: bool = False,
        mixup: float | None = 0.0,
        cutmix: float | None = 0.0,
        fields: Sequence[str] | None = None,
        tensors: arrays.Kind = "auto",
        component: str | None = None,
        array: "bool | tuple[Any, Sequence[int]]" = False,
        tokens: "int | Mapping[str, Any] | None" = None,
        columns: "Mapping[str, contents.Column] | None" = None,
        weights: Sequence[float] | None = None,
        window: int | None = None,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        remainder: Literal["pad", "drop", "exact"] = "pad",
        prefetch_factor: int | None = None,
        persistent_workers: bool = True,
        pin_memory: bool = False,
        non_blocking: bool = False,
        device: Any = None,
        timeout: float = 0,
        errors: Literal["raise", "skip"] = "raise",
        max_skipped: int = 1000,
        check: bool = True,
        cache: int = 0,
        chunk_cache: int = 256 << 20,
        resident: int | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        if (pin_memory or device is not None) and tensors not in ("auto", "torch"):
            raise InvalidError(f"loader: pin_memory and device need torch tensors (tensors='{tensors}')")
        self._options = options.from_arguments(given)
        self._device: torch.device | None = None
        self._stream: CopyStream | None = None  # for the device, if it has streams
        if device is not None:
            self._open_device(device)
        self.rank, self.world_size = self._options["rank"], self._options["world_size"]
        # Pickled with the loader: it keeps its rank in a different process.
        known = {"path": self._options["paths"], "rank": self.rank, "world_size": self.world_size}
        self._arguments = given | known
        self.batch_size, self.drop_last = self._options["batch_size"], self._options["drop_last"]
        self.num_workers, self.pin_memory = num_workers, pin_memory
        self._columns = list(columns or {})
        self._fields = contents.fields(fields, self._options["content"]["kind"], self._columns)
        self._tensors: arrays.Kind = tensors
        self._copied: CopiedBatches | None = None  # with a stream: the batches of the last iteration
        self._non_blocking = non_blocking
        self._timeout, self._persistent = self._options["timeout"], persistent_workers
        self._iteration = 0  # number of started iterators: each invalidates the previous one
        self._has_begun = False  # an iterator has started the current epoch and not finished it
        self._opened_at, self._first_batch_s = time.perf_counter(), 0.0
        self._ended = _Ended()
        self._reopen(None)
        if self._feed.small_cache and self.rank == 0:
            warnings.warn(f"{self._options['paths'][0]}: {self._feed.small_cache}", RuntimeWarning, stacklevel=2)

    def __iter__(self) -> Iterator[Batch]:
        """Batches of the current epoch from the current position on; after an unfinished epoch, batches of the next one.
        The epoch is determined at the first batch, because frameworks create iterators long before they use them."""
        return Iteration(self._batches(), self)

    def _batches(self) -> Iterator[Batch]:
        fields_of = self._fields_of()
        iteration = self._begin()
        source = self._source(fields_of)
        try:
            while True:
                if iteration != self._iteration:
                    raise RuntimeError("iterator is invalid: a newer iterator over the same stoker.Loader was started")
                if not source.advance(self._timeout):
                    self._has_begun = False
                    return
                if source.count == 0:
                    self._warn_empty_batch()
                if not self._first_batch_s:
                    self._first_batch_s = time.perf_counter() - self._opened_at
                yield source.take()
        finally:
            source.close()
            if not self._persistent and iteration == self._iteration:
                self.close()

    def _warn_empty_batch(self) -> None:
        # The mean of its losses is NaN, which would silently ruin the model.
        text = "empty batch: all of its samples are damaged; it keeps the number of steps equal on all ranks"
        warnings.warn(f"loader: {text} (errors='skip', rank {self.rank})", RuntimeWarning, stacklevel=4)

    def _begin(self) -> int:
        """Makes the caller the only valid iterator; returns its number."""
        self._opened()
        seed, epoch, _, samples = self._place().state
        if self._has_begun:
            self._restart((seed, epoch + 1, 0, samples))
        self._has_begun = True
        self._iteration += 1
        return self._iteration

    def _restart(self, state: tuple[int, int, int, int]) -> None:
        self._feed.restart(state)
        self._discard_copies()

    def _source(self, fields_of: Callable[[Any], Batch]) -> "HostBatches | CopiedBatches":
        if self._stream is None:
            return HostBatches(self._feed, fields_of)
        from stoker.device_copy import CopiedBatches

        self._copied = CopiedBatches(self._feed, self._stream, fields_of)
        return self._copied

    def _place(self) -> Place:
        """The position after the last returned batch; the feed may be one batch ahead of it."""
        return self._copied.place if self._copied else Place(self._feed.state, self._feed.batches_left)

    def _discard_copies(self) -> None:
        if self._copied is not None:
            self._copied.close()
            self._copied = None

    def _convert(self) -> arrays.Convert:
        """A function from the loader's arrays to the caller's, on the device if it has no streams."""
        if self._stream is not None:
            return arrays.converter("torch")
        if self._device is not None or self.pin_memory:
            return self._to_device(arrays.converter("torch"))
        return arrays.converter(self._tensors)

    def _convert_image(self, convert: arrays.Convert) -> arrays.Convert:
        """torch's tensors with channels last have the shape N x C x H x W."""
        needs_torch = self._device is not None or self.pin_memory
        is_torch = needs_torch or arrays.resolve(self._tensors) == "torch"
        if not self._options["channels_last"] or not is_torch:
            return convert
        return lambda array: convert(array).permute(0, 3, 1, 2)

    def _fields_of(self) -> Callable[[Any], Batch]:
        """A function from the C++ batch to the dict for the caller."""
        convert = self._convert()
        convert_image = self._convert_image(convert)
        rows = [(name, "image" if name in ("array", "tokens") else name) for name in self._fields]
        rows = [(name, attribute) for name, attribute in rows if name != "key" and name not in self._columns]
        columns = [(name, number) for number, name in enumerate(self._columns) if name in self._fields]
        has_key = "key" in self._fields

        def finish(batch: Any) -> Batch:
            made = {
                name: (convert_image if name == "image" else convert)(getattr(batch, attribute))
                for name, attribute in rows
            }
            for name, number in columns:
                column = batch.column(number)
                made[name] = column if isinstance(column, list) else convert(column)
            if has_key:
                made["key"] = batch.key
            return made

        return finish

    def _open_device(self, given: Any) -> None:
        from stoker import device_copy

        self._device = device_copy.resolve(given)
        self._stream = device_copy.copy_stream(self._device)
        self._options["page_locked"] = device_copy.page_locked(self._device)

    def _to_device(self, convert: arrays.Convert) -> arrays.Convert:
        # torch's pinned memory instead of the loader's: only torch knows when a copy from it has ended.
        device, non_blocking = self._device, self._non_blocking
        import torch

        pins = self.pin_memory and torch.cuda.is_available()

        def moved(array: Any) -> Any:
            tensor = convert(array)
            if pins:
                tensor = tensor.pin_memory()
            return tensor if device is None else tensor.to(device, non_blocking=non_blocking)

        return moved

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch; errors="skip" may drop some of them."""
        return self._feed.batches_per_epoch if self._feed.is_open else self._ended.batches_per_epoch

    @property
    def batches_left(self) -> int:
        """Remaining batches of this rank in the epoch of `state_dict`."""
        return self._place().batches_left if self._feed.is_open else self._ended.batches_left

    @property
    def samples(self) -> int:
        """Number of samples of the split, over all ranks."""
        return self._feed.samples

    @property
    def classes(self) -> list[str]:
        """Names of label 0, 1, ...; empty if labels have no names."""
        return self._feed.classes

    @property
    def epoch(self) -> int:
        """The epoch of `state_dict`."""
        return self._place().state[1] if self._feed.is_open else self._state[1]

    @property
    def sampler(self) -> "Loader":
        """For frameworks that call `loader.sampler.set_epoch`."""
        return self

    @property
    def batch_sampler(self) -> types.SimpleNamespace:
        """For frameworks that expect a batch sampler, or read `loader.batch_sampler.batch_size`."""
        return types.SimpleNamespace(sampler=self, batch_size=self.batch_size, drop_last=self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration. It starts at the beginning, or at the position of a just loaded state of the
        same epoch. Optional: each iteration proceeds to the next epoch by itself. A started iterator becomes invalid; an
        unstarted one uses this epoch."""
        epoch = arguments.integer("set_epoch", epoch)
        self._opened()
        seed, current, _, samples = self._place().state
        if epoch == current and not self._has_begun:
            return
        self._iteration += 1
        self._has_begun = False
        self._restart((seed, epoch, 0, samples))

    def state_dict(self) -> dict[str, Any]:
        """The position after the last returned batch: integers, with the order and the dataset version they refer to."""
        place = self._place().state if self._feed.is_open else self._state
        belongs_to = {"dataset": self._feed.version, "split": self._feed.split, "order": self._options["order"]}
        return dict(zip(_PLACE, place, strict=True)) | belongs_to

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues at the position of `state`, also with a different batch size or world size. The next iteration returns
        the rest of its epoch."""
        if not isinstance(state, Mapping):
            raise arguments.invalid_argument("the state to load", state, "not a dict")
        missing = [name for name in _PLACE if name not in state]
        if missing:
            raise InvalidError(f"loader: the state to load has no '{missing[0]}'")
        if state.get("dataset") not in (None, self._feed.version):
            theirs, ours = str(state["dataset"])[:8], self._feed.version[:8]
            raise InvalidError(f"loader: the state to load has dataset version {theirs}, but this dataset has {ours}")
        if state.get("split") not in (None, self._feed.split):
            theirs, ours = state["split"], self._feed.split
            raise InvalidError(f"loader: the state to load has split '{theirs}', but this loader has '{ours}'")
        if state.get("order") not in (None, self._options["order"]):
            theirs, ours = state["order"], self._options["order"]
            raise InvalidError(f"loader: the state to load has order {theirs}, but this loader has {ours}")
        seed = arguments.integer("the state to load: seed", state["seed"], most=2**64 - 1)
        epoch, position, samples = (arguments.integer(f"the state to load: {name}", state[name]) for name in _PLACE[1:])
        self._opened()
        self._restart((seed, epoch, position, samples))
        self._iteration += 1
        self._has_begun = False

    def plan(self) -> str:
        """Number of threads, prefetched batches and memory residence, each with its reason."""
        return "\n".join(self._feed.reasons)

    def stats(self) -> dict[str, Any]:
        """Totals since the creation of the loader: seconds per stage, summed over threads, and the limiting stage."""
        if not self._feed.is_open:
            return dict(self._ended.stats)
        return self._ended.with_stats(self._feed)

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """With errors="skip": the first 1000 skipped samples, as dicts of index, epoch, error."""
        now = self._feed.skipped() if self._feed.is_open else []
        return (self._ended.skipped + now)[:_MAX_LISTED]

    def close(self) -> None:
        """Ends the threads. Batches stay valid; a later iteration starts threads again."""
        if self._feed.is_open:
            self._stop_threads()

    def _stop_threads(self) -> None:
        if os.getpid() != self._pid:
            return  # after a fork: the threads belong to the parent
        self._state, batches_left = self._place()
        self._discard_copies()
        self._record_trial()
        self._ended.add(self._feed, batches_left)
        self._feed.close()
        _open_loaders.discard(self)

    def _record_trial(self) -> None:
        """In a job of `stoker run`: records this loader's performance for the table of `stoker data bench`."""
        folder, stats = os.environ.get("STOKER_ATTEMPT_DIR"), self._feed.stats()
        if not folder or not stats["batches"]:
            return
        from stoker import bench

        seconds = time.perf_counter() - self._opened_at - self._first_batch_s
        threads = self._feed.threads
        trial = {
            "jobid": os.environ.get("SLURM_JOB_ID") or os.environ.get("STOKER_RUN_ID") or "here",
            "dataset": self._feed.version[:8],
            "loader": "stoker.Loader",
            "batch": self.batch_size,
            "num_workers": threads,
            "pin_memory": self.pin_memory,
            "non_blocking": self._non_blocking,
            "prefetch_factor": max(1, self._feed.prefetch // threads),
            "persistent_workers": self._persistent,
            "drop_last": self.drop_last,
            "loading_time": f"{stats['wait_s'] / stats['batches']:.6f}",
            "1st_step_loading_time": f"{self._first_batch_s:.6f}",
            "cpu_memory": bench.memory_of_processes(),
            "samples_per_s": f"{stats['samples'] / max(1e-9, seconds):.1f}",
            "limit": self._feed.limiting_stage(),
        }
        with contextlib.suppress(OSError):  # a full disk must not fail a finished training
            bench.append(os.path.join(folder, f"loader-{self.rank:04}.csv"), trial)

    def _opened(self) -> _core.Feed:
        if not self._feed.is_open:
            self._reopen(self._state)
        return self._feed

    def _reopen(self, state: tuple[int, int, int, int] | None) -> None:
        self._feed, self._pid = _core.Feed(self._options, state), os.getpid()
        _open_loaders.add(self)

    def __del__(self) -> None:
        if hasattr(self, "_feed"):
            self.close()

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._arguments, self.state_dict())

    def __repr__(self) -> str:
        o = self._options
        rank = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        path = ", ".join(map(repr, o["paths"]))
        return f"stoker.Loader({path}, split {self._feed.split}, batch_size={self.batch_size}{rank})"


def _rebuild(arguments: dict[str, Any], state: dict[str, Any]) -> Loader:
    loader = Loader(**arguments)
    loader.load_state_dict(state)
    return loader
