"""Fetches the headers that code on libtorch with CUDA includes: c10/cuda, ATen/cuda/CUDAGraph.h, ProcessGroupNCCL.hpp.

    python3 script/lib/cuda_headers.py FOLDER [--torch 2.13]

They are in wheels of 1.4 GB on PyPI. Only the headers are downloaded, 1 MB, to FOLDER/include. CUDA 13.0 serves every torch;
NCCL has the version that this torch requires, because objects of torch contain its structures."""

import argparse
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from remote_zip import TIMEOUT_S, FetchError, RangesRefusedError, copy_member, open_zip

SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"
STAMP = "cuda-headers.json"


@dataclass(frozen=True)
class Wheel:
    package: str
    version: str
    sha256: str  # of the wheel for Linux on x86_64
    within: str = ""  # only this folder of include/

    @property
    def file_prefix(self) -> str:
        return f"{self.package.replace('-', '_')}-{self.version}-"


CUDA = (
    Wheel("nvidia-cuda-runtime", "13.0.96", "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"),
    Wheel("nvidia-cuda-crt", "13.0.88", "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"),
    Wheel("nvidia-cuda-cccl", "13.0.85", "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649", "nv/"),
    Wheel("nvidia-cublas", "13.1.0.3", "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171"),
    Wheel("nvidia-cusparse", "12.6.3.3", "2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b"),
    Wheel("nvidia-cusolver", "12.0.4.66", "0a759da5dea5c0ea10fd307de75cdeb59e7ea4fcb8add0924859b944babf1112"),
)
# By the version of torch that requires it.
NCCL = {
    "2.11": Wheel("nvidia-nccl-cu13", "2.28.9", "e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42"),
    "2.12": Wheel("nvidia-nccl-cu13", "2.29.7", "edd81538446786ec3b73972543e53bb43bcaf0bfc8ef76cb679fcc390ffe136d"),
    "2.13": Wheel("nvidia-nccl-cu13", "2.29.7", "edd81538446786ec3b73972543e53bb43bcaf0bfc8ef76cb679fcc390ffe136d"),
}


def pip_settings() -> dict[str, str]:
    """The index and the certificates that pip uses."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    found = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        found[key.split(".")[-1].strip()] = value.strip().strip("'\"")
    for key in ("index-url", "cert"):
        if value := os.environ.get("PIP_" + key.upper().replace("-", "_"), ""):
            found[key] = value
    return found


def tls_context(certificates: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if certificates:
        context.load_verify_locations(certificates)
    return context


def find_wheel(wheel: Wheel, index: str, tls: ssl.SSLContext) -> str:
    """Address of the wheel. Raises FetchError unless the index lists it with the hash of the table."""
    page = f"{index.rstrip('/')}/{wheel.package}/"
    request = urllib.request.Request(page, headers={"Accept": f"{SIMPLE_JSON}, text/html;q=0.1"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=tls) as response:
        body, kind, base = response.read().decode(), response.headers.get_content_type(), str(response.url)
    for name, address, sha256 in listed_files(body, kind):
        if name.startswith(wheel.file_prefix) and name.endswith("_x86_64.whl"):
            if sha256 != wheel.sha256:
                raise FetchError(f"{page}: {name} has SHA-256 {sha256}, expected {wheel.sha256}")
            return urllib.parse.urljoin(base, address)
    raise FetchError(f"{page}: has no {wheel.file_prefix}*_x86_64.whl")


def listed_files(body: str, kind: str) -> list[tuple[str, str, str]]:
    """Name, address and SHA-256 of each file on a package's page of an index, as JSON or HTML."""
    if kind == SIMPLE_JSON:
        return [(file["filename"], file["url"], file["hashes"].get("sha256", "")) for file in json.loads(body)["files"]]
    files = []
    for link in re.findall(r"<a\s[^>]*href=[\"']([^\"']+)[\"']", body):
        address, _, fragment = link.replace("&amp;", "&").partition("#")
        name = urllib.parse.unquote(PurePosixPath(urllib.parse.urlsplit(address).path).name)
        files.append((name, address, fragment.removeprefix("sha256=")))
    return files


def headers_of(archive: zipfile.ZipFile, within: str) -> list[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """Members below include/ with their paths there, in the order of the file."""
    found = []
    for member in sorted(archive.infolist(), key=lambda member: member.header_offset):
        parts = PurePosixPath(member.filename).parts
        if member.is_dir() or "include" not in parts:
            continue
        path = PurePosixPath(*parts[parts.index("include") + 1 :])
        if ".." in path.parts or path.is_absolute():
            raise FetchError(f"member {member.filename} would leave the folder")
        if str(path).startswith(within):
            found.append((member, path))
    return found


def fetch(wheel: Wheel, url: str, target: Path, tls: ssl.SSLContext | None = None) -> int:
    """Number of headers that were written."""
    with open_zip(url, wheel.sha256, tls) as archive:
        headers = headers_of(archive, wheel.within)
        for member, path in headers:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            with open(target / path, "wb") as out:
                copy_member(archive, member, out)
    if not headers:
        raise FetchError(f"{url}: no headers in include/{wheel.within}")
    return len(headers)


def fetch_all(folder: Path, wheels: Sequence[Wheel]) -> None:
    """Fills folder/include. The stamp is written last: without it, everything is fetched again."""
    stamp, wanted = folder / STAMP, [asdict(wheel) for wheel in wheels]
    if stamp.exists() and json.loads(stamp.read_text()) == wanted and (folder / "include").is_dir():
        return
    stamp.unlink(missing_ok=True)
    settings = pip_settings()
    tls = tls_context(settings.get("cert", ""))
    incoming = folder / "include.incomplete"
    shutil.rmtree(incoming, ignore_errors=True)
    for wheel in wheels:
        url = find_wheel(wheel, settings.get("index-url") or "https://pypi.org/simple", tls)
        print(f"{wheel.package} {wheel.version}: {fetch(wheel, url, incoming, tls)} headers", file=sys.stderr)
    shutil.rmtree(folder / "include", ignore_errors=True)
    incoming.rename(folder / "include")
    stamp.write_text(json.dumps(wanted, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torch", choices=sorted(NCCL), default="2.13")
    options = parser.parse_args()
    try:
        fetch_all(options.folder, (*CUDA, NCCL[options.torch]))
    except (FetchError, RangesRefusedError, OSError, zipfile.BadZipFile) as error:
        print(f"cuda_headers.py: {error}", file=sys.stderr)
        return 1
    print(options.folder / "include")
    return 0


if __name__ == "__main__":
    sys.exit(main())
