"""Sends a function with its arguments to a remote process, and returns the result.

A call is one file: a header, then the pickled function with its arguments. Each rank answers with one file, written atomically
by a rename. A task of an array answers with a line of its record if the answer is small. `python -m stoker.call FILE` runs the
call as a rank or task.

Objects pickled by name are imported in the remote process: modules with the same sys.path, functions of a script by running
the script as "__mp_main__", like multiprocessing. If cloudpickle is installed, it sends these and lambdas by value."""

import base64
import importlib.util
import io
import json
import os
import pickle
import runpy
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoker.errors import InvalidError, NotFoundError, StokerError

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_VERSION = 1
_VALUE, _ERROR = b"v", b"e"  # first byte of an answer
_INSIDE = "STOKER_IN_CALL"
_MAIN = "__mp_main__"
# Delay until a shared filesystem shows a rename on a different node.
_TIMEOUT_S = 10.0
# Larger answers of a task get a separate file.
_LARGE = 64 * 1024


class RemoteError(StokerError, RuntimeError):
    """A remote exception that cannot be unpickled here; the message contains its type."""


class _TracebackError(Exception):
    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def is_inside() -> bool:
    """Whether this process is importing a script for a call."""
    return bool(os.environ.get(_INSIDE))


def _sends_by_value() -> bool:
    return importlib.util.find_spec("cloudpickle") is not None


def dump(what: Any) -> bytes:
    """Pickles an object, with cloudpickle if installed."""
    if _sends_by_value():
        import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return bytes(cloudpickle.dumps(what))
    return pickle.dumps(what, protocol=pickle.HIGHEST_PROTOCOL)


def write_call(file: Path, function: Callable[..., Any], arguments: list[Arguments]) -> None:
    """Writes a function with the arguments of one or more calls. InvalidError if it cannot be pickled."""
    name = getattr(function, "__qualname__", repr(function))
    main = sys.modules.get("__main__")
    header: dict[str, Any] = {"version": _VERSION, "path": list(sys.path), "by_value": _sends_by_value()}
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        header["main_module"] = spec.name
    elif main is not None and getattr(main, "__file__", None):
        header["main_file"] = os.path.abspath(main.__file__ or "")
    try:
        content = dump((function, arguments))
    except Exception as error:  # pickle raises many kinds
        raise InvalidError(f"submit: {name} cannot be pickled: {error}\n  try: pip install cloudpickle") from error
    is_by_name = getattr(function, "__module__", "") == "__main__" and b"__main__" in content
    has_source = "main_module" in header or "main_file" in header
    if is_by_name and not has_source and not header["by_value"]:
        raise InvalidError(f"submit: {name} is not defined in an importable file\n  try: pip install cloudpickle")
    file.write_bytes(pickle.dumps(header) + content)


def _become_main(header: dict[str, Any]) -> None:
    """Makes the names of the caller's script importable as `__main__`, without running its guarded main part."""
    os.environ[_INSIDE] = "1"
    try:
        if "main_module" in header:
            names = runpy.run_module(header["main_module"], run_name=_MAIN, alter_sys=True)
        elif "main_file" in header:
            names = runpy.run_path(header["main_file"], run_name=_MAIN)
        else:
            return
    finally:
        del os.environ[_INSIDE]
    module = types.ModuleType(_MAIN)
    module.__dict__.update(names)
    sys.modules["__main__"] = sys.modules[_MAIN] = module


def read_call(content: bytes, number: int = 0) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function and the arguments of one of its calls; imports required modules."""
    stream = io.BytesIO(content)
    header = pickle.load(stream)
    if header["version"] != _VERSION:
        raise InvalidError(
            f"call: version {header['version']} is not supported (this Stoker version reads version {_VERSION})"
        )
    sys.path[:] = header["path"] + [place for place in sys.path if place not in header["path"]]
    rest = content[stream.tell() :]
    if b"__main__" in rest and not header["by_value"]:
        _become_main(header)
    function, arguments = pickle.loads(rest)
    return function, *arguments[number]


def _find(file: Path, folder: Path) -> bytes:
    """The call's bytes: the file is moved from where it was written to the run's folder."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        for place in (folder / "call.pkl", file):
            try:
                return place.read_bytes()
            except FileNotFoundError:
                continue
        if time.monotonic() > deadline:
            raise NotFoundError(f"{folder / 'call.pkl'}: no such file, nor {file}")
        time.sleep(0.1)


def _dump_error(error: BaseException) -> bytes:
    text = "".join(traceback.format_exception(error))
    short = "".join(traceback.format_exception_only(error)).strip()
    try:
        content = dump((error, short, text))
        pickle.loads(content)  # some exceptions cannot be unpickled
    except Exception:
        content = pickle.dumps((None, short, text))
    return _ERROR + content


def write_answer(file: Path, content: bytes) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}")
    with part.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    part.rename(file)


def _task_files(folder: Path, task: int) -> tuple[Path, Path]:
    """The record of an array's task, and the file of a large answer."""
    return folder / f"tasks/{task:05}.jsonl", folder / f"tasks/{task:05}.pkl"


def write_task_answer(folder: Path, task: int, content: bytes) -> None:
    """Appends to the record, which has no other writer while the task runs. A record is one write."""
    record, large = _task_files(folder, task)
    if len(content) > _LARGE:
        return write_answer(large, content)
    line = json.dumps({"time": time.time(), "kind": "answer", "pickle": base64.b64encode(content).decode()})
    with record.open("ab", buffering=0) as stream:
        stream.write(line.encode() + b"\n")


def find_task_answer(folder: Path, task: int) -> tuple[bytes | None, str | None]:
    """The answer of an array's task, and the reason if it ended without one. Both are None before its end."""
    record, large = _task_files(folder, task)
    answer: bytes | None = None
    why: str | None = None
    try:
        lines = record.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return None, None
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a truncated record
        if event["kind"] == "task_started":
            answer, why = None, None
        elif event["kind"] == "answer":
            answer = base64.b64decode(event["pickle"])
        elif event["kind"] == "task_ended":
            why = event.get("reason") or f"exit code {event.get('exit_code', '?')}"
            if answer is None and large.exists():
                answer = large.read_bytes()
    return answer, why


def read_answer(content: bytes) -> Any:
    """The return value of the call, or raises its exception with the remote traceback as the cause."""
    sys.modules.setdefault(_MAIN, sys.modules["__main__"])  # the module of the caller's classes in the remote process
    answer = pickle.loads(content[1:])
    if content[:1] == _VALUE:
        return answer
    error, short, text = answer
    raise (error if isinstance(error, BaseException) else RemoteError(short)) from _TracebackError(text)


def is_failure(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(1) == _ERROR


def main(words: list[str]) -> int:
    """Runs the call of a file as a rank of a run, or one of its calls as a task of an array. Writes the answer to the run's
    folder."""
    file = Path(words[0])
    folder = Path(os.environ["STOKER_RUN_DIR"])
    task = int(os.environ.get("STOKER_TASK") or 0)
    own = folder / f"result-{int(os.environ['RANK']):04}.pkl" if task == 0 else _task_files(folder, task)[1]
    own.unlink(missing_ok=True)  # of an earlier attempt

    def answer(content: bytes) -> None:
        if task == 0:
            write_answer(own, content)
        else:
            write_task_answer(folder, task, content)

    try:
        function, arguments, keywords = read_call(_find(file, folder), max(0, task - 1))
        content = _VALUE + dump(function(*arguments, **keywords))
    except Exception as error:
        traceback.print_exc()
        answer(_dump_error(error))
        return 1
    answer(content)
    return 0


if __name__ == "__main__":
    # Imported under its real name, so that exceptions raised here have the caller's classes.
    from stoker.call import main as run_call

    sys.exit(run_call(sys.argv[1:]))
