"""What script/gpu-check runs: parts, and the commands of each."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gpu_check_run import Command, Part

REPOSITORY = Path(__file__).resolve().parents[2]
PEERS = REPOSITORY / "bench/gpu"
# Steps of a window of gpu-steps: about a second each.
STEPS = {
    "resnet50-256": 15,
    "resnet50-32": 60,
    "resnet18-64": 120,
    "cifar-resnet20-128": 400,
    "cifar-resnet20-128-fp32": 250,
}
# Seconds of the default budget of 480.
SHARES = {"tests": 50, "parity": 40, "steps": 180, "feed": 70, "checkpoint": 25, "start": 15, "cifar": 100}
UNIT_TESTS = ("train_test", "loader_test")
PREPARED = "script/gpu-check --prepare FOLDER"


@dataclass(frozen=True)
class Places:
    """Where programs and data are: a folder of --prepare, or the build of this checkout."""

    bin: Path
    module: Path  # for PYTHONPATH
    photographs: Path | None
    cifar10: Path | None
    python: str
    work: Path

    @property
    def has_module(self) -> bool:
        return any(self.module.glob("stoker/_core*.so"))


def places_of(folder: Path | None, python: str, work: Path) -> Places:
    root = folder or REPOSITORY / "build/release"
    data = os.environ.get("STOKER_TEST_DATA")
    archive = Path(data) / "cifar10.tar" if data else None
    return Places(
        root / "bin",
        root / "python",
        existing(root / "data/photographs"),
        existing(root / "data/cifar10") or (existing(archive) if archive else None),
        python,
        work,
    )


def existing(path: Path) -> Path | None:
    return path if path.exists() else None


def script(places: Places, name: str, *words: object) -> tuple[str, ...]:
    return (places.python, str(PEERS / name), *map(str, words))


def tests_part(places: Places) -> tuple[Command, ...]:
    commands = [
        Command(name, (str(places.bin / name),), 10, "stoker", is_test=True, otherwise=PREPARED) for name in UNIT_TESTS
    ]
    files = [
        str(path) for path in sorted((REPOSITORY / "tests").rglob("test_gpu*.py")) if path.stem != "test_gpu_check"
    ]
    if files:
        # Without conftest.py, whose fixtures need more than such a machine has.
        alone = ("-c", os.devnull, "--rootdir", str(REPOSITORY / "tests/gpu"), "--noconftest", "-p", "gpu_training")
        words = (places.python, "-m", "pytest", "-q", *alone, "-p", "no:cacheprovider", *files)
        needs = (places.bin / "stoker", places.bin / "stoker-train")
        commands.append(Command("pytest", words, 15, "stoker", is_test=True, needs=needs, otherwise=PREPARED))
    return tuple(commands)


def parity_part(places: Places) -> tuple[Command, ...]:
    data = places.work / "parity"
    needs = (places.bin / "stoker", places.bin / "stoker-train")
    commands = [
        Command("parity data", script(places, "parity.py", "data", data), 3, needs=needs[:1], otherwise=PREPARED)
    ]
    for model in ("resnet18", "cifar-resnet20"):
        for graph in ("never", "auto"):
            words = script(places, "parity.py", "run", data, "--models", model, "--set", f"train.cuda_graph={graph}")
            name = f"parity {model} graph {graph}"
            commands.append(Command(name, words, 8, "stoker", is_test=True, needs=needs, otherwise=PREPARED))
    return tuple(commands)


def steps_part(places: Places) -> tuple[Command, ...]:
    commands = []
    program = places.bin / "gpu-steps"
    for workload, steps in STEPS.items():
        words = (str(program), workload, "--steps", str(steps))
        commands.append(Command(f"{workload} stoker", words, 8, "stoker", otherwise=PREPARED))
        commands.append(Command(f"{workload} python", script(places, "steps.py", workload), 12))
    return tuple(commands)


def warm_compiler(places: Places) -> tuple[Command, ...]:
    return tuple(Command(f"{name} compile", script(places, "steps.py", name, "--warm")) for name in STEPS)


def feed_part(places: Places) -> tuple[Command, ...]:
    photographs = [places.photographs] if places.photographs else []
    return tuple(
        Command(f"feed {model}", script(places, "feed.py", *photographs, "--models", model, "--seconds", 4), 25)
        for model in ("resnet50", "resnet18")
    )


def checkpoint_part(places: Places) -> tuple[Command, ...]:
    return (Command("checkpoint of 1 GB", script(places, "checkpoint.py", "--rounds", 3), 15),)


def start_part(places: Places) -> tuple[Command, ...]:
    data = places.work / "parity/cifar-resnet20"
    prepare = Command(
        "start data", script(places, "parity.py", "data", places.work / "parity"), 3, needs=(places.bin / "stoker",)
    )
    with_trainer = Command(
        "start", script(places, "start.py", data, "--rounds", 2), 12, needs=(places.bin / "stoker-train",)
    )
    return (prepare, with_trainer)


def cifar_part(places: Places) -> tuple[Command, ...]:
    otherwise = f"{PREPARED} --cifar10 cifar10.tar, or STOKER_TEST_DATA"
    data = places.cifar10 or places.bin.parent / "data/cifar10"
    needs = (data, places.bin / "stoker-train")
    return tuple(
        Command(
            job, script(places, "accuracy.py", data, "--job", job), at_least, "stoker", needs=needs, otherwise=otherwise
        )
        for job, at_least in (("resnet9.yaml", 20), ("job.yaml", 40))
    )


PARTS = {
    "tests": tests_part,
    "parity": parity_part,
    "steps": steps_part,
    "feed": feed_part,
    "checkpoint": checkpoint_part,
    "start": start_part,
    "cifar": cifar_part,
}


def parts_of(places: Places, names: list[str]) -> list[Part]:
    return [
        Part(name, SHARES[name], PARTS[name](places), warm_compiler(places) if name == "steps" else ())
        for name in PARTS
        if name in names
    ]


def environment(places: Places) -> dict[str, str]:
    """PYTHONPATH has Stoker's module and the tests' helpers; the trainer finds the libraries of the torch that Python imports."""
    variables = dict(os.environ)
    variables["STOKER_BIN"] = str(places.bin)
    variables["TORCHINDUCTOR_CACHE_DIR"] = str(places.work / "inductor")
    variables["LD_LIBRARY_PATH"] = ":".join(filter(None, [torch_libraries(places), variables.get("LD_LIBRARY_PATH")]))
    own = [str(places.module)] if places.has_module else []
    own.append(str(REPOSITORY / "tests"))
    variables["PYTHONPATH"] = ":".join([*own, *filter(None, [variables.get("PYTHONPATH")])])
    return variables


def torch_libraries(places: Places) -> str:
    """Folder of libtorch.so, without importing torch."""
    code = "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    done = subprocess.run([places.python, "-c", code], capture_output=True, text=True)
    folder = done.stdout.strip()
    return f"{folder}/lib" if folder else ""


def machine(places: Places) -> str:
    """GPU and versions; empty if torch finds no GPU."""
    code = (
        "import sys, torch\n"
        "if torch.cuda.is_available():\n"
        "    print(torch.cuda.get_device_name(), 'torch', torch.__version__, 'Python', sys.version.split()[0])"
    )
    done = subprocess.run([places.python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip()
