"""Fixtures of the black-box tests. They drive the built command as a person would; tests/python imports the built module."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import needs
import packing
import pytest
from running import PATIENCE, Process

pytest_plugins = ["labs", "lab_stories", "places", "submitted", "links"]

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("STOKER_BIN") or REPOSITORY / "build/release/bin")
MODULE = BIN.parent / "python"  # where script/build puts the Python module together
EXAMPLE_TAR = REPOSITORY / "examples/cifar10/cifar10-6000.tar"

sys.path.insert(0, str(MODULE))


def pytest_configure() -> None:
    # Under nohup a hang-up is ignored, in the background of a script an interrupt; what we start would inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["LC_ALL"] = "C.UTF-8"  # what commands say does not hang on this machine's locale


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="also run the tests of the long lane")
    parser.addoption("--once", action="store_true", help="try no test a second time")


# Files are run side by side, each by one worker. Begun last, these would be waited for by all others.
LONG_FILES = (
    "test_exactness.py",
    "test_resume.py",
    "test_trainer.py",
    "test_main_job.py",
    "test_explain_faults.py",
    "test_exchanges.py",
    "test_cpp_example.py",
    "test_local_checkpoints.py",
    "test_arrays.py",
    "test_chains.py",
    "test_lab_modes.py",
    "test_checkpoint_ranks.py",
    "test_failures.py",
    "test_types.py",
    "test_own_script.py",
    "test_formats.py",
)


# A cluster of daemons that share two cores with three other tests is late now and then, and the test that meets this is
# wrong about the product. Such a test is tried once more; the summary names it and shows what failed. What is late is
# looked for with --once on a machine that is busy on purpose: script/soak busy.
TRIED_AGAIN = pytest.mark.flaky(reruns=1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_sep("_", f"failed, and tried again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_sep("-", title)
            terminalreporter.write_line(text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "lab" and not config.getoption("--once"):
            item.add_marker(TRIED_AGAIN)
    items.sort(key=lambda item: LONG_FILES.index(item.path.name) if item.path.name in LONG_FILES else len(LONG_FILES))
    if config.getoption("--soak"):
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=soak)
    items[:] = [item for item in items if item not in soak]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if not needs.is_met(name):
                pytest.skip(f"needs {name}: {needs.NEEDS[name].sentence}")


@dataclass(frozen=True)
class Completed:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str
    command: list[str] = field(repr=False, default_factory=list)


class Stoker:
    """Runs the built command, each time in a session of its own. When the test ends, what is left of them is killed."""

    def __init__(self, folder: Path):
        self.path = BIN / "stoker"
        self.train_path = BIN / "stoker-train"
        self.folder = folder
        self._started: list[Process] = []

    def __call__(
        self, *arguments: str | Path, code: int | None = None, timeout: float = PATIENCE, **options
    ) -> Completed:
        """Runs `stoker ARGUMENTS...` in the test's folder to its end. With `code`, fails unless it exits with it.

        Options: cwd, input (text for standard input), env (added to the environment, None removes a name),
        user (a numeric id to run as; needs root)."""
        text = options.pop("input", None)
        process = self.start(*arguments, stdin=subprocess.DEVNULL if text is None else subprocess.PIPE, **options)
        try:
            out, err = process.communicate(text, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"{process.args}: not done after {timeout} s\nstdout:\n{out}\nstderr:\n{err}")
        result = Completed(process.returncode, out, err, process.args)
        if code is not None and result.code != code:
            pytest.fail(f"{process.args}: exit {result.code}, expected {code}\nstdout:\n{out}\nstderr:\n{err}")
        return result

    def start(self, *arguments: str | Path, program: Path | None = None, **options) -> Process:
        """Starts `stoker ARGUMENTS...` in a process group of its own and returns at once; output is piped as text."""
        environment = dict(os.environ)
        for name in [name for name in environment if name.startswith(("STOKER_", "SLURM_"))]:
            del environment[name]
        environment["STOKER_SLURM_CALLS_PER_S"] = "0"  # tests ask in loops
        environment["STOKER_SLURM_RELEASE"] = "22.05"  # whatever is installed here
        for name, value in (options.pop("env", None) or {}).items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = str(value)
        user = options.pop("user", None)
        if user is not None:
            options |= {"user": user, "group": user, "extra_groups": []}
        settings = {"cwd": self.folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        command = [str(program or self.path), *map(str, arguments)]
        process = Process(command, env=environment, text=True, start_new_session=True, **settings)
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            process.wait()


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Stoker]:
    """The built command, run in this test's own empty folder."""
    runner = Stoker(tmp_path)
    if not runner.path.exists():
        pytest.fail(f"{runner.path} is not built; try: script/build")
    yield runner
    runner.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """An empty folder that every user can enter, for tests that run the command as another user."""
    folder = Path(tempfile.mkdtemp(prefix="stoker-test-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """tmpfs("8M") mounts a disk of that size and returns its folder. Mark the test @pytest.mark.needs("mount")."""
    mounted: list[Path] = []

    def mount(size: str) -> Path:
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", folder], check=True)


def _unpack(tar: Path, folder: Path) -> Path:
    with tarfile.open(tar) as archive:
        archive.extractall(folder)  # our own archives; filter= came with Python 3.11.4
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """photos/ in the test's folder, with 120 cats and 80 dogs."""
    return packing.make_images(tmp_path / "photos", {"cat": 120, "dog": 80})


@pytest.fixture(scope="session")
def example_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped CIFAR-10 subset as a folder of JPEG files: train/<class>/*.jpg and test/<class>/*.jpg. Read only."""
    return _unpack(EXAMPLE_TAR, tmp_path_factory.mktemp("cifar10-6000"))


@pytest.fixture(scope="session")
def cifar10_images(tmp_path_factory: pytest.TempPathFactory, example_images: Path) -> Path:
    """All of CIFAR-10 where STOKER_TEST_DATA has it, else the shipped subset; the same folders. Read only."""
    if not needs.is_met("data"):
        return example_images
    return _unpack(needs.test_data() / "cifar10.tar", tmp_path_factory.mktemp("cifar10"))


@pytest.fixture(scope="session")
def example_dataset(example_images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`example_images` packed once: a dataset folder with the splits train and test. Read only."""
    dataset = tmp_path_factory.mktemp("packed") / "cifar10-6000"
    subprocess.run(
        [BIN / "stoker", "data", "pack", example_images, dataset], check=True, capture_output=True, timeout=120
    )
    return dataset


@pytest.fixture
def own_dataset(example_dataset: Path, tmp_path: Path) -> Path:
    """A copy of `example_dataset` that the test may damage."""
    return Path(shutil.copytree(example_dataset, tmp_path / "dataset"))


@pytest.fixture
def module_environment() -> dict[str, str]:
    """An environment in which programs find the Python module."""
    return os.environ | {"PYTHONPATH": str(MODULE)}


@pytest.fixture
def python(tmp_path: Path, module_environment: dict[str, str]) -> Callable[..., str]:
    """python(code, *arguments) runs a program of its own that may import the module, and returns what it printed."""

    def run(code: str, *arguments: object, env: dict[str, str] | None = None, timeout: float = PATIENCE) -> str:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        environment = module_environment | (env or {})
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
