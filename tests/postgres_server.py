"""A PostgreSQL server for a test. Mark the test @pytest.mark.needs("postgres")."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import needs
from running import wait_until


@contextmanager
def running(folder: Path) -> Iterator[Path]:
    """A server with the user `ana`, which listens on a socket in the folder. The folder is created; an earlier server's
    folder has its databases."""
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    programs = needs.postgres_programs()
    user: dict = {}
    if os.geteuid() == 0:  # which PostgreSQL refuses
        os.chown(folder, 65534, 65534)
        user = {"user": 65534, "group": 65534, "extra_groups": []}
    options = {"cwd": folder, "check": True, "capture_output": True} | user
    if is_new:
        subprocess.run([programs / "initdb", "-D", folder / "data", "-U", "ana", "-A", "trust", "--no-sync"], **options)
    log = (folder / "log").open("ab")
    command = [programs / "postgres", "-D", folder / "data", "-k", folder, "-c", "listen_addresses="]
    process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **user)
    try:
        wait_until(lambda: (folder / ".s.PGSQL.5432").exists(), "PostgreSQL listens")
        yield folder
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
