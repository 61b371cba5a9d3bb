"""Batches made by threads of this process."""

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
    """`make` turns a batch's indices into the batch; `count` threads do that, at most `ahead` batches before the caller. Each
    calls `begin` with its number first."""

    def __init__(self, make: Make, count: int, ahead: int, begin: Callable[[int], None] | None = None) -> None:
        self._make, self._count, self._ahead, self._begin = make, count, ahead, begin

    def run(self, batches: Iterator[Any], timeout: float) -> Iterator[Any]:
        """The batches in order. An error of `make` comes as a Failure in its batch's place, one of `begin` is raised. The
        threads end with the iterator."""
        changed = threading.Condition()
        todo: deque[_Task] = deque()
        ordered: deque[_Task] = deque()
        failures: list[BaseException] = []  # to begin
        is_over = False

        def work(number: int) -> None:
            try:
                if self._begin is not None:
                    self._begin(number)
            except BaseException as error:  # raised where a batch is asked for
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
                except BaseException as error:  # raised where the batch is asked for
                    task.batch = Failure(error)
                with changed:
                    task.is_done = True
                    changed.notify_all()

        def has_come() -> bool:
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
                    if not changed.wait_for(has_come, timeout or None):
                        text = f"loader: no batch within {timeout:g} s (timeout): samples {errors.few(task.indices)}"
                        raise WaitTimeoutError(text)
                    if failures:
                        raise failures.pop()
                    ordered.popleft()
                    plan()
                # Not held here: the traceback of a Failure would keep the caller's frame, and that this iterator.
                yield task.take()
                if os.getpid() != pid:
                    raise errors.after_fork(pid, os.getpid())
        except (KeyboardInterrupt, WaitTimeoutError):
            threads.clear()  # what they are at may never end: nobody waits for it
            raise
        finally:
            if os.getpid() == pid:  # a fork's child has neither the threads nor a lock it could take
                with changed:
                    is_over = True
                    changed.notify_all()
                for thread in threads:
                    thread.join()
