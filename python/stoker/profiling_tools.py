"""The steps that `stoker profile --tool` selects: a trace of torch.profiler, or the range that nsys and ncu record."""

import os
import re
import sys
from pathlib import Path
from typing import Any, Protocol


class Tool(Protocol):
    """Of the first profile of a process."""

    def before(self, step: int) -> None: ...
    def after(self, step: int) -> None: ...
    def close(self) -> None: ...


_is_used = False


def open_tool(folder: Path, rank: int) -> Tool | None:
    """What STOKER_PROFILE_TOOL and STOKER_PROFILE_STEPS request; None without them and in later profiles."""
    global _is_used
    name = os.environ.get("STOKER_PROFILE_TOOL")
    steps = re.fullmatch(r"(\d+)\.\.(\d+)", os.environ.get("STOKER_PROFILE_STEPS", "10..20"))
    if name not in ("torch", "nsys", "ncu") or _is_used or steps is None:
        return None
    _is_used = True
    first, last = max(1, int(steps[1])), int(steps[2])
    if name == "torch":
        return TorchTrace(first, last, folder / f"torch-{rank:04}.json.gz")
    return CudaRange(first, last) if "STOKER_PROFILE_STEPS" in os.environ else None


class TorchTrace:
    """A trace of the steps, with one step before them to warm up."""

    def __init__(self, first: int, last: int, path: Path) -> None:
        from torch.profiler import profile, schedule

        self._path = path
        warm_up = 1 if first > 1 else 0
        plan = schedule(wait=first - 1 - warm_up, warmup=warm_up, active=max(1, last - first + 1), repeat=1)
        self._profiler: Any = profile(schedule=plan, on_trace_ready=self._write, record_shapes=True)
        self._is_open = False

    def before(self, step: int) -> None:
        if not self._is_open and self._profiler is not None:
            self._profiler.start()
            self._is_open = True

    def after(self, step: int) -> None:
        if self._is_open:
            self._profiler.step()

    def close(self) -> None:
        if self._is_open:
            self._profiler.stop()
        self._is_open, self._profiler = False, None

    def _write(self, profiler: Any) -> None:
        try:
            profiler.export_chrome_trace(str(self._path))
        except (OSError, RuntimeError) as error:
            print(f"stoker.profile: {self._path}: {error}; there is no trace", file=sys.stderr)


class CudaRange:
    """Starts and stops the tool around the process through CUDA's profiler interface."""

    def __init__(self, first: int, last: int) -> None:
        self._first = first
        self._last = last
        self._is_on = False

    def before(self, step: int) -> None:
        if step == self._first:
            self._switch(True)

    def after(self, step: int) -> None:
        if step == self._last:
            self._switch(False)

    def close(self) -> None:
        self._switch(False)

    def _switch(self, is_on: bool) -> None:
        torch = sys.modules.get("torch")
        if self._is_on == is_on or torch is None or not torch.cuda.is_available():
            return
        self._is_on = is_on
        torch.cuda.synchronize()
        torch.cuda.profiler.start() if is_on else torch.cuda.profiler.stop()
