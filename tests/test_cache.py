"""stoker cache: shards are copied once, verified, evicted and never lost, whatever happens to the processes and the disk."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from running import wait_until
from site_profiles import site_with_caches


@pytest.fixture
def source(example_dataset: Path, tmp_path: Path) -> Path:
    """A dataset of several shards."""
    return shutil.copytree(example_dataset, tmp_path / "photos")


@pytest.fixture
def many(stoker, example_images: Path) -> Path:
    """The same images in some forty shards."""
    stoker("data", "pack", example_images, "many", "--shards", "20", code=0)
    return stoker.folder / "many"


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.tar"))}


def stage(stoker, source: Path, *words: object, code: int = 0) -> dict:
    done = stoker("cache", "stage", source, "--cache", "cache", "--reserve", "0B", *words, "--json", code=code)
    return json.loads(done.out)


def links_to_cache(folder: Path) -> int:
    return sum("shards/" in os.readlink(path) for path in folder.glob("*.tar"))


def test_a_script_reads_the_printed_folder(stoker, source):
    done = stoker("cache", "stage", source, "--cache", "cache", code=0)
    (folder,) = done.out.splitlines()
    assert shards(Path(folder)) == shards(source)
    assert stoker("data", "verify", folder, "--full", code=0).out.endswith("every byte verified\n")


@pytest.fixture
def site_cache(tmp_path: Path):
    """Variables for a site that names a folder for caches, with room for three shards."""

    def write(path: str) -> dict[str, object]:
        return site_with_caches(tmp_path, path, "quota: 3MB") | {"NVME": tmp_path / "nvme"}

    return write


def test_a_site_names_the_folder_and_the_quota(stoker, many, site_cache, tmp_path):
    env = site_cache("$NVME/a")
    done = stoker("cache", "stage", many, "--reserve", "0B", "--json", env=env, code=0)
    report = json.loads(done.out)
    assert Path(report["folder"]).parents[1] == tmp_path / f"nvme/a/stoker-cache-{os.getuid()}"
    assert 0 < report["copied"] < report["shards"]
    assert all("within its limits" in left["reason"] for left in report["left_at_source"])
    more = stoker("cache", "stage", many, "--reserve", "0B", "--quota", "1GB", "--json", env=env, code=0)
    assert json.loads(more.out)["left_at_source"] == []


def test_a_site_folder_with_an_unset_variable_is_not_used(stoker, source, site_cache, tmp_path):
    env = site_cache("$NO_SUCH_DISK/a") | {"TMPDIR": tmp_path / "local", "SLURM_TMPDIR": None}
    (tmp_path / "local").mkdir()
    done = stoker("cache", "stage", source, "--reserve", "0B", env=env, code=0)
    assert Path(done.out.strip()).is_relative_to(tmp_path / "local")


def test_the_variable_wins_over_the_site(stoker, source, site_cache, tmp_path):
    env = site_cache("$NVME/a") | {"STOKER_CACHE": tmp_path / "mine"}
    done = stoker("cache", "stage", source, "--reserve", "0B", env=env, code=0)
    assert Path(done.out.strip()).is_relative_to(tmp_path / "mine")


def test_only_the_shards_of_a_split_are_copied(stoker, source):
    report = stage(stoker, source, "--split", "test")
    folder = Path(report["folder"])
    assert report["shards"] == report["copied"] == links_to_cache(folder) == len(list(source.glob("test-*.tar")))
    assert shards(folder) == shards(source)
    assert "tset" in stoker("cache", "stage", source, "--split", "tset", code=1).err


def test_a_dataset_is_in_use_until_its_script_ends(stoker, source, tmp_path):
    go = tmp_path / "go"
    script = f"{stoker.path} cache stage {source} --cache cache >&2 && echo ready && while ! [ -e {go} ]; do sleep 0.05; done"
    shell = stoker.start("-c", script, program=Path("/bin/bash"))
    assert shell.stdout.readline() == "ready\n"
    done = stoker("cache", "purge", source, "--cache", "cache", code=1)
    assert f"process {shell.pid} on" in done.err
    go.touch()
    shell.wait()
    assert "removed" in stoker("cache", "purge", source, "--cache", "cache", code=0).out


def test_a_killed_script_holds_nothing(stoker, source):
    script = f"{stoker.path} cache stage {source} --cache cache --json; sleep 1000"
    shell = stoker.start("-c", script, program=Path("/bin/bash"))
    shell.stdout.readline()
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    assert "removed" in stoker("cache", "purge", "--all", "--cache", "cache", code=0).out


@pytest.mark.needs("mount")
def test_what_a_full_disk_cannot_hold_is_read_from_the_source(stoker, many, tmpfs):
    disk = tmpfs("6M")
    done = stoker("cache", "stage", many, "--cache", disk / "cache", "--reserve", "0B", "--json", code=0)
    report = json.loads(done.out)
    assert 0 < report["copied"] < report["shards"]
    assert report["copied"] + len(report["left_at_source"]) == report["shards"]
    assert shards(Path(report["folder"])) == shards(many)


@pytest.mark.needs("mount")
def test_a_disk_without_room_for_the_index_is_an_error(stoker, many, tmpfs):
    disk = tmpfs("64K")
    done = stoker("cache", "stage", many, "--cache", disk / "cache", "--reserve", "0B")
    assert done.code == 1
    assert "no space left on device" in done.err
    assert "--cache DIR" in done.err


def test_kill_minus_9_at_any_point_leaves_a_cache_that_works(stoker, many):
    chance = random.Random(4)
    words = ["cache", "stage", many, "--reserve", "0B", "--jobs", "2", "--cache"]
    whole = time.monotonic()
    stoker(*words, "timed", code=0)
    whole = time.monotonic() - whole
    for _ in range(12):
        process = stoker.start(*words, "cache")
        time.sleep(chance.uniform(0, whole))
        process.kill()
        process.communicate()
        for path in (stoker.folder / "cache" / "datasets").glob("*/*.tar"):
            assert path.read_bytes() == (many / path.name).read_bytes()
    report = stage(stoker, many, "--check", "full")
    assert report["copied"] + report["in_cache"] == report["shards"]
    assert report["replaced"] == 0
    assert shards(Path(report["folder"])) == shards(many)
    assert not [path for path in (stoker.folder / "cache/partial").iterdir() if ".lease" not in path.name]


def test_jobs_that_stage_at_once_copy_each_shard_once(stoker, many):
    words = ["cache", "stage", many, "--cache", "cache", "--reserve", "0B", "--jobs", "1", "--json"]
    jobs = [stoker.start(*words) for _ in range(4)]
    reports = [json.loads(job.communicate()[0]) for job in jobs]
    assert sum(report["copied"] for report in reports) == reports[0]["shards"]
    assert all(report["copied"] + report["in_cache"] == report["shards"] for report in reports)
    assert shards(Path(reports[0]["folder"])) == shards(many)


def test_a_new_version_under_the_same_names_is_copied_again(stoker, source, example_images):
    old = stage(stoker, source)
    shutil.rmtree(source)
    images = shutil.copytree(example_images, stoker.folder / "images")
    next(images.rglob("*.jpg")).unlink()
    stoker("data", "pack", images, source, code=0)
    new = stage(stoker, source)
    assert new["folder"] != old["folder"]
    assert shards(Path(new["folder"])) == shards(source)


def test_damage_at_the_source_is_reported_and_not_kept(stoker, source):
    with next(source.glob("*.tar")).open("r+b") as file:
        file.seek(700)
        file.write(b"XX")
    done = stoker("cache", "stage", source, "--cache", "cache", code=1)
    assert "block 0 (bytes 0 to" in done.err
    assert "the manifest lists" in done.err


def test_damage_in_the_cache_is_found_and_removed(stoker, source):
    folder = Path(stage(stoker, source)["folder"])
    cached = next(folder.glob("*.tar")).resolve()
    before = cached.stat()
    cached.chmod(0o644)
    with cached.open("r+b") as file:
        file.seek(900)
        file.write(b"XX")
    os.utime(cached, ns=(before.st_atime_ns, before.st_mtime_ns))
    done = stoker("cache", "verify", "--cache", "cache", code=1)
    assert "1 damaged" in done.out
    assert not cached.exists()
    assert shards(folder) == shards(source)
    assert stage(stoker, source)["copied"] == 1


def test_ctrl_c_ends_staging_and_keeps_complete_shards(stoker, many):
    process = stoker.start("cache", "stage", many, "--cache", "cache", "--reserve", "0B", "--jobs", "1")
    kept = stoker.folder / "cache/shards"
    wait_until(lambda: kept.exists() and any(kept.iterdir()), "a first shard")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode in (0, 130)
    if process.returncode == 130:
        assert "interrupted" in err
    report = stage(stoker, many)
    assert report["in_cache"] > 0
    assert report["replaced"] == 0


def test_the_quota_evicts_the_dataset_used_longest_ago(stoker, source, many):
    first = stage(stoker, source, "--lease", str(_ended_process(stoker)), code=2)
    assert "there is no process" in first["error"]["message"]
    bytes_of_many = sum(map(len, shards(many).values()))
    stoker.start("-c", f"{stoker.path} cache stage {source} --cache cache; true", program=Path("/bin/bash")).wait()
    report = stage(stoker, many, "--quota", f"{bytes_of_many}B")
    assert report["evicted"] == len(shards(source))
    listed = json.loads(stoker("cache", "list", "--cache", "cache", "--json", code=0).out)
    assert [dataset["shards_in_cache"] for dataset in listed["datasets"]] == [len(shards(many)), 0]
    assert listed["bytes"] == bytes_of_many


def _ended_process(stoker) -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize("words", [("stage", "photos"), ("list",), ("verify",), ("purge", "--all")])
def test_a_folder_that_is_no_cache_is_left_alone(stoker, source, words):
    (stoker.folder / "cache").mkdir()
    (stoker.folder / "cache/thesis.txt").write_text("mine")
    done = stoker("cache", *words, "--cache", "cache", code=2)
    assert "cache: is no" in done.err
    assert [path.name for path in (stoker.folder / "cache").iterdir()] == ["thesis.txt"]


def test_purge_needs_names_or_all(stoker, source):
    stage(stoker, source, "--lease", str(os.getpid()))
    assert "name datasets, or all of them" in stoker("cache", "purge", "--cache", "cache", code=2).err
    assert "no dataset 'abcdef'" in stoker("cache", "purge", "abcdef", "--cache", "cache", code=1).err
    kept = stoker("cache", "purge", "--all", "--older-than", "1h", "--cache", "cache", code=0)
    assert kept.out == ""


def test_why_measures_and_decides(stoker, source):
    answer = json.loads(stoker("cache", "why", source, "--cache", "cache", "--json", code=0).out)
    assert answer["bytes_in_cache"] == 0
    assert answer["source_bytes_per_s"] > 0
    assert answer["place"] == "shared"
    assert answer["bytes"] == sum(map(len, shards(source).values()))
