"""Worker threads of this process."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from stoker import errors
from stoker.errors import WaitTimeoutError
from stoker.iteration import Failure

Make = Callable[[Any], Any]


class _Task:
    __slots__ = ("batch", "indices", "is_done")

    def __init__(self, indices: Any) -> None:
        self.indices, self.is_done = indices, False
        self.batch: Any = None

    def take(self) -> Any:
        batch, self.batch = self.batch, None
        return batch


class ThreadWorkers:
    """`count` threads call `make` with the indices of batches, at most `ahead` batches before the caller. Each thread first
    calls `begin` with its number."""

    def __init__(self, make: Make, count: int, ahead: int, begin: Callable[[int], None] | None = None) -> None:
        self._make, self._count, self._ahead, self._begin = make, count, ahead, begin

    def run(self, batches: Iterator[Any], timeout: float) -> Iterator[Any]:
        """The batches in order. An error of `make` becomes a Failure in place of its batch; an error of `begin` is raised.
        The threads end with the iterator."""
        changed = threading.Condition()
        todo: deque[_Task] = deque()
        ordered: deque[_Task] = deque()
        failures: list[BaseException] = []  # of `begin`
        is_over = False

        def work(number: int) -> None:
            try:
                if self._begin is not None:
                    self._begin(number)
            except BaseException as error:  # raised for the next batch
                with changed:
                    failures.append(error)
                    changed.notify_all()
                return
            while True:
                with changed:
                    while not todo and not is_over:
                        changed.wait()
                    if is_over:
                        return
                    task = todo.popleft()
                try:
                    task.batch = self._make(task.indices)
                except BaseException as error:  # raised in place of the batch
                    task.batch = Failure(error)
                with changed:
                    task.is_done = True
                    changed.notify_all()

        def is_ready() -> bool:
            return ordered[0].is_done or bool(failures)

        def plan() -> None:
            with suppress(StopIteration):
                while len(ordered) < self._ahead:
                    task = _Task(next(batches))
                    ordered.append(task)
                    todo.append(task)
            changed.notify_all()

        pid = os.getpid()
        threads = [
            threading.Thread(target=work, args=(number,), name=f"stoker-{number}", daemon=True)
            for number in range(self._count)
        ]
        for thread in threads:
            thread.start()
        try:
            while True:
                with changed:
                    plan()
                    if not ordered:
                        return
                    task = ordered[0]
                    if not changed.wait_for(is_ready, timeout or None):
                        text = f"loader: no batch within {timeout:g} s (timeout): samples {errors.sample_names(task.indices)}"
                        raise WaitTimeoutError(text)
                    if failures:
                        raise failures.pop()
                    ordered.popleft()
                    plan()
                # Not referenced here: a Failure's traceback would keep the caller's frame and this iterator alive.
                yield task.take()
                if os.getpid() != pid:
                    raise errors.after_fork(pid, os.getpid())
        except (KeyboardInterrupt, WaitTimeoutError):
            threads.clear()  # their work may never end: do not wait for it
            raise
        finally:
            if os.getpid() == pid:  # a forked child has neither the threads nor a usable lock
                with changed:
                    is_over = True
                    changed.notify_all()
                for thread in threads:
                    thread.join()
