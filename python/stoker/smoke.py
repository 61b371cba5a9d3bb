"""Smoke test of an installation: packs images, runs two ranks, lets one fail, resumes, and checks the result.

    python -m stoker.smoke                             the installed command and module
    python smoke.py --stoker PATH --command-only       a tarball: the command alone
    python smoke.py --wheel stoker-0.1.0-....whl       a wheel, in a new virtual environment

Needs Python 3.10 or newer (3.9 for the command alone) with its standard library, and no network, scheduler, numpy or
torch. docs/install.md shows the output. It works as a module and as a single file, so it imports nothing from the package."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLASSES = ("green", "red")  # in the order of their labels
IMAGES_PER_CLASS = 32
SIDE = 32
BRIGHT, DARK = 200, 60  # a class's own channel, and the upper limit of the remaining ones
FAILURE = "the planned failure of the smoke test"

# Prints what a user of the module sees: the version, the samples and the colour of each class.
LOADER_PROGRAM = """
import json, sys
import stoker
libraries = sorted({"numpy", "torch"} & set(sys.modules))
samples, colours = set(), {}
with stoker.Loader("dataset", batch_size=16, fields=["image", "label", "index"], dtype="uint8",
                   transform=[("CenterCrop", {"size": 32})]) as loader:
    for batch in loader:
        pixels, labels = memoryview(batch["image"]), memoryview(batch["label"])
        samples.update(memoryview(batch["index"]))
        for i, label in enumerate(labels):
            colours.setdefault(label, [pixels[i, channel, 5, 5] for channel in range(3)])
print(json.dumps({"version": stoker.__version__, "libraries": libraries, "samples": len(samples),
                  "classes": loader.classes, "brightest": [colours[i].index(max(colours[i])) for i in (0, 1)]}))
"""

# Each rank reads its half of the dataset, 4 samples a step, and saves every second step. Rank 1 fails after step 5.
RANK_PROGRAM = """
import os
import stoker
from stoker import checkpoint

rank, data = int(os.environ["RANK"]), os.environ["STOKER_DATA_TRAIN"]
folder, resume = os.environ["STOKER_CHECKPOINT_DIR"], os.environ["STOKER_RESUME"]
loader = stoker.Loader(data, batch_size=4, fields=["index", "label"], seed=7)
with stoker.Loader(data, batch_size=8, shuffle=False, rank=0, world_size=1,
                   transform=[("CenterCrop", {"size": 32})]) as first:
    weights = next(iter(first))["image"]  # 98 304 bytes, the same on both ranks
step, seen = 0, []
if resume:
    state = checkpoint.load(folder)
    if bytes(memoryview(state["weights"])) != bytes(memoryview(weights)):
        raise ValueError("the checkpoint has different weights")
    step, seen = state["step"], state.rank_state["seen"].split()
    loader.load_state_dict(state["loader"])
    print(f"rank {rank} resumes after step {step}")
for batch in loader:
    step += 1
    seen += map(str, memoryview(batch["index"]))
    if step % 2 == 0:
        checkpoint.save({"weights": weights, "step": step, "loader": loader.state_dict()}, folder, step=step,
                        keep_last=2, rank_state={"seen": " ".join(seen)})
    if step == 5 and rank == 1 and not resume:
        raise RuntimeError("FAILURE")
with open(f"seen-{rank}.txt", "w") as file:
    file.write(" ".join(seen))
"""

# The same run without the module: rank 0 writes the checkpoint, a safetensors file with one number.
COMMAND_RANK_PROGRAM = """
import json, os, struct, time

rank, resume = int(os.environ["RANK"]), os.environ["STOKER_RESUME"]
mine = range(rank, 64, int(os.environ["WORLD_SIZE"]))
if not os.path.isfile(os.path.join(os.environ["STOKER_DATA_TRAIN"], "manifest.json")):
    raise FileNotFoundError("STOKER_DATA_TRAIN has no manifest.json")
saved = os.path.join(os.environ["STOKER_CHECKPOINT_DIR"], "step-4.safetensors")
if rank == 0 and not resume:
    header = json.dumps({"step": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    with open(saved + ".tmp", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<f", 4))
    os.rename(saved + ".tmp", saved)
while not os.path.exists(saved):
    time.sleep(0.01)
if rank == 1 and not resume:
    raise RuntimeError("FAILURE")
with open(f"seen-{rank}.txt", "w") as file:
    file.write(" ".join(map(str, mine)))
"""

JOB = """name: smoke
site: generic
run: {command}
resources: {{ranks_per_node: 2, cpus_per_rank: 1}}
data: {{train: {{source: dataset}}}}
"""

TRAIN_JOB = """name: smoke-train
site: generic
train: {model: cifar-resnet20, epochs: 6, batch: 8, seed: 1, optimizer: {lr: 0.05}}
resources: {ranks_per_node: 2, cpus_per_rank: 1}
data: {train: {source: dataset}}
"""


class StepError(Exception):
    """A step failed, with the reason for the user."""


@dataclass
class Step:
    """One line of the output."""

    name: str
    seconds: float
    detail: str
    passed: bool


@dataclass
class Smoke:
    """The steps, in the working folder. They run in order, and each uses the files of the previous ones."""

    folder: Path
    stoker: str
    python: str
    uses_module: bool
    timeout_s: float
    environment: dict[str, str]
    uses_trainer: bool = False
    version: str = ""
    output: str = ""  # of the last program

    def run(self, *command: str, codes: tuple[int, ...] = (0,)) -> str:
        """Standard output of a program. StepError for an exit code outside `codes`, and after the timeout."""
        shown, self.output = " ".join(command), ""
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self.timeout_s,
            )
        except subprocess.TimeoutExpired:
            raise StepError(f"{shown}: no result after {self.timeout_s:g} s (--timeout)") from None
        except OSError as error:
            raise StepError(f"{shown}: {error}") from None
        self.output = (done.stdout + done.stderr).strip()
        expect(done.returncode in codes, f"{shown}: exit code {done.returncode}, expected {codes[0]}")
        return done.stdout

    def json(self, *words: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """The JSON value that `stoker WORDS --json` prints."""
        text = self.run(self.stoker, *words, "--json", codes=codes)
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise StepError(f"stoker {words[0]}: did not print a JSON object")
        return value

    def install(self, wheel: Path) -> str:
        """Installs the wheel, without network, into a new virtual environment, and uses its command and Python."""
        programs = self.folder / "venv/bin"
        self.run(self.python, "-m", "venv", "venv")
        self.python, self.stoker = str(programs / "python"), str(programs / "stoker")
        self.environment.pop("PYTHONPATH", None)  # only the module of the wheel
        self.environment["PATH"] = f"{programs}:{self.environment.get('PATH', os.defpath)}"
        self.run(self.python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel.absolute()))
        return wheel.name

    def check_version(self) -> str:
        self.stoker = self.stoker or find_command()
        text = self.run(self.stoker, "--version").strip()
        words = text.split()
        expect(len(words) >= 2 and words[0] == "stoker", f"stoker --version printed '{text}'")
        self.version = words[1]
        return text.removeprefix("stoker ")

    def pack(self) -> str:
        for label, name in enumerate(CLASSES):
            write_images(self.folder / "images" / name, channel=1 - label)
        self.run(self.stoker, "data", "pack", "images", "dataset")
        info = self.json("data", "verify", "dataset")
        count = IMAGES_PER_CLASS * len(CLASSES)
        expect(info["samples"] == count, f"the dataset has {info['samples']} samples, expected {count}")
        return f"{count} images, dataset version {info['version'][:8]}"

    def verify(self) -> str:
        self.json("data", "verify", "--full", "dataset")
        return "every byte"

    def load(self) -> str:
        (self.folder / "load.py").write_text(LOADER_PROGRAM)
        found = json.loads(self.run(self.python, "load.py"))
        count = IMAGES_PER_CLASS * len(CLASSES)
        expect(found["version"] == self.version, f"the module is {found['version']}, the command {self.version}")
        expect(found["libraries"] == [], f"importing stoker imported {found['libraries']}")
        expect(found["samples"] == count, f"the loader returned {found['samples']} samples, expected {count}")
        expect(found["classes"] == list(CLASSES), f"the classes are {found['classes']}, expected {list(CLASSES)}")
        expect(found["brightest"] == [1, 0], f"the pixels are wrong: channels {found['brightest']}, expected [1, 0]")
        return f"{count} samples decoded without numpy and torch"

    def fail(self) -> str:
        program = RANK_PROGRAM if self.uses_module else COMMAND_RANK_PROGRAM
        (self.folder / "rank.py").write_text(program.replace("FAILURE", FAILURE))
        command = json.dumps([self.python, "rank.py"])
        (self.folder / "job.yaml").write_text(JOB.format(command=command))
        run = self.json("run", "job.yaml", codes=(1,))
        expect(run["state"] == "failed", f"the run is '{run['state']}', expected 'failed'")
        expect(run["first_rank"] == 1, f"rank {run['first_rank']} failed first, expected 1")
        expect(FAILURE in run["last_line"], f"rank 1 failed with: {run['last_line']}")
        return "2 ranks, rank 1 failed as planned"

    def explain(self) -> str:
        cause = self.json("explain", "last", codes=(0, 1))["diagnosis"]["cause"]
        expect(cause is not None and FAILURE in cause, f"the cause is: {cause}")
        return str(cause)

    def resume(self) -> str:
        run = self.json("resume", "last")
        expect(run["state"] == "done", f"the run is '{run['state']}', expected 'done'")
        expect(run["attempt"] == 2, f"the attempt is {run['attempt']}, expected 2")
        seen = [int(word) for rank in (0, 1) for word in (self.folder / f"seen-{rank}.txt").read_text().split()]
        count = IMAGES_PER_CLASS * len(CLASSES)
        expect(sorted(seen) == list(range(count)), f"the ranks read {len(seen)} samples: {sorted(seen)}")
        return "each sample read exactly once"

    def checkpoints(self) -> str:
        steps = self.json("checkpoint", "verify", "last")["steps"]
        states = {step["step"]: step["state"] for step in steps}
        expect(states == {8: "valid", 6: "valid"}, f"the checkpoints are {states}, expected steps 8 and 6, valid")
        return "steps 6 and 8, every byte"

    def report(self) -> str:
        self.run(self.stoker, "report", "last")
        pages = list(self.folder.glob("runs/*/report.html"))
        expect(len(pages) == 1 and pages[0].stat().st_size > 0, "the run has no report.html")
        run = self.json("report", "last", "--format", "json")["runs"][0]
        expect(run["resumes"] == 1, f"the report counts {run['resumes']} resumes, expected 1")
        return str(run["result"])

    def train(self) -> str:
        (self.folder / "train.yaml").write_text(TRAIN_JOB)
        run = self.json("run", "train.yaml")
        expect(run["state"] == "done", f"the training is '{run['state']}', expected 'done'")
        (metrics,) = self.folder.glob(f"runs/{run['run']}/attempts/1/metrics-0000.csv")
        rows = [line.split(",") for line in metrics.read_text().splitlines()]
        losses = [float(row[rows[0].index("loss")]) for row in rows[1:]]
        expect(len(losses) == 24, f"the training has {len(losses)} steps, expected 24")
        expect(losses[-1] < losses[0] / 2, f"the loss went from {losses[0]:.3f} to {losses[-1]:.3f}")
        return f"24 steps of stoker-train, loss {losses[0]:.2f} to {losses[-1]:.2f}"

    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        module = self.uses_module
        return [
            ("version", self.check_version),
            ("pack", self.pack),
            ("verify", self.verify),
            *([("load", self.load)] if module else []),
            ("run", self.fail),
            ("explain", self.explain),
            ("resume", self.resume),
            *([("checkpoints", self.checkpoints)] if module else []),
            ("report", self.report),
            *([("train", self.train)] if self.uses_trainer else []),
        ]


def expect(holds: bool, otherwise: str) -> None:
    """Raises StepError(otherwise) unless `holds`."""
    if not holds:
        raise StepError(otherwise)


def png(pixel: Callable[[int, int], bytes]) -> bytes:
    """An RGB image as a PNG file; `pixel(x, y)` returns three bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"".join(pixel(x, y) for x in range(SIDE)) for y in range(SIDE))
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def write_images(folder: Path, channel: int) -> None:
    """Different images, whose `channel` is bright."""
    folder.mkdir(parents=True)
    for number in range(IMAGES_PER_CLASS):

        def pixel(x: int, y: int, number: int = number) -> bytes:
            return bytes(BRIGHT if c == channel else x * y * (number + 1) % DARK for c in range(3))

        (folder / f"{number:02}.png").write_bytes(png(pixel))


def plain_environment() -> dict[str, str]:
    """The environment without variables of an outer job, so that the ranks run on this machine."""
    outer = ("STOKER_", "SLURM_", "TORCHELASTIC_", "PMI", "OMPI_")
    ranks = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {name: value for name, value in os.environ.items() if not name.startswith(outer) and name not in ranks}


def find_command() -> str:
    """The command next to this Python, else in PATH."""
    for place in (str(Path(sys.executable).parent / "stoker"), shutil.which("stoker")):
        if place and os.access(place, os.X_OK) and not os.path.isdir(place):
            return os.path.abspath(place)
    raise StepError("stoker: command not found\n  try: --stoker PATH, or put its folder on PATH")


def attempt(name: str, action: Callable[[], str], options: argparse.Namespace) -> tuple[Step, str]:
    """Runs one step and prints its line. Returns the reason of a failure, or an empty text."""
    started = time.monotonic()
    detail = reason = ""
    try:
        detail = action()
    except StepError as error:
        reason = str(error)
    except (OSError, ValueError, LookupError, TypeError) as error:  # JSON without an expected field, a missing file
        reason = f"{type(error).__name__}: {error}"
    step = Step(name, round(time.monotonic() - started, 3), detail, not reason)
    if not options.json:
        print(f"{step.name:<12}{step.seconds:7.2f} s   {detail if step.passed else 'FAILED'}", flush=True)
    return step, reason


def run_steps(smoke: Smoke, options: argparse.Namespace) -> tuple[list[Step], str]:
    """The steps up to the first failed one, and its reason and output (empty if all passed)."""
    steps = [("install", lambda: smoke.install(options.wheel))] if options.wheel else []
    steps += smoke.steps()
    done: list[Step] = []
    for name, action in steps:
        step, reason = attempt(name, action, options)
        done.append(step)
        if reason:
            return done, f"{reason}\n{smoke.output}".rstrip()
    return done, ""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="smoke", description="Test an installation of Stoker: pack, run 2 ranks, fail, explain, resume, report."
    )
    installed = parser.add_mutually_exclusive_group()
    installed.add_argument("--stoker", metavar="PATH", help="the command (default: next to this Python, else in PATH)")
    installed.add_argument("--wheel", metavar="FILE", type=Path, help="install this wheel in a virtual environment")
    parser.add_argument("--command-only", action="store_true", help="skip the Python module")
    parser.add_argument("--trainer", action="store_true", help="train with stoker-train too, which needs torch")
    parser.add_argument("--timeout", metavar="S", type=float, default=120, help="seconds per command [120]")
    parser.add_argument("--keep", action="store_true", help="keep the working folder and print its path")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 if all steps passed, 1 otherwise, 2 for a usage error."""
    options = parse(arguments)
    folder = Path(tempfile.mkdtemp(prefix="stoker-smoke-")).resolve()
    stoker = os.path.abspath(options.stoker) if options.stoker else ""
    environment = plain_environment()
    smoke = Smoke(
        folder, stoker, sys.executable, not options.command_only, options.timeout, environment, options.trainer
    )
    done, output = run_steps(smoke, options)
    is_kept = bool(output) or options.keep
    if not is_kept:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        steps = [vars(step) for step in done]
        value = {"passed": not output, "steps": steps, "output": output, "folder": str(folder) if is_kept else None}
        print(json.dumps(value))
        return 1 if output else 0
    if output:
        print(output, file=sys.stderr)
    if is_kept:
        print(f"files: {folder}", file=sys.stderr)
    print(f"smoke test failed: {done[-1].name}" if output else "smoke test passed")
    return 1 if output else 0


if __name__ == "__main__":
    sys.exit(main())
