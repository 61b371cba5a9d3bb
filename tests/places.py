"""Labs of a single test, in a separate folder: `labs` starts them as root in either mode, or as an ordinary user."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import remains
from conftest import Completed, Stoker
from running import Process

SOMEBODY = 33  # www-data: every Debian has it


def unique(letter: str) -> str:
    """A lab's name that no other test run on this machine uses."""
    return f"x{letter}{os.getpid()}"


class Labs:
    """labs("up", ...) runs `stoker lab up ...` in `mode` and as `user` (None: as the tests run)."""

    def __init__(self, stoker: Stoker, place: Path, mode: str, user: int | None):
        self.place = place
        self.mode = mode
        self.user = user
        self._stoker = stoker
        if user is not None:
            os.chown(place, user, user)

    def folder(self, letter: str) -> Path:
        return self.place / "labs" / unique(letter)

    def __call__(self, verb: str, *arguments: str, **options) -> Completed:
        return self._stoker(*self._words(verb, arguments), **self._settings(options))

    def start(self, verb: str, *arguments: str, **options) -> Process:
        return self._stoker.start(*self._words(verb, arguments), **self._settings(options))

    def slurm(self, folder: Path, *command: str) -> str:
        """The output of a Slurm command, run in the lab of that folder by its owner."""
        who = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        environment = os.environ | {"SLURM_CONF": str(folder / "etc/slurm.conf")}
        done = subprocess.run(
            command, cwd=self.place, env=environment, capture_output=True, text=True, timeout=120, **who
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def disk(self, size: str) -> Iterator[Path]:
        """The labs are on a disk of that size. Mark the test @pytest.mark.needs("mount")."""
        folder = self.place / "labs"
        folder.mkdir()
        owner = self.user or 0
        options = f"size={size},mode=755,uid={owner},gid={owner}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
            folder.rmdir()

    def _words(self, verb: str, arguments: tuple[str, ...]) -> list[str]:
        return ["lab", verb, *arguments, *(["--mode", self.mode] if verb == "up" else [])]

    def _settings(self, options: dict) -> dict:
        environment = {"STOKER_LAB_DIR": self.place / "labs"} | options.pop("env", {})
        if self.user is None:
            return options | {"env": environment}
        return options | {"env": environment | {"HOME": self.place}, "user": self.user, "cwd": self.place}


@pytest.fixture
def place() -> Iterator[Path]:
    """A short folder for labs, as the names of Slurm's sockets are limited; open to all users."""
    folder = Path(tempfile.mkdtemp(prefix="lt-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(
    params=[
        "processes",
        pytest.param("namespaces", marks=pytest.mark.needs("namespaces")),
        pytest.param("user", marks=pytest.mark.needs("root")),  # processes mode as an ordinary user
    ]
)
def labs(request: pytest.FixtureRequest, stoker: Stoker, place: Path) -> Iterator[Labs]:
    """Starts labs in `place`; the ones that still run at the end are taken down."""
    is_user = request.param == "user"
    labs = Labs(stoker, place, "processes" if is_user else request.param, SOMEBODY if is_user else None)
    yield labs
    for file in sorted(place.glob("**/lab.json")):
        labs("down", "--name", file.parent.name, env={"STOKER_LAB_DIR": file.parent.parent})


def in_mode(mode: str) -> pytest.MarkDecorator:
    """For a test that needs `labs` in one mode only."""
    return pytest.mark.parametrize("labs", [mode], indirect=True)


def kill_all_of(folder: Path) -> None:
    """As a crash of the machine: all processes of the lab end, its guardian with them, and none gets to clean up."""
    deadline = time.monotonic() + 20
    while left := remains.look(folder).processes:
        if time.monotonic() > deadline:
            pytest.fail(f"processes of {folder} do not end: {left}")
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(int(process.split()[0]), signal.SIGKILL)
        time.sleep(0.01)
