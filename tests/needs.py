"""What a test may ask of a machine. A test says so with @pytest.mark.needs("name") and is skipped, with the
reason, where it is not given; a skip for any other reason fails the run (script/lib/test_summary.py).
In C++: GTEST_SKIP() << "needs root: ..."."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Need:
    sentence: str
    is_met: Callable[[], bool]


def test_data() -> Path | None:
    """The folder with the large data sets, or None."""
    folder = os.environ.get("STOKER_TEST_DATA")
    return Path(folder) if folder else None


def _has_test_data() -> bool:
    folder = test_data()
    return folder is not None and (folder / "cifar10.tar").is_file()


def _can_mount() -> bool:
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True)
        if mounted.returncode != 0:
            return False
        subprocess.run(["umount", folder], check=True)
    return True


NEEDS = {
    "data": Need("STOKER_TEST_DATA names a folder with cifar10.tar", _has_test_data),
    "root": Need("the tests run as root", lambda: os.geteuid() == 0),
    "mount": Need("a tmpfs can be mounted (root, outside a locked-down container)", _can_mount),
    "cores4": Need("four or more cores", lambda: len(os.sched_getaffinity(0)) >= 4),
    "gpu": Need("an NVIDIA GPU", lambda: shutil.which("nvidia-smi") is not None),
    "slurm": Need("Slurm's commands", lambda: shutil.which("sbatch") is not None),
    "chromium": Need("the chromium browser", lambda: shutil.which("chromium") is not None),
}


@cache
def is_met(name: str) -> bool:
    """Whether this machine gives what `name` stands for. KeyError for a name that is not in NEEDS."""
    return NEEDS[name].is_met()
