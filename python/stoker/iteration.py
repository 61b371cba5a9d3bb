"""An iteration over stoker.Loader or stoker.DataLoader."""

from collections.abc import Callable, Iterator, Sized
from typing import Any, NamedTuple

from stoker import _core
from stoker.errors import CancelledError


class Place(NamedTuple):
    """The position of a feed after a batch."""

    state: tuple[int, int, int, int]
    batches_left: int


class HostBatches:
    """The batches of `feed`, each converted by `fields_of`."""

    def __init__(self, feed: _core.Feed, fields_of: Callable[[Any], dict[str, Any]]) -> None:
        self._feed, self._fields_of = feed, fields_of
        self._batch: _core.Batch | None = None
        self.count = 0

    @property
    def place(self) -> Place:
        """The position after the last returned batch."""
        return Place(self._feed.state, self._feed.batches_left)

    def advance(self, timeout: float) -> bool:
        """Waits for the next batch and sets `count`, its number of samples. False at the end of the epoch."""
        self._batch = self._feed.next(timeout)
        self.count = 0 if self._batch is None else len(self._batch)
        return self._batch is not None

    def take(self) -> dict[str, Any]:
        """The batch of advance(). Keeps no reference to it."""
        batch, self._batch = self._batch, None
        return self._fields_of(batch)

    def close(self) -> None:
        """Discards the batch of advance()."""
        self._batch = None


class Failure:
    """Placeholder for a failed batch, so that the iteration can continue with the next one."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Iteration:
    """Returns the batches of `made`, passed through `finish` if given. After a Failure the next call returns the next
    batch, as in torch. After an early end every call raises: StopIteration would look like the end of the epoch."""

    def __init__(self, made: Iterator[Any], loader: Sized, finish: Callable[[Any], Any] | None = None) -> None:
        self._made, self._loader, self._finish, self._ended_by = made, loader, finish, ""

    def __iter__(self) -> "Iteration":
        return self

    def __len__(self) -> int:
        """Number of batches of the whole iteration."""
        return len(self._loader)

    def __next__(self) -> Any:
        if self._ended_by:
            text = f"loader: this iteration ended early ({self._ended_by})"
            raise CancelledError(f"{text}\n  try: start a new iteration over the loader")
        try:
            made = next(self._made)
        except StopIteration:
            raise
        except BaseException as ending:
            self._ended_by = type(ending).__name__
            raise
        if not isinstance(made, Failure):
            return made if self._finish is None else self._finish(made)
        error = made.error
        try:
            if isinstance(error, StopIteration):  # it would end the epoch
                raise RuntimeError(f"loader: the dataset raised {error!r}") from error
            raise error
        finally:
            del self, made, error  # otherwise the traceback would keep the workers alive

    def close(self) -> None:
        """Ends the iteration and its workers."""
        if hasattr(self._made, "close"):
            self._made.close()
