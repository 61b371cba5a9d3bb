"""What a test may require of a machine. A test declares it with @pytest.mark.needs("name") and is skipped, with the
reason, where it is missing; a skip for any other reason fails the run (script/lib/test_summary.py).
In C++: GTEST_SKIP() << "needs root: ..."."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from ctypes.util import find_library
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


def _can_mount_fuse() -> bool:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        return False
    return _can_mount()


def _has(*programs: str) -> bool:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return all(shutil.which(program, path=path) for program in programs)


def _can_record_with_perf() -> bool:
    if not _has("perf"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["perf", "record", "-o", f"{folder}/perf.data", "true"], capture_output=True)
    return done.returncode == 0


def _has_slurm() -> bool:
    return _has("sbatch", "srun", "slurmctld", "slurmd", "munged")


def _can_make_namespaces() -> bool:
    if os.geteuid() != 0 or not _has("ip", "nsenter", "unshare"):
        return False
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "ip", "link", "add", "try", "type", "bridge"], capture_output=True
    )
    return tried.returncode == 0


def _has_charliecloud() -> bool:
    return _has("ch-run") and subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode == 0


def _has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def zarr_2_python() -> Path:
    """A Python with zarr-python 2, if it exists."""
    beside = Path(__file__).resolve().parents[1] / ".venv/zarr-2/bin/python"
    return Path(os.environ.get("STOKER_ZARR2_PYTHON", beside))


def trackers_python() -> Path:
    """A Python with TensorBoard, MLflow, W&B, Comet and pandas, if it exists."""
    beside = Path(__file__).resolve().parents[1] / ".venv/trackers/bin/python"
    return Path(os.environ.get("STOKER_TRACKERS_PYTHON", beside))


def postgres_programs() -> Path | None:
    """The folder of PostgreSQL's initdb and postgres: in PATH, or where Debian installs them."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def _has_course_scripts() -> bool:
    folder = test_data()
    return folder is not None and (folder / "batch-scripts").is_dir()


def _has_foreign_fixtures() -> bool:
    folder = os.environ.get("STOKER_FOREIGN_FIXTURES")
    return folder is not None and all((Path(folder) / name).is_dir() for name in ("parquet-testing", "libarchive"))


NEEDS = {
    "fixtures": Need(
        "STOKER_FOREIGN_FIXTURES names a folder with clones of github.com/apache/parquet-testing and libarchive/libarchive",
        _has_foreign_fixtures,
    ),
    "libarchive": Need("libarchive's library (Debian: libarchive13)", lambda: find_library("archive") is not None),
    "scripts": Need("STOKER_TEST_DATA names a folder with batch-scripts/", _has_course_scripts),
    "data": Need("STOKER_TEST_DATA names a folder with cifar10.tar", _has_test_data),
    "root": Need("the tests run as root", lambda: os.geteuid() == 0),
    "mount": Need("a tmpfs can be mounted (root, outside a locked-down container)", _can_mount),
    "fuse": Need("a FUSE filesystem can be mounted (root, /dev/fuse)", _can_mount_fuse),
    "bindfs": Need("bindfs (Debian: bindfs)", lambda: _has("bindfs")),
    "cores4": Need("four or more cores", lambda: len(os.sched_getaffinity(0)) >= 4),
    "perf": Need("perf, which may record (Debian: linux-perf)", _can_record_with_perf),
    "gpu": Need("an NVIDIA GPU", lambda: shutil.which("nvidia-smi") is not None),
    "slurm": Need("Slurm's commands and daemons (Debian: slurm-wlm)", _has_slurm),
    "slurmdbd": Need("slurmdbd and mariadbd (Debian: slurmdbd, mariadb-server)", lambda: _has("slurmdbd", "mariadbd")),
    "charliecloud": Need("Charliecloud, and user namespaces for it", _has_charliecloud),
    "lmod": Need("Lmod", lambda: Path("/usr/share/lmod/lmod/init/bash").exists()),
    "tclsh": Need("Tcl (Debian: tcl)", lambda: _has("tclsh")),
    "namespaces": Need("the kernel lets this process make network namespaces (root)", _can_make_namespaces),
    "lightning": Need("PyTorch Lightning (script/bootstrap --for peers)", lambda: _has_module("pytorch_lightning")),
    "transformers": Need(
        "transformers and accelerate (script/bootstrap --for peers)", lambda: _has_module("accelerate")
    ),
    "tensorflow": Need("TensorFlow (script/bootstrap --for peers)", lambda: _has_module("tensorflow")),
    "python3.10": Need("a Python 3.10 (python3.10 in PATH)", lambda: _runs("python3.10", "-c", "")),
    "optuna": Need(
        "Optuna and cmaes (script/bootstrap --for peers)", lambda: _has_module("optuna") and _has_module("cmaes")
    ),
    "hydra": Need("hydra-core (script/bootstrap --for peers)", lambda: _has_module("hydra")),
    "zarr2": Need("zarr-python 2 (script/bootstrap --for peers)", lambda: zarr_2_python().exists()),
    "trackers": Need(
        "TensorBoard, MLflow, W&B, Comet and pandas (script/bootstrap --for peers)", lambda: trackers_python().exists()
    ),
    "postgres": Need("PostgreSQL's server (Debian: postgresql)", lambda: postgres_programs() is not None),
    "psycopg": Need("psycopg (script/bootstrap --for peers)", lambda: _has_module("psycopg")),
    "jupyter": Need("jupyter_server beside this Python", lambda: _has_module("jupyter_server")),
    "ipykernel": Need("ipykernel (script/bootstrap --for peers)", lambda: _has_module("ipykernel")),
    "sshd": Need("OpenSSH's server and client (Debian: openssh-server)", lambda: _has("sshd", "ssh", "ssh-keygen")),
    "zsh": Need("zsh", lambda: _has("zsh")),
    "fish": Need("fish", lambda: _has("fish")),
    "groff": Need("groff", lambda: _has("groff")),
    "man": Need("man (Debian: man-db)", lambda: _has("man", "groff")),
    "chromium": Need("the chromium browser", lambda: shutil.which("chromium") is not None),
}


@cache
def is_met(name: str) -> bool:
    """Whether this machine fulfils the need `name`. KeyError for a name that is not in NEEDS."""
    return NEEDS[name].is_met()
