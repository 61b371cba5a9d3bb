"""A training without a responding DNS server makes no queries and does not wait."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trained
from conftest import BIN

pytestmark = [pytest.mark.needs("namespaces"), pytest.mark.timeout(300)]

SILENT = "127.0.0.77"


@pytest.fixture
def silent_dns(tmp_path: Path):
    """inside(command...) runs it with SILENT as the only name server, which never responds."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((SILENT, 53))
    server.setblocking(False)
    (tmp_path / "resolv.conf").write_text(f"nameserver {SILENT}\noptions timeout:1 attempts:1\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: dns\npasswd: files\ngroup: files\n")
    mounts = " && ".join(f"mount --bind {tmp_path}/{name} /etc/{name}" for name in ("resolv.conf", "nsswitch.conf"))

    def inside(*command: str | Path) -> int:
        """The exit code."""
        words = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", *map(str, command)]
        return subprocess.run(words, cwd=tmp_path, timeout=200).returncode

    def questions() -> int:
        count = 0
        while True:
            try:
                server.recv(4096)
            except BlockingIOError:
                return count
            count += 1

    with server:
        yield inside, questions


def test_the_trainer_makes_no_dns_query(silent_dns, stoker, example_dataset: Path):
    inside, questions = silent_dns
    assert inside(sys.executable, "-c", "import socket; socket.getnameinfo(('192.0.2.7', 1), 0)") == 1
    assert questions() > 0, "queries are counted"
    (stoker.folder / "job.yaml").write_text(
        "train: {model: cifar-resnet20, steps: 1, batch: 8, backend: gloo}\n"
        f"data: {{train: {{source: {example_dataset}, split: train}}}}\nresources: {{ranks_per_node: 2}}\n"
    )
    assert inside(BIN / "stoker", "run", "job.yaml") == 0
    assert questions() == 0
    assert trained.the_run(stoker.folder).is_dir()
