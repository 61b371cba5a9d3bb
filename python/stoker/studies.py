"""stoker.study: a search over parameters by any number of processes. C++ proposes the points and keeps the trials in files."""

import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from stoker import _core
from stoker.errors import InvalidError


class Trial:
    """A point of a study that runs: its number, and its parameters by name.

    As a context, an exception ends the trial as failed, and leaving it without a result is an error."""

    def __init__(self, study: "Study", asked: tuple[int, int, str]):
        self._study = study
        self.number, self.attempt, values = asked
        self.params: dict[str, Any] = json.loads(values)
        self.state = "running"

    def report(self, value: float, step: int) -> bool:
        """Records the objective at a step, and returns whether the study's pruner stops the trial: then call prune()."""
        return self._study._core.report(self.number, int(step), float(value))

    def tell(self, *values: float) -> None:
        """Ends the trial with a value for each objective. A value that is not finite makes it a failed one."""
        self.state = self._study._core.tell(self.number, "complete", [float(value) for value in values], "")

    def prune(self) -> None:
        """Ends the trial as stopped early."""
        self.state = self._study._core.tell(self.number, "pruned", [], "")

    def fail(self, message: str = "") -> None:
        """Ends the trial without a result."""
        self.state = self._study._core.tell(self.number, "failed", [], message)

    def __enter__(self) -> "Trial":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.state != "running":
            return
        if kind is not None:
            self.fail(traceback.format_exception_only(kind, error)[-1].strip())
            return
        self.fail("no result")
        raise InvalidError(f"trial {self.number}: no result\n  try: trial.tell(loss)")

    def __repr__(self) -> str:
        return f"<Trial {self.number}: {self.state}, {self.params}>"


class Study:
    """See stoker.study. Thread-safe; usable after a fork."""

    def __init__(self, core: _core.Study):
        self._core = core
        self.folder = Path(core.folder)
        for note in core.notes:
            print(f"stoker.study: {note}", file=sys.stderr)

    def ask(self) -> Trial | None:
        """Starts a trial, or None when none is left."""
        asked = self._core.ask()
        return None if asked is None else Trial(self, asked)

    def retry(self, number: int) -> Trial:
        """Starts a failed trial again, with its parameters and its number."""
        return Trial(self, self._core.retry(number))

    def __iter__(self) -> Iterator[Trial]:
        """Trials until none is left."""
        while (trial := self.ask()) is not None:
            yield trial

    @property
    def trials(self) -> list[dict[str, Any]]:
        """All trials, the best first, with the fields of `stoker sweep show --json`."""
        found: list[dict[str, Any]] = json.loads(self._core.trials())
        return found

    @property
    def best(self) -> list[dict[str, Any]]:
        """The complete trials, the best first; with several objectives only the Pareto front."""
        found: list[dict[str, Any]] = json.loads(self._core.best())
        return found


def study(path: str | Path, *, space: Mapping[str, Any] | None = None, **keys: Any) -> Study:
    """Opens the study of a sweep file or of a folder: stoker.study("lr.yaml").

    With `space`, the definition is in Python, and `path` is the study's folder: stoker.study("lr.study",
    space={"lr": {"min": 1e-4, "max": 1, "log": True}}, objectives={"loss": "minimize"}). Other keywords are keys of the
    sweep file (docs/sweep-file.md). The study is created if it does not exist."""
    if space is None:
        if keys:
            raise InvalidError(f"stoker.study: {next(iter(keys))} without space (the definition is in {path})")
        return Study(_core.Study(str(path), None, None))
    folder = Path(path)
    definition = {"name": folder.stem, **keys, "space": space}
    try:
        text = json.dumps(definition, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidError(f"stoker.study: {error}") from error
    return Study(_core.Study(str(folder), str(folder), text))


def _plain(value: Any) -> Any:
    """numpy's numbers, and tuples of other kinds."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Sequence | range):
        return list(value)
    raise TypeError(f"{value!r} is no value of a sweep file")
