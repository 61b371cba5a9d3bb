"""A dataset on a filesystem that cannot map files shared, such as FUSE mounts with direct I/O."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("fuse", "bindfs")


@pytest.fixture
def mounted(example_dataset: Path, tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "mount"
    mount.mkdir()
    subprocess.run(["bindfs", "-o", "direct_io", example_dataset, mount], check=True)
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


def test_it_is_verified_described_and_staged(stoker, mounted: Path, tmp_path: Path):
    stoker("data", "verify", mounted)
    stoker("data", "info", mounted)
    stoker("cache", "stage", mounted, "--cache", tmp_path / "cache")
    (version,) = (tmp_path / "cache/datasets").iterdir()
    for shard in mounted.glob("*.tar"):
        assert (version / shard.name).read_bytes() == shard.read_bytes()
