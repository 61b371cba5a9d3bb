"""script/lib/cuda_headers.py and the reader of zip files on a server, with servers that answer range requests, ignore them,
or send less than they announce."""

import contextlib
import hashlib
import http.server
import io
import json
import random
import re
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import cuda_headers
import pytest
import remote_zip
from cuda_headers import Wheel
from remote_zip import FetchError

HEADERS = {"nvidia/cu13/include/a.h": b"#define A 1\n" * 500, "nvidia/cu13/include/nv/target": b"#define NV\n"}


def wheel_bytes(members: dict[str, bytes] = HEADERS, library_bytes: int = 2_000_000) -> bytes:
    """A wheel whose library is much larger than its headers, and does not compress."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr("nvidia/cu13/lib/libx.so", random.Random(1).randbytes(library_bytes))
    return packed.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `files`, in one of the `ways`: ranges, whole, short (fewer bytes of a range), other (another range)."""

    files: dict[str, tuple[str, bytes]]
    way: str
    sent: int

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        kind, body = type(self).files[self.path]
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not asked or type(self).way == "whole":
            self.answer(200, kind, body)
            return
        first, last = int(asked[1]), min(int(asked[2]), len(body) - 1)
        part = body[first : last + 1]
        if type(self).way == "short" and len(part) > 1:
            part = part[:-1]
        shift = 1 if type(self).way == "other" else 0
        self.answer(206, kind, part, f"bytes {first + shift}-{last + shift}/{len(body)}")

    def answer(self, status: int, kind: str, body: bytes, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)
        type(self).sent += len(body)


@contextlib.contextmanager
def served(files: dict[str, tuple[str, bytes]], way: str = "ranges") -> Iterator[tuple[str, type[Handler]]]:
    handler = type("ThisHandler", (Handler,), {"files": files, "way": way, "sent": 0})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", handler
        finally:
            server.shutdown()
            thread.join()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_headers(url: str, sha: str) -> dict[str, bytes]:
    with remote_zip.open_zip(url, sha) as archive:
        return {name: archive.read(name) for name in HEADERS}


def test_ranges_read_only_a_part_of_the_file():
    wheel = wheel_bytes(library_bytes=20_000_000)
    with served({"/x.whl": ("application/zip", wheel)}) as (url, handler):
        assert read_headers(f"{url}/x.whl", sha256(wheel)) == HEADERS
        assert handler.sent < 2_000_000


def test_a_server_without_ranges_sends_the_whole_file():
    wheel = wheel_bytes()
    with served({"/x.whl": ("application/zip", wheel)}, "whole") as (url, handler):
        assert read_headers(f"{url}/x.whl", sha256(wheel)) == HEADERS
        assert handler.sent >= len(wheel)


def test_a_whole_file_with_another_hash_is_refused():
    wheel = wheel_bytes()
    with (
        served({"/x.whl": ("application/zip", wheel[:-10])}, "whole") as (url, _),
        pytest.raises(FetchError, match=f"SHA-256 {sha256(wheel)} expected"),
    ):
        read_headers(f"{url}/x.whl", sha256(wheel))


@pytest.mark.parametrize(("way", "message"), [("short", "bytes arrived"), ("other", "asked for bytes")])
def test_a_truncated_or_different_range_is_refused(way, message):
    wheel = wheel_bytes()
    with (
        served({"/x.whl": ("application/zip", wheel)}, way) as (url, _),
        pytest.raises(FetchError, match=message),
    ):
        read_headers(f"{url}/x.whl", sha256(wheel))


def test_a_member_with_another_crc_is_refused(tmp_path: Path):
    wheel = bytearray(wheel_bytes())
    at = wheel.index(b"PK\x01\x02") + 16  # CRC of the first member in the archive's directory
    wheel[at] ^= 1
    entry = Wheel("nvidia-x", "1.0", sha256(bytes(wheel)))
    with (
        served({"/x.whl": ("application/zip", bytes(wheel))}) as (url, _),
        pytest.raises(zipfile.BadZipFile, match="CRC"),
    ):
        cuda_headers.fetch(entry, f"{url}/x.whl", tmp_path)


def test_members_outside_the_folder_are_refused(tmp_path: Path):
    wheel = wheel_bytes({"nvidia/include/../../evil.h": b"x"})
    with (
        served({"/x.whl": ("application/zip", wheel)}) as (url, _),
        pytest.raises(FetchError, match="would leave the folder"),
    ):
        cuda_headers.fetch(Wheel("nvidia-x", "1.0", sha256(wheel)), f"{url}/x.whl", tmp_path)
    assert list(tmp_path.iterdir()) == []


def index_page(kind: str, name: str, sha: str) -> bytes:
    if kind == cuda_headers.SIMPLE_JSON:
        return json.dumps({"files": [{"filename": name, "url": f"../{name}", "hashes": {"sha256": sha}}]}).encode()
    return f'<html><a href="../{name}#sha256={sha}">{name}</a></html>'.encode()


@pytest.mark.parametrize("kind", [cuda_headers.SIMPLE_JSON, "text/html"])
def test_headers_are_fetched_from_the_index_of_pip_once(tmp_path: Path, monkeypatch, kind):
    wheel = wheel_bytes()
    entry = Wheel("nvidia-x", "1.0", sha256(wheel), "nv/")
    name = "nvidia_x-1.0-py3-none-manylinux_2_27_x86_64.whl"
    page = index_page(kind, name, entry.sha256)
    files = {"/nvidia-x/": (kind, page), f"/{name}": ("application/zip", wheel)}
    with served(files) as (url, handler):
        monkeypatch.setenv("PIP_INDEX_URL", url)
        cuda_headers.fetch_all(tmp_path, [entry])
        sent = handler.sent
        cuda_headers.fetch_all(tmp_path, [entry])
        assert handler.sent == sent
    assert [path.name for path in (tmp_path / "include").rglob("*") if path.is_file()] == ["target"]


def test_another_hash_in_the_index_is_refused(monkeypatch):
    name = "nvidia_x-1.0-py3-none-manylinux_2_27_x86_64.whl"
    page = index_page("text/html", name, "0" * 64)
    with served({"/nvidia-x/": ("text/html", page)}) as (url, _), pytest.raises(FetchError, match="has SHA-256 000"):
        cuda_headers.find_wheel(Wheel("nvidia-x", "1.0", "1" * 64), url, cuda_headers.tls_context(""))
