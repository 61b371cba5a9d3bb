"""Reads members of a zip file on an HTTP server without downloading all of it, if the server answers range requests."""

import hashlib
import http.client
import io
import re
import shutil
import ssl
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

TIMEOUT_S = 60
BUFFER_BYTES = 1 << 19  # the headers of a wheel are next to each other
CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class FetchError(Exception):
    """What is wrong with an answer. Not an OSError, which zipfile would report as a file that is no zip file."""


class RangesRefusedError(Exception):
    """The server did not send a part of the file."""


class Response(Protocol):
    status: int
    headers: dict[str, str]

    def read(self, size: int = -1) -> bytes: ...


class RemoteFile(io.RawIOBase):
    """A file on an HTTP server, read by range requests. Raises RangesRefusedError, or FetchError for a
    truncated answer."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None):
        self.url, self.tls = url, tls
        self.position, self.size, self.requests = 0, 0, 0
        self._fetch(0, 1)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise OSError(f"{self.url}: seek before the start of the file")
        self.position = base + offset
        return self.position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted = min(len(buffer), self.size - self.position)
        if wanted <= 0:
            return 0
        buffer[:wanted] = self._fetch(self.position, wanted)
        self.position += wanted
        return wanted

    def _fetch(self, first: int, count: int) -> bytes:
        headers = {"Range": f"bytes={first}-{first + count - 1}", "Accept-Encoding": "identity"}
        request = urllib.request.Request(self.url, headers=headers)
        self.requests += 1
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self.tls) as response:
                self._check_range(response, first, count)
                return read_exactly(response, count, self.url)
        except urllib.error.HTTPError as error:
            raise RangesRefusedError(self.url) from error
        except (OSError, http.client.HTTPException) as error:
            raise FetchError(f"{self.url}: {error}") from error

    def _check_range(self, response: Response, first: int, count: int) -> None:
        if response.status != 206:
            raise RangesRefusedError(self.url)
        sent = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if not sent or (int(sent[1]), int(sent[2])) != (first, first + count - 1):
            raise FetchError(f"{self.url}: asked for bytes {first}-{first + count - 1}, got {sent and sent[0]}")
        if self.size not in (0, int(sent[3])):
            raise FetchError(f"{self.url}: the size changed from {self.size} to {sent[3]} bytes")
        self.size = int(sent[3])


def read_exactly(response: Response, count: int, url: str) -> bytes:
    """REQUIRES: the response has `count` bytes. Raises FetchError if it has fewer or more."""
    data = response.read(count + 1)
    if len(data) != count:
        raise FetchError(f"{url}: {len(data)} of {count} bytes arrived")
    return data


def download(url: str, sha256: str, target: IO[bytes], tls: ssl.SSLContext | None = None) -> None:
    """Writes the whole file to `target`. Raises FetchError unless it has this SHA-256."""
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=TIMEOUT_S, context=tls) as response:
        while block := response.read(1 << 20):
            digest.update(block)
            target.write(block)
    if digest.hexdigest() != sha256:
        raise FetchError(f"{url}: SHA-256 {sha256} expected, found {digest.hexdigest()} (incomplete or replaced)")
    target.seek(0)


@contextmanager
def open_zip(url: str, sha256: str, tls: ssl.SSLContext | None = None) -> Iterator[zipfile.ZipFile]:
    """The zip file at `url`. Only a complete download can be compared with `sha256`; members have a CRC in any case."""
    with tempfile.TemporaryFile() as whole:
        try:
            source: IO[bytes] = io.BufferedReader(RemoteFile(url, tls), BUFFER_BYTES)
        except RangesRefusedError:
            download(url, sha256, whole, tls)
            source = whole
        with source, zipfile.ZipFile(source) as archive:
            yield archive


def copy_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: IO[bytes]) -> None:
    """Raises zipfile.BadZipFile if the content does not have the CRC of the archive's directory."""
    with archive.open(member) as source:
        shutil.copyfileobj(source, target)
