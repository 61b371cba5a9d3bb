"""Counts what of a lab there is on this machine: the test that nothing is left when it is gone."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Remains:
    processes: frozenset[str]
    mounts: frozenset[str]
    namespaces: frozenset[str]
    links: frozenset[str]
    files: frozenset[str]

    def __bool__(self) -> bool:
        return any((self.processes, self.mounts, self.namespaces, self.links, self.files))


def _refers_to(process: Path, folder: str) -> bool:
    """Whether a process has the lab in its environment, arguments, working folder or open files, or guards it."""
    with suppress(OSError):
        if (process / "comm").read_text() == "stoker-guard\n":
            where = f"STOKER_LAB_DIR={os.path.dirname(folder)}\0".encode() in (process / "environ").read_bytes()
            return where and os.path.basename(folder).encode() in (process / "cmdline").read_bytes().split(b"\0")
    for name in ("environ", "cmdline"):
        with suppress(OSError):
            if f"{folder}/".encode() in (content := (process / name).read_bytes()) or content.startswith(b"stoker lab"):
                return f"{folder}/".encode() in content or f"STOKER_LAB_MEMBER={folder}\0".encode() in content
            if f"STOKER_LAB_MEMBER={folder}\0".encode() in content:
                return True
    targets = [process / "cwd", process / "exe"]
    with suppress(OSError):
        targets += (process / "fd").iterdir()
    for link in targets:
        with suppress(OSError):
            if os.readlink(link).startswith(f"{folder}/"):
                return True
    return False


def look(folder: Path) -> Remains:
    """What there is of the lab in `folder` now; the test's own process and its parents are not counted."""
    name = folder.name
    own = {os.getpid(), os.getppid()}
    processes = {
        f"{process.name} {(process / 'comm').read_text().strip()}"
        for process in Path("/proc").glob("[0-9]*")
        if int(process.name) not in own and _refers_to(process, str(folder))
    }
    mounts = {line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"{folder}" in line}
    netns = Path("/run/netns")
    namespaces = (
        {entry.name for entry in netns.iterdir() if entry.name.startswith(f"{name}-")} if netns.exists() else set()
    )
    mounts |= {line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"/netns/{name}-" in line}
    links = {
        link.name for link in Path("/sys/class/net").iterdir() if link.name == name or link.name.startswith(f"{name}-")
    }
    files = {
        str(path) for place in (folder.parent, Path("/dev/shm")) if place.exists() for path in place.glob(f"*{name}*")
    }
    return Remains(*map(frozenset, (processes, mounts, namespaces, links, files)))


def all_labs() -> frozenset[str]:
    """Every link and network namespace of labs that this test run started: they have its number in their names."""
    places = [Path("/sys/class/net"), Path("/run/netns")]
    names = {f"{place}/{entry.name}" for place in places if place.exists() for entry in place.iterdir()}
    return frozenset(name for name in names if re.search(rf"/[a-z]+{os.getpid()}(-n\d+)?$", name))
