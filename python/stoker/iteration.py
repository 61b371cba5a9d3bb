"""An iteration over stoker.Loader or stoker.DataLoader."""

from collections.abc import Callable, Iterator, Sized
from typing import Any

from stoker.errors import CancelledError


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
