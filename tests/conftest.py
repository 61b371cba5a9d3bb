"""Fixtures of the black-box tests. They drive the built command as a person would; tests/python imports the built module."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import needs
import packing
import pytest
from running import PATIENCE, Process

pytest_plugins = ["labs", "lab_stories", "places", "submitted", "links", "gpu_training"]

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("STOKER_BIN") or REPOSITORY / "build/release/bin")
MODULE = BIN.parent / "python"  # where script/build puts the Python module together
EXAMPLE_TAR = REPOSITORY / "examples/cifar10/cifar10-6000.tar"

sys.path.insert(0, str(MODULE))


def pytest_configure() -> None:
    # Under nohup, SIGHUP is ignored; in the background of a script, SIGINT. Child processes would inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["LC_ALL"] = "C.UTF-8"  # the output of commands must not depend on the locale


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="also run the tests of the long lane")
    parser.addoption("--once", action="store_true", help="never retry a test")


# A program or a cluster of daemons that shares two cores with five other tests is sometimes late, and a test then fails
# without a fault of the product. It is retried once; the summary names it and shows the failure. To find what is late, use
# --once on a deliberately busy machine: script/soak busy.
RETRIED_ONCE = pytest.mark.flaky(reruns=1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_sep("_", f"failed, retried: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_sep("-", title)
            terminalreporter.write_line(text)


# Seconds that each file took in the last run on this machine, in pytest's cache.
FILE_SECONDS = "stoker/file-seconds"


def sort_longest_first(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files side by side end together when the longest start first. Without a last run, a test's own time limit is the guess."""
    seconds = config.cache.get(FILE_SECONDS, {})
    guesses: dict[str, float] = defaultdict(float)
    for item in items:
        limit = item.get_closest_marker("timeout")
        guesses[item.path.name] += limit.args[0] / 100 if limit and limit.args else 0.5
    names = sorted(guesses, key=lambda name: (-seconds.get(name, guesses[name]), name))
    place = {name: index for index, name in enumerate(names)}
    items.sort(key=lambda item: place[item.path.name])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keeps what each file took. Workers of xdist report to their controller, which alone writes."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    took: dict[str, float] = defaultdict(float)
    for reports in reporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[Path(report.location[0]).name] += report.duration
    known = session.config.cache.get(FILE_SECONDS, {})
    session.config.cache.set(FILE_SECONDS, known | {name: round(seconds, 1) for name, seconds in took.items()})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if not config.getoption("--once"):
            item.add_marker(RETRIED_ONCE)
    sort_longest_first(config, items)
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
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str
    command: list[str] = field(repr=False, default_factory=list)


class Stoker:
    """Runs the built command, each time in a separate session. Processes left at the end of the test are killed."""

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
        """Starts `stoker ARGUMENTS...` in a separate process group and returns at once; output is piped as text."""
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
    """python(code, *arguments) runs a separate program that may import the module, and returns its output."""

    def run(code: str, *arguments: object, env: dict[str, str] | None = None, timeout: float = PATIENCE) -> str:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        environment = module_environment | (env or {})
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
