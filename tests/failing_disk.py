"""A filesystem that fails as disks fail: a folder seen through FUSE, where reading chosen bytes gives an I/O error or never
ends. It uses /dev/fuse directly, read only, in a separate process, so that the tests never wait for it.

    python failing_disk.py SOURCE FOLDER FAULTS     serves until it is unmounted; FAULTS has lines
                                                    "error|hang BEGIN END PATH", read anew for each request"""

import ctypes
import errno
import os
import select
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 26, 27, 28, 29, 36, 38, 42
REQUEST = struct.Struct("<IIQQIIIHH")
READING = struct.Struct("<QQIIQII")
FOR_EVER = 3600
LONGEST_REQUEST = 1 << 20


class Server:
    def __init__(self, source: Path, faults: Path, device: int):
        self.source, self.faults, self.device = source, faults, device
        self.paths = {1: ""}
        self.numbers = {"": 1}
        self.waiting: dict[int, tuple[int, bytes]] = {}  # requests that hang: node and body, by their number

    def serve(self) -> None:
        while True:
            if select.select([self.device], [], [], 0.02 if self.waiting else None)[0]:
                try:
                    request = os.read(self.device, LONGEST_REQUEST)
                except OSError as error:
                    if error.errno == errno.ENODEV:  # unmounted
                        return
                    if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                        continue
                    raise
                _, kind, unique, node, *_ = REQUEST.unpack_from(request)
                self.take(kind, unique, node, request[REQUEST.size :])
            for unique, (node, body) in list(self.waiting.items()):
                if self.fault_of(node, body) != "hang":
                    del self.waiting[unique]
                    self.take(READ, unique, node, body)

    def take(self, kind: int, unique: int, node: int, body: bytes) -> None:
        if kind in (FORGET, BATCH_FORGET):
            return
        if kind == INTERRUPT:
            (waited_for,) = struct.unpack_from("<Q", body)
            if self.waiting.pop(waited_for, None):
                self.answer(waited_for, errno.EINTR)
            return
        if kind == READ and self.fault_of(node, body) == "hang":
            self.waiting[unique] = (node, body)
            return
        try:
            self.answer(unique, 0, self.result(kind, node, body))
        except OSError as error:
            self.answer(unique, error.errno or errno.EIO)

    def answer(self, unique: int, error: int, data: bytes = b"") -> None:
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
        except OSError as failed:
            if failed.errno != errno.ENOENT:  # whoever asked is gone
                raise

    def result(self, kind: int, node: int, body: bytes) -> bytes:
        if kind == INIT:
            ahead = struct.unpack_from("<I", body, 8)[0]
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, ahead, 0, 12, 9, 4096, 1, 0, 0, 0)
        path = self.paths[node]
        if kind == LOOKUP:
            name = os.path.join(path, os.fsdecode(body.rstrip(b"\0")))
            attributes = self.attributes(name)
            return struct.pack("<QQQQII", self.number_of(name), 0, FOR_EVER, FOR_EVER, 0, 0) + attributes
        if kind == GETATTR:
            return struct.pack("<QII", FOR_EVER, 0, 0) + self.attributes(path)
        if kind in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if kind == READ:
            if self.fault_of(node, body) == "error":
                raise OSError(errno.EIO, path)
            _, offset, size, *_ = READING.unpack_from(body)
            with (self.source / path).open("rb") as file:
                return os.pread(file.fileno(), size, offset)
        if kind == READDIR:
            return self.names_in(path, body)
        if kind == STATFS:
            return struct.pack("<QQQQQIIII24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        if kind in (RELEASE, RELEASEDIR, FLUSH, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, "not served")

    def number_of(self, path: str) -> int:
        number = self.numbers.setdefault(path, len(self.numbers) + 1)
        self.paths[number] = path
        return number

    def attributes(self, path: str) -> bytes:
        found = os.lstat(self.source / path)
        times = [int(seconds) for seconds in (found.st_atime, found.st_mtime, found.st_ctime)]
        sizes = (self.number_of(path), found.st_size, found.st_blocks)
        return struct.pack("<6Q10I", *sizes, *times, 0, 0, 0, found.st_mode, found.st_nlink, 0, 0, 0, 4096, 0)

    def names_in(self, path: str, body: bytes) -> bytes:
        _, begin, size, *_ = READING.unpack_from(body)
        found = b""
        for at, name in list(enumerate(sorted(os.listdir(self.source / path))))[begin:]:
            encoded = os.fsencode(name)
            kind = stat.S_IFMT(os.lstat(self.source / path / name).st_mode) >> 12
            entry = struct.pack("<QQII", self.number_of(os.path.join(path, name)), at + 1, len(encoded), kind) + encoded
            entry += bytes(-len(entry) % 8)
            if len(found) + len(entry) > size:
                break
            found += entry
        return found

    def fault_of(self, node: int, body: bytes) -> str | None:
        _, offset, size, *_ = READING.unpack_from(body)
        for line in self.faults.read_text().splitlines():
            kind, begin, end, path = line.split(" ", 3)
            if path == self.paths[node] and offset < int(end) and offset + size > int(begin):
                return kind
        return None


def mount(folder: Path) -> int:
    """The device through which the mounted filesystem is served."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    read_only, no_suid, no_dev = 1, 2, 4
    if libc.mount(b"failing-disk", os.fsencode(folder), b"fuse", read_only | no_suid | no_dev, options) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    return device


class FailingDisk:
    """A folder seen through the filesystem, and what is to fail in it."""

    def __init__(self, folder: Path, faults: Path):
        self.folder, self._faults = folder, faults

    def fail(self, path: str, begin: int = 0, end: int = 1 << 62) -> None:
        """Reading any of these bytes of the file is an I/O error from now on."""
        self._set(f"error {begin} {end} {path}\n")

    def hang(self, path: str) -> None:
        """Reading the file does not end."""
        self._set(f"hang 0 {1 << 62} {path}\n")

    def mend(self) -> None:
        self._set("")

    def _set(self, text: str) -> None:
        """At once: the server never reads half a line."""
        new = self._faults.with_suffix(".new")
        new.write_text(text)
        new.rename(self._faults)


@contextmanager
def failing_disk(source: Path, box: Path) -> Iterator[FailingDisk]:
    """`source` seen through such a filesystem, with nothing failing yet."""
    folder, faults = box / "disk", box / "faults"
    folder.mkdir(parents=True)
    faults.write_text("")
    server = subprocess.Popen(
        [sys.executable, __file__, source, folder, faults], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "mounted\n"
        yield FailingDisk(folder, faults)
    finally:
        subprocess.run(["umount", "-l", folder])
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()


if __name__ == "__main__":
    source, folder, faults = map(Path, sys.argv[1:])
    server = Server(source, faults, mount(folder))
    print("mounted", flush=True)
    server.serve()
