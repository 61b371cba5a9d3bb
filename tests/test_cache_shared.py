"""Caches of several users on one node: shards are copied from each other, and forged bytes reach no reader."""

import json
import os
import shutil
from pathlib import Path

import pytest
from site_profiles import site_with_caches

pytestmark = pytest.mark.needs("root")

OWNER, READER = 65531, 65532


@pytest.fixture
def node(open_folder: Path, example_dataset: Path) -> Path:
    """A node's disk, /node/disk, and a dataset in /node/photos."""
    os.chmod(open_folder, 0o755)
    disk = open_folder / "disk"
    disk.mkdir()
    os.chmod(disk, 0o1777)
    shutil.copytree(example_dataset, open_folder / "photos")
    for path in open_folder.rglob("*"):
        if path != disk:
            os.chmod(path, 0o755 if path.is_dir() else 0o644)
    return open_folder


def stage(stoker, node: Path, user: int, *words: object, code: int = 0) -> dict:
    cache = node / f"disk/stoker-cache-{user}"
    done = stoker(
        "cache", "stage", node / "photos", "--cache", cache, "--reserve", "0B", "--json", *words,
        user=user, code=code, cwd=node, env={"HOME": "/nonexistent"},
    )  # fmt: skip
    return json.loads(done.out)


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.tar"))}


def cached(node: Path, user: int) -> list[Path]:
    return sorted((node / f"disk/stoker-cache-{user}/shards").iterdir())


def test_shards_of_a_different_user_are_copied_instead_of_the_source(stoker, node):
    right = shards(node / "photos")
    first = stage(stoker, node, OWNER, "--share")
    assert first["from_other_users_bytes"] == 0
    # The same sizes, so that only the bytes show what was read.
    for path in (node / "photos").glob("*.tar"):
        path.write_bytes(bytes(path.stat().st_size))
    second = stage(stoker, node, READER)
    assert second["from_other_users_bytes"] == second["copied_bytes"] == first["copied_bytes"] > 0
    assert shards(Path(second["folder"])) == right
    for path in cached(node, READER):
        assert path.stat().st_uid == READER


def test_the_forecast_counts_shards_of_other_users(stoker, node):
    staged = stage(stoker, node, OWNER, "--share")
    words = ("cache", "why", node / "photos", "--cache", node / f"disk/stoker-cache-{READER}")
    done = stoker(*words, user=READER, cwd=node, env={"HOME": "/nonexistent"})
    assert " 0 B in the cache, " in done.out and " in caches of other users\n" in done.out
    facts = json.loads(stoker(*words, "--json", user=READER, cwd=node, env={"HOME": "/nonexistent"}).out)
    assert (facts["bytes_in_cache"], facts["bytes_in_shared_caches"]) == (0, staged["copied_bytes"])
    own = ("cache", "why", node / "photos", "--cache", node / f"disk/stoker-cache-{OWNER}", "--json")
    found = json.loads(stoker(*own, user=OWNER, cwd=node, env={"HOME": "/nonexistent"}).out)
    assert (found["bytes_in_cache"], found["bytes_in_shared_caches"]) == (staged["copied_bytes"], 0)


def test_nothing_is_shared_unless_asked_for(stoker, node):
    stage(stoker, node, OWNER)
    report = stage(stoker, node, READER)
    assert report["from_other_users_bytes"] == 0
    assert shards(Path(report["folder"])) == shards(node / "photos")


def test_other_users_need_the_hash_of_a_shard(stoker, node):
    stage(stoker, node, OWNER, "--share")
    cache = node / f"disk/stoker-cache-{OWNER}"
    key = cached(node, OWNER)[0].name
    for path, is_open in [(cache, False), (cache / "shards", False), (cache / "datasets", False),
                          (cache / "leases", False), (cache / "uses", False), (cache / "shards" / key, True)]:  # fmt: skip
        command = f"head -c 1 {path} | wc -c | grep 1 || ls {path}"
        done = stoker("-c", command, program=Path("/bin/sh"), user=READER, cwd=node)
        assert (done.code == 0) == is_open, path


def test_forged_bytes_reach_no_reader(stoker, node):
    stage(stoker, node, OWNER, "--share")
    for path in cached(node, OWNER):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.chmod(0o644)
        path.write_bytes(bytes(data))
    report = stage(stoker, node, READER)
    assert report["from_other_users_bytes"] == 0
    assert report["left_at_source"] == []
    assert shards(Path(report["folder"])) == shards(node / "photos")


def link(path: Path) -> None:
    secret = path.parents[2] / "secret"
    secret.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(secret)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o666)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def shorter(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("change", [link, pipe, directory, shorter])
def test_a_name_that_is_no_shard_is_neither_read_nor_waited_for(stoker, node, change):
    size = stage(stoker, node, OWNER, "--share")["copied_bytes"]
    first, *rest = cached(node, OWNER)
    lost = first.stat().st_size
    change(first)
    report = stage(stoker, node, READER)
    assert report["from_other_users_bytes"] == size - lost > 0
    assert len(rest) > 0
    assert shards(Path(report["folder"])) == shards(node / "photos")


def test_a_cache_that_leads_elsewhere_is_not_used(stoker, node):
    stage(stoker, node, OWNER, "--share")
    shutil.move(node / f"disk/stoker-cache-{OWNER}/shards", node / "elsewhere")
    (node / f"disk/stoker-cache-{OWNER}/shards").symlink_to(node / "elsewhere")
    assert stage(stoker, node, READER)["from_other_users_bytes"] == 0


def test_a_site_shares_the_caches_of_all_users(stoker, node):
    env = site_with_caches(node, f"{node}/disk", "shared: true") | {"HOME": "/nonexistent"}
    (node / "job.yaml").write_text(
        f"name: placed\nrun: 'true'\nsite: here\ndata: {{train: {{source: {node}/photos, place: local}}}}\n"
    )
    stoker("cache", "stage", node / "photos", "--reserve", "0B", user=OWNER, cwd=node, env=env, code=0)
    work = node / "work"
    work.mkdir()
    os.chown(work, READER, READER)
    done = stoker("run", node / "job.yaml", "--set", f"record.directory={work}", user=READER, cwd=work, env=env, code=0)
    assert "of them from other users' caches" in done.err
