"""Agreement of the ranks that load a checkpoint: rank 0 collects a vote of each rank and publishes one verdict.

Every rank sends its vote under a name that all ranks can compute: <load>.<round>.<rank>, and rank 0 the verdict as
<load>.<round>.verdict. <load> counts the loads of this process under the name that the ranks share, so every rank of that name
has to call load() equally often. Votes travel through the key-value store of torch.distributed, which is no collective, or
through files where ranks have no store. A rank that does not vote in time ends the load on all ranks with the same error. A
verdict repeats the marks of the votes that it counts, so that files of an earlier attempt with the same name are never taken
for an answer."""

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from stoker.checkpoint_world import attempt_folder, attempt_name, store_of_torch
from stoker.errors import InvalidError, StokerError, UnavailableError, code_of, make

Vote = dict[str, Any]
Merge = Callable[[list[Vote]], Vote]
Value = TypeVar("Value")
# Rank 0 may host the store or remove the files: it stays until its peers have read the last verdict.
_PARTING_S = 10.0
_PAUSES_S = (0.001, 0.1)
_counts: dict[tuple[int, str], int] = {}  # by process and shared name


class Board(Protocol):
    """Where ranks publish texts by name."""

    def put(self, name: str, text: str) -> None: ...
    def get(self, name: str) -> str | None: ...
    def close(self) -> None: ...


class _Store:
    """The key-value store of torch.distributed."""

    def __init__(self, store: Any, name: str) -> None:
        self._store, self._name = store, name

    def put(self, name: str, text: str) -> None:
        self._store.set(f"stoker/checkpoint/{self._name}.{name}", text)

    def get(self, name: str) -> str | None:
        key = f"stoker/checkpoint/{self._name}.{name}"
        return self._store.get(key).decode() if self._store.check([key]) else None

    def close(self) -> None:
        pass


class _Files:
    """A folder that all ranks can write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidError(
                f"checkpoint: the ranks cannot agree on a step, because they cannot write to {folder.parent} "
                f"({error.strerror})\n  try: torch.distributed.init_process_group() before load()"
            ) from None

    def put(self, name: str, text: str) -> None:
        part = self._folder / f"{name}.{os.getpid()}.part"
        part.write_text(text, encoding="utf-8")
        part.rename(self._folder / name)

    def get(self, name: str) -> str | None:
        # A client of a network filesystem asks the server again when the folder is opened.
        with contextlib.suppress(OSError):
            os.close(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY))
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class Peers:
    """The ranks of one load. A process that loads alone decides without any communication."""

    def __init__(self, rank: int, size: int, board: Board | None, timeout: float, call: str = "load()") -> None:
        self.rank, self.size = rank, size if board is not None else 1
        self._board, self._timeout, self._call = board, timeout, call
        self._round = 0

    def agree(self, work: Callable[[], tuple[Value, Vote]], merge: Merge) -> tuple[Value | None, Vote]:
        """Runs `work` on every rank and merges the votes on rank 0. Returns the value of this rank's work, and the verdict.
        An error of `work` is a vote {"code", "text"}; a verdict with "code" is raised on all ranks."""
        value: Value | None = None
        failure: Exception | None = None
        try:
            value, vote = work()
        except StokerError as error:
            failure, vote = error, {"code": code_of(error), "text": str(error)}
        except Exception as error:
            failure, vote = error, {"code": "internal", "text": f"{type(error).__name__}: {error}"}
        except BaseException:
            self._leave({"code": "cancelled", "text": f"checkpoint: rank {self.rank} was interrupted"})
            raise
        verdict = merge([vote]) if self._board is None else self._decide(vote, merge)
        if "code" not in verdict:
            return value, verdict
        self.part()
        if failure is not None and (self.size == 1 or code_of_vote(vote) == "internal"):
            raise failure
        raise make(str(verdict["code"]), str(verdict["text"]))

    def part(self) -> None:
        """Ends the agreement: rank 0 waits a moment until its peers have read the last verdict."""
        if self._board is None:
            return
        board, self._board = self._board, None
        with contextlib.suppress(Exception):
            if self.rank != 0:
                board.put(f"end.{self.rank}", "")
                return
            waiting = [f"end.{rank}" for rank in range(1, self.size)]
            self._poll(lambda: all(board.get(name) is not None for name in waiting), min(_PARTING_S, self._timeout))
            board.close()

    def _leave(self, vote: Vote) -> None:
        if self._board is not None:
            name = "verdict" if self.rank == 0 else str(self.rank)
            with contextlib.suppress(Exception):
                self._board.put(f"{self._round}.{name}", json.dumps(vote))

    def _decide(self, vote: Vote, merge: Merge) -> Vote:
        number, self._round = self._round, self._round + 1
        try:
            return self._collect(number, vote, merge) if self.rank == 0 else self._send(number, vote)
        except StokerError:
            raise
        except Exception as error:  # of the store: rank 0 has ended
            why = str(error).strip().partition("\n")[0]
            raise UnavailableError(f"checkpoint: the ranks cannot agree on a step: {why}") from None
        except BaseException:  # while waiting: the peers must not wait for this rank
            if self.rank == 0:
                self._round = number
            self._leave({"code": "cancelled", "text": f"checkpoint: rank {self.rank} was interrupted"})
            raise

    def _send(self, number: int, vote: Vote) -> Vote:
        board = self._board
        assert board is not None
        mark = secrets.token_hex(8)
        board.put(f"{number}.{self.rank}", json.dumps(vote | {"mark": mark}))

        def verdict() -> Vote | None:
            text = board.get(f"{number}.verdict")
            found: Vote = json.loads(text) if text is not None else {}
            return found if "code" in found or mark in found.get("marks", []) else None

        # Longer than rank 0 waits for its peers: its verdict then names the missing rank.
        found = self._poll(verdict, 2 * self._timeout + _PARTING_S) or self._missing([0], number)
        return {key: value for key, value in found.items() if key != "marks"}  # the same as on rank 0

    def _collect(self, number: int, vote: Vote, merge: Merge) -> Vote:
        board = self._board
        assert board is not None
        votes: dict[int, Vote] = {0: vote}

        def all_votes() -> bool:
            for rank in range(1, self.size):
                text = None if rank in votes else board.get(f"{number}.{rank}")
                if text is not None:
                    votes[rank] = json.loads(text)
            return len(votes) == self.size

        if self._poll(all_votes, self._timeout):
            verdict = merge([votes[rank] for rank in range(self.size)])
        else:
            verdict = self._missing([rank for rank in range(self.size) if rank not in votes], number)
        marks = [vote.get("mark") for vote in votes.values()]
        board.put(f"{number}.verdict", json.dumps(verdict | {"marks": marks}))
        return verdict

    def _missing(self, ranks: list[int], number: int) -> Vote:
        names = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks[:8]))}"
        names += f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
        what = f"did not call {self._call}" if number == 0 else f"did not finish {self._call}"
        cure = f"call {self._call} on every rank, or on one rank with rank=0, world_size=1"
        return {"code": "timeout", "text": f"checkpoint: {names} {what} within {self._timeout:g} s\n  try: {cure}"}

    @staticmethod
    def _poll(find: Callable[[], Any], timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        pause, longest = _PAUSES_S
        while not (found := find()) and time.monotonic() < deadline:
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(2 * pause, longest)
        return found


def code_of_vote(vote: Vote) -> str:
    return str(vote.get("code", ""))


def error_of(votes: list[Vote]) -> Vote | None:
    """The error of the first rank that has one; the rank is named unless all ranks report the same."""
    failed = [(rank, vote) for rank, vote in enumerate(votes) if "code" in vote]
    if not failed:
        return None
    rank, first = failed[0]
    is_common = len(failed) == len(votes) and all(vote["text"] == first["text"] for _, vote in failed)
    text = first["text"] if is_common else f"rank {rank}: {first['text']}"
    return {"code": first["code"], "text": text}


def peers(
    rank: int,
    size: int,
    folder: Path,
    *,
    is_given: bool,
    writer: str | None,
    timeout: float,
    call: str = "load()",
) -> Peers:
    """The peers of a load from `folder`. `is_given`: the caller passed rank and world size, so without a name that the ranks
    share it loads alone."""
    if size == 1:
        return Peers(rank, size, None, timeout)
    store = store_of_torch(rank, size) if writer is None else None
    if store is not None:
        return Peers(rank, size, _Store(store, f"load-{_count('')}"), timeout, call)
    name = writer or attempt_name()
    if name is None and is_given:
        return Peers(rank, size, None, timeout)
    if name is None:
        raise InvalidError(
            "checkpoint: the ranks have no way to agree on a step\n"
            f"  try: torch.distributed.init_process_group() before {call}, writer=... with a value shared by all ranks and "
            "unique per attempt, or rank=0, world_size=1 in a process that loads alone"
        )
    at = (attempt_folder() if writer is None else None) or folder
    return Peers(rank, size, _Files(at / f".load-{name}.{_count(name)}"), timeout, call)


def _count(name: str) -> int:
    key = (os.getpid(), name)
    number = _counts.get(key, 0)
    _counts[key] = number + 1
    return number
