"""Runs the commands of script/gpu-check within a time budget, and collects the JSON lines that they print."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

Line = dict[str, object]
KILL_AFTER_S = 5.0


@dataclass(frozen=True)
class Command:
    """REQUIRES: `words` starts with a program; JSON lines on its standard output are results."""

    name: str
    words: tuple[str, ...]
    at_least_s: float = 5.0  # does not start with less time left
    who: str = "python"  # default of the field `who`
    is_test: bool = False
    needs: tuple[Path, ...] = ()  # files besides the program
    otherwise: str = ""  # how to get them

    def missing(self) -> list[Path]:
        return [path for path in (*self.paths(), *self.needs) if not path.exists()]

    def paths(self) -> list[Path]:
        """The program and the script that the command runs, if they have a folder."""
        return [Path(word) for word in self.words[:2] if "/" in word and not word.startswith("-")]


@dataclass(frozen=True)
class Part:
    name: str
    share: float  # of the budget
    commands: tuple[Command, ...]
    ahead: tuple[Command, ...] = ()  # run beside the parts before this one


@dataclass(frozen=True)
class Outcome:
    part: str
    name: str
    state: str  # ok, failed, stopped, not run
    detail: str = ""
    seconds: float = 0.0
    is_test: bool = False


@dataclass
class Results:
    lines: list[Line] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def failed_tests(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.is_test and outcome.state in ("failed", "stopped")]


@dataclass
class Running:
    command: Command
    process: subprocess.Popen[bytes]
    output: Path

    def stop(self) -> None:
        """Ends the command and its children, which share a process group."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(KILL_AFTER_S)
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()

    def lines(self) -> list[Line]:
        return [{"who": self.command.who} | line for line in json_lines(self.output.read_text(errors="replace"))]


def json_lines(text: str) -> list[Line]:
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


class Runner:
    """Starts commands in `logs`, one after another. Each part ends when its share and what earlier parts left is used."""

    def __init__(self, logs: Path, budget_s: float, environment: dict[str, str], report: Callable[[str], None]):
        self.logs, self.budget_s, self.environment, self.report = logs, budget_s, environment, report
        self.results = Results()
        self.started = time.monotonic()
        self.ahead: dict[str, list[Running]] = {}

    def run(self, parts: Iterable[Part]) -> Results:
        parts = list(parts)
        shares = sum(part.share for part in parts)
        try:
            for part in parts:
                self.ahead[part.name] = [self.start(command) for command in part.ahead if not command.missing()]
            used = 0.0
            for part in parts:
                used += part.share
                self.run_part(part, self.started + self.budget_s * used / shares)
        finally:
            for running in [one for several in self.ahead.values() for one in several]:
                running.stop()
        return self.results

    def run_part(self, part: Part, deadline: float) -> None:
        self.wait_for_ahead(part, deadline)
        for command in part.commands:
            outcome = self.run_command(part.name, command, deadline)
            self.results.outcomes.append(outcome)
            detail = f": {outcome.detail}" if outcome.detail else ""
            self.report(f"{part.name:11}{command.name:36}{outcome.seconds:6.1f} s  {outcome.state}{detail}")

    def wait_for_ahead(self, part: Part, deadline: float) -> None:
        """At most for half of the part's time; then its commands do without."""
        until = time.monotonic() + (deadline - time.monotonic()) / 2
        for running in self.ahead.pop(part.name, []):
            try:
                running.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                running.stop()

    def run_command(self, part: str, command: Command, deadline: float) -> Outcome:
        if missing := command.missing():
            detail = f"{missing[0]} is missing" + (f" ({command.otherwise})" if command.otherwise else "")
            return Outcome(part, command.name, "not run", detail, is_test=command.is_test)
        left = deadline - time.monotonic()
        if left < command.at_least_s:
            return Outcome(part, command.name, "not run", "budget", is_test=command.is_test)
        started = time.monotonic()
        running = self.start(command)
        state, detail = self.wait(running, left)
        self.results.lines += running.lines()
        return Outcome(part, command.name, state, detail, time.monotonic() - started, command.is_test)

    def start(self, command: Command) -> Running:
        output = self.logs / f"{command.name.replace(' ', '-').replace('/', '-')}.out"
        with open(output, "wb") as out, open(output.with_suffix(".err"), "wb") as err:
            process = subprocess.Popen(
                command.words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self.environment,
                start_new_session=True,
            )
        return Running(command, process, output)

    def wait(self, running: Running, seconds: float) -> tuple[str, str]:
        try:
            code = running.process.wait(seconds)
        except subprocess.TimeoutExpired:
            running.stop()
            return "stopped", "budget"
        except BaseException:
            running.stop()
            raise
        if code == 0:
            return "ok", ""
        return "failed", f"exit {code}, see {running.output.with_suffix('.err')}{last_line(running)}"


def last_line(running: Running) -> str:
    for path in (running.output.with_suffix(".err"), running.output):
        if lines := path.read_text(errors="replace").split("\n")[-20:]:
            for line in reversed(lines):
                if line.strip():
                    return f": {line.strip()[:120]}"
    return ""


def print_to(out: TextIO) -> Callable[[str], None]:
    return lambda text: print(text, file=out, flush=True)
