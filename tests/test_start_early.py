"""data.NAME.start: the ranks start with the first shards of a dataset, while the rest is copied. A shard is held back by a lease, as
if a process on another host copied it."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import BIN, MODULE

HELD = "train-000005.tar"
READ = """
import os, sys, stoker
from pathlib import Path

data, lease = Path(os.environ["STOKER_DATA_TRAIN"]), Path(sys.argv[1])
print("copies at the start", sum(not os.readlink(path).startswith("/") for path in data.glob("train-*.tar")), flush=True)

def epoch():
    return sum(sum(memoryview(batch["label"])) for batch in loader), len(loader)

loader = stoker.Loader(data, batch_size=100, split="train")
print("first", *epoch(), flush=True)
lease.unlink(missing_ok=True)
while "--wait" in sys.argv and os.readlink(data / "HELD").startswith("/"):
    pass
print("second", *epoch(), flush=True)
""".replace("HELD", HELD)


@pytest.fixture
def job(stoker, example_images: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes a job of one rank over eight shards, and returns the lease that holds the sixth back."""
    subprocess.run([BIN / "stoker", "data", "pack", example_images, tmp_path / "photos", "--shards", "8"], check=True)
    (tmp_path / "read.py").write_text(READ)

    def write(data: str = "", *words: str, train: str = "") -> Path:
        # A different cache shows the key of the shard.
        stoker("cache", "stage", "photos", "--cache", tmp_path / "keys", code=0)
        (version,) = (tmp_path / "keys/datasets").iterdir()
        key = (version / HELD).readlink().name
        cache = tmp_path / "cache"
        cache.mkdir(mode=0o700)
        (cache / "stoker-cache.json").write_text('{"format": 1}')
        for folder in ("shards", "partial", "datasets", "uses", "leases"):
            (cache / folder).mkdir()
        lease = cache / "partial" / f"{key}.lease"
        lease.write_text(json.dumps({"boot": "another kernel", "host": "n9", "pid": 7, "pid_start": 7}) + "\n")
        command = train or f"run: [{sys.executable}, read.py, {lease}{''.join(f', {word}' for word in words)}]"
        (tmp_path / "job.yaml").write_text(
            f"{command}\ndata: {{train: {{source: photos, split: train{data}}}}}\nresources: {{ranks: 1}}\n"
        )
        return lease

    return write


def run(stoker, code: int = 0):
    return stoker("run", "job.yaml", code=code, env={"STOKER_CACHE": stoker.folder / "cache", "PYTHONPATH": MODULE})


def lines(done) -> list[str]:
    return [line for line in done.out.splitlines() if line.startswith(("copies", "first", "second"))]


def test_a_loader_reads_at_the_source_until_the_copy_is_there(stoker, job):
    job(", place: local, start: first-shards", "--wait")
    done = run(stoker)
    copies, first, second = lines(done)
    assert int(copies.split()[-1]) < 8
    assert first.split()[1:] == second.split()[1:]
    assert "data.train: 8 shards: " in done.err
    (events,) = (stoker.folder / "runs").glob("*/attempts/1/events-node-0000.jsonl")
    staged = [json.loads(line) for line in events.read_text().splitlines() if '"kind":"staged"' in line]
    manifest = json.loads((stoker.folder / "photos/manifest.json").read_text())
    (split,) = [split for split in manifest["splits"] if split["name"] == "train"]
    copied = sum(shard["bytes"] for shard in split["shards"] if shard["file"] != HELD)
    assert sum(one["bytes"] for one in staged) >= copied
    live = json.loads(stoker("top", "last", "--json", code=0).out)["staged"]
    assert live["nodes"] == 1
    assert live["read_bytes"] >= copied
    assert "DATA  " in stoker("top", "last", code=0).out


def test_a_script_that_opens_paths_starts_with_all_shards(stoker, job):
    lease = job(", place: local")
    shards = stoker.folder / "cache/shards"

    def release() -> None:
        while len(list(shards.iterdir())) < 7:
            time.sleep(0.05)
        lease.unlink()

    waiting = threading.Thread(target=release)
    waiting.start()
    done = run(stoker)
    waiting.join()
    assert lines(done)[0] == "copies at the start 8"


def test_a_run_that_ends_first_ends_the_copying(stoker, job):
    lease = job(", place: local, start: first-shards", train="run: [python3, -c, 'print(1)']")
    done = run(stoker)
    assert "data.train: copying ended with the run" in done.err
    assert [path.name for path in (stoker.folder / "cache/partial").iterdir()] == [lease.name]
    # What was copied is used by the next run.
    lease.unlink()
    assert "in the cache already" in run(stoker).err


def test_a_training_starts_with_its_first_shards(stoker, job):
    train = "train: {model: cifar-resnet20, epochs: 1, batch: 100, steps: 2, shuffle: by_shard, seed: 1}"
    lease = job(", place: local", train=train)
    # The held shard never arrives: a run that waited for it would not end.
    done = run(stoker)
    assert lease.exists()
    assert "done" in done.err


def test_a_start_without_a_copy_is_refused(stoker, job):
    job(", start: first-shards")
    assert "data.train.start: applies only to a copy on the nodes" in stoker("check", "job.yaml", code=2).err


def test_an_unknown_start_is_refused(stoker, job):
    job(", place: local, start: soon")
    assert "data.train.start" in stoker("check", "job.yaml", code=2).err
