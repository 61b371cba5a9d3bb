"""data.NAME.place: the ranks read a dataset from the cache of their node, from a RAM disk, or where it is."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from labs import BIN

SHOW = "import os; data = os.environ['STOKER_DATA_TRAIN']; print('data', data, len(os.listdir(data)), flush=True)"


@pytest.fixture
def job(stoker, example_dataset: Path, tmp_path: Path):
    """Writes a job file whose two ranks print where their data is."""
    source = shutil.copytree(example_dataset, tmp_path / "photos")

    def write(place: str | None, command: str = SHOW) -> Path:
        lines = [
            "name: placed",
            f"run: [python3, -c, {json.dumps(command)}]",
            f"data: {{train: {{source: {source}{f', place: {place}' if place else ''}}}}}",
            "resources: {ranks: 2}",
        ]
        (tmp_path / "job.yaml").write_text("\n".join(lines) + "\n")
        return source

    return write


def run(stoker, code: int = 0, **variables):
    return stoker("run", "job.yaml", code=code, env={"STOKER_CACHE": stoker.folder / "cache"} | variables)


def folders(output: str) -> set[str]:
    return {line.split()[-2] for line in output.splitlines() if " data " in f" {line}"}


def test_a_dataset_stays_where_it_is_by_default(stoker, job):
    source = job(None)
    assert folders(run(stoker).out) == {str(source)}
    assert not (stoker.folder / "cache").exists()


def test_local_copies_once_and_later_runs_find_it(stoker, job):
    source = job("local")
    first, second = run(stoker), run(stoker)
    count = len(list(source.glob("*.tar")))
    assert f"data.train: {count} shards: {count} copied (" in first.err
    assert f"data.train: {count} shards: {count} in the cache already" in second.err
    (folder,) = folders(first.out) | folders(second.out)
    assert Path(folder).parent == stoker.folder / "cache/datasets"
    assert {path.name for path in Path(folder).iterdir()} == {path.name for path in source.iterdir()}
    # The lease has ended with the run.
    assert "removed" in stoker("cache", "purge", "--all", "--cache", "cache", code=0).out


def test_the_data_is_in_use_while_the_run_lives(stoker, job):
    job(
        "local",
        "import subprocess, sys; sys.exit(subprocess.run(["
        + repr(str(stoker.path))
        + ", 'cache', 'purge', '--all']).returncode)",
    )
    done = run(stoker)
    assert done.out.count("kept:") + done.err.count("kept:") == 2
    assert not [line for line in done.out.splitlines() if "removed" in line]


def test_memory_goes_with_its_run(stoker, job):
    job("memory")
    (folder,) = folders(run(stoker).out)
    assert folder.startswith("/dev/shm/stoker-")
    assert not Path(folder).exists()


def test_auto_reports_its_reason(stoker, job):
    source = job("auto")
    done = run(stoker)
    assert folders(done.out) == {str(source)}
    assert "data.train: the source is on a disk of this node" in done.err


def test_a_cache_that_cannot_be_used_is_noted(stoker, job):
    source = job("local")
    (stoker.folder / "cache").mkdir()
    (stoker.folder / "cache/thesis.txt").write_text("mine")
    done = run(stoker)
    assert folders(done.out) == {str(source)}
    assert "data.train: read at the source: " in done.err
    assert "is no cache and not empty" in done.err


@pytest.mark.needs("mount")
def test_what_does_not_fit_is_read_from_the_source(stoker, job, tmpfs):
    job("local", "import os; data = os.environ['STOKER_DATA_TRAIN']; print('bytes', sum(os.path.getsize(f'{data}/{name}') for name in os.listdir(data) if name.endswith('tar')))")  # fmt: skip
    disk = tmpfs("1M")
    done = run(stoker, STOKER_CACHE=disk / "cache")
    total = sum(path.stat().st_size for path in (stoker.folder / "photos").glob("*.tar"))
    assert done.out.count(f"bytes {total}") == 2
    assert "left at the source (" in done.err


def test_a_damaged_source_ends_the_run_before_its_ranks(stoker, job):
    source = job("local")
    with next(source.glob("*.tar")).open("r+b") as file:
        file.seek(700)
        file.write(b"XX")
    done = run(stoker, code=1)
    assert "block 0" in done.err
    assert folders(done.out) == set()


def test_an_unknown_place_is_refused(stoker, job):
    job("nvme")
    assert "data.train.place" in stoker("check", "job.yaml", code=2).err


@pytest.mark.soak
def test_two_hundred_faults_of_a_broadcast_lose_nothing():
    """Cut connections, flipped bits on the wire and on disks, dead nodes, full disks, purges, clocks that jump, two jobs in one cache: three in each round."""
    command = [BIN / "stage_test", "--gtest_filter=BroadcastFaults.*"]
    subprocess.run(command, env=dict(os.environ) | {"STOKER_FAULT_ROUNDS": "70"}, check=True, timeout=1800)
