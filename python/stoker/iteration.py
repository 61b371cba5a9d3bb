"""An iteration over stoker.Loader or stoker.DataLoader."""

from collections.abc import Callable, Iterator, Sized
from typing import Any

from stoker.errors import CancelledError


class Failure:
    """Stands for a batch that could not be made, where going on with the next one must be possible."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Iteration:
    """Gives what is made, by way of `finish` if there is one. After a Failure it goes on with the next batch, as torch's
    does. What ends it early is said again: an end without a word would be that of the epoch."""

    def __init__(self, made: Iterator[Any], loader: Sized, finish: Callable[[Any], Any] | None = None) -> None:
        self._made, self._loader, self._finish, self._ended_by = made, loader, finish, ""

    def __iter__(self) -> "Iteration":
        return self

    def __len__(self) -> int:
        """Batches of the whole iteration."""
        return len(self._loader)

    def __next__(self) -> Any:
        if self._ended_by:
            said = f"loader: this iteration has ended early ({self._ended_by})"
            raise CancelledError(f"{said}\n  try: iterate over the loader anew")
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
            if isinstance(error, StopIteration):  # which would end the epoch
                raise RuntimeError(f"loader: the dataset raised {error!r}") from error
            raise error
        finally:
            del self, made, error  # else the error's traceback would keep the workers

    def close(self) -> None:
        """Ends the iteration and what works for it."""
        if hasattr(self._made, "close"):
            self._made.close()
