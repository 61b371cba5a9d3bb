"""Two mounts of one folder that behave like NFS clients on two nodes: each keeps attributes, names and absent names for a
minute, so what one side has changed the other side may not see. Creating a file exclusively and appending reach the folder
at once, as on an NFS server. By bindfs (FUSE)."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60


@contextmanager
def stale_mounts(count: int = 2) -> Iterator[list[Path]]:
    """The mounts; they are gone at the end, with the folder."""
    place = Path(tempfile.mkdtemp(prefix="stoker-mounts-"))
    (place / "server").mkdir()
    mounts = []
    try:
        for number in range(count):
            mount = place / f"client-{number}"
            mount.mkdir()
            cached = ",".join(f"{name}_timeout={SECONDS}" for name in ("attr", "entry", "negative", "ac_attr"))
            subprocess.run(["bindfs", "-o", cached, place / "server", mount], check=True)
            mounts.append(mount)
        yield mounts
    finally:
        for mount in mounts:
            subprocess.run(["umount", "-l", mount], check=True)
        shutil.rmtree(place, ignore_errors=True)
