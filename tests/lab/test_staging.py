"""`stage:` on several nodes of a real cluster: everything is on each node's disk once, and results come back from all."""

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from labs import Lab
from running import wait_until
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")


def stage(runs: Runs, keys: str) -> str:
    return f"stage: {{{keys}, directory: {runs.folder}/local}}\n"


@pytest.fixture
def archive(runs: Runs) -> Path:
    (runs.folder / "words").write_text("stoked\n")
    (runs.folder / "more").write_text("more\n")
    path = runs.folder / "words.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(runs.folder / "words", "words")
    return path


def staged(runs: Runs, direction: str) -> list[dict]:
    lines = (runs.run / "attempts/1/events-node-0000.jsonl").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event["kind"] == "staged"]
    return [event for event in events if event["direction"] == direction]


def left(runs: Runs) -> list[str]:
    folder = runs.folder / "local"
    return os.listdir(folder) if folder.exists() else []


def test_each_node_gets_everything_once_and_gives_results_back(runs: Runs, archive: Path):
    runs.job(
        'cat $STOKER_STAGE_DIR/words $STOKER_STAGE_DIR/more; echo "$NODE_RANK $STOKER_STAGE_DIR";'
        "echo $RANK > $STOKER_STAGE_DIR/rank-$RANK; mkdir -p $STOKER_STAGE_DIR/all;"
        "echo $RANK > $STOKER_STAGE_DIR/all/$RANK",
        "nodes: 2, ranks_per_node: 2",
        stage(runs, "unpack: [words.tar], copy: [more], back: [all]"),
    )
    runs.submit()
    assert runs.wait() == f"run {runs.run.name}: done\n"
    logs = [runs.log(rank).splitlines() for rank in range(4)]
    assert [log[:2] for log in logs] == [["stoked", "more"]] * 4
    nodes = [log[2].split() for log in logs]
    assert [node for node, _ in nodes] == ["0", "0", "1", "1"]
    # The lab's nodes share one disk, but each has a separate folder, shared by its ranks.
    assert nodes[0] == nodes[1] and nodes[2] == nodes[3] and nodes[0][1] != nodes[2][1]
    back = runs.run / "attempts/1/back"
    assert {str(file.relative_to(back)) for file in back.rglob("*") if file.is_file()} == {
        f"node-000{node}/all/{rank}" for node, rank in ((0, 0), (0, 1), (1, 2), (1, 3))
    }
    assert [(event["node"], event["files"]) for event in staged(runs, "in")] == [(0, 2), (1, 2)]
    assert sorted((event["node"], event["files"]) for event in staged(runs, "back")) == [(0, 2), (1, 2)]
    assert "staged 2 files, 12 B to each of 2 nodes in " in runs.batch_log()
    assert left(runs) == []


def test_a_dataset_is_copied_once_and_read_from_the_cache_on_all_nodes(runs: Runs, example_dataset: Path):
    # The lab's nodes share one disk, and so one cache: both stage into it at once.
    runs.job(
        "echo $STOKER_DATA_TRAIN; cat $STOKER_DATA_TRAIN/*.tar | cksum",
        "nodes: 2, ranks_per_node: 2",
        f"data: {{train: {{source: {example_dataset}, place: local}}}}\nstage: {{directory: {runs.folder}/local}}\n",
    )
    runs.submit()
    assert runs.wait() == f"run {runs.run.name}: done\n"
    logs = [runs.log(rank).splitlines() for rank in range(4)]
    assert len({tuple(log) for log in logs}) == 1
    (cache,) = left(runs)
    assert Path(logs[0][0]).parent == runs.folder / "local" / cache / "datasets"
    shards = list(example_dataset.glob("*.tar"))
    assert sum(event["files"] for event in staged(runs, "in")) == len(shards)
    assert len(os.listdir(runs.folder / "local" / cache / "shards")) == len(shards)
    # The leases have ended.
    purged = runs.stoker("cache", "purge", "--all", "--cache", runs.folder / "local" / cache)
    assert "removed" in purged.out


def test_results_come_back_from_a_job_that_slurm_ends(runs: Runs):
    runs.job("echo $RANK > $STOKER_STAGE_DIR/made; exec sleep 300", "nodes: 2", stage(runs, "back: [made]"))
    job = runs.submit()
    wait_until(lambda: len(runs.processes("sleep")) == 2, "the ranks sleep")
    runs.lab.run("scancel", job)
    runs.wait(code=130)
    back = runs.run / "attempts/1/back"
    wait_until(lambda: left(runs) == [], "the nodes are cleared")
    assert [(back / f"node-000{node}/made").read_text() for node in (0, 1)] == ["0\n", "1\n"]


def test_results_of_all_nodes_come_back_while_the_ranks_run(runs: Runs):
    wait = "for node in 0 1; do until [ -e $STOKER_ATTEMPT_DIR/back/node-000$node/made ]; do sleep 0.1; done; done"
    runs.job(f"echo $RANK > $STOKER_STAGE_DIR/made; {wait}", "nodes: 2", stage(runs, "back: [made], back_every: 1s"))
    runs.submit()
    assert runs.wait() == f"run {runs.run.name}: done\n"
    back = runs.run / "attempts/1/back"
    assert [(back / f"node-000{node}/made").read_text() for node in (0, 1)] == ["0\n", "1\n"]
    assert re.search(r"n1: copied 1 file of stage.back, 2 B, in ", runs.batch_log())


def test_a_node_that_cannot_ends_the_run_before_its_ranks(runs: Runs, archive: Path):
    archive.write_bytes(archive.read_bytes()[:600])
    runs.job("touch begun", "nodes: 2", stage(runs, "unpack: [words.tar]"))
    runs.submit()
    output = runs.wait(code=1)
    assert re.search(r"n[12]: words\.tar: ", output)
    assert not (runs.folder / "begun").exists()
    wait_until(lambda: left(runs) == [], "the nodes are cleared")


@pytest.fixture
def own(runs: Runs) -> Iterator[Path]:
    """A path on node-local disks, and on the login node."""
    path = Path(f"/dev/shm/stoker-test-{os.getpid()}")
    path.mkdir()
    on(runs, "n1", f"mkdir {path}")
    on(runs, "n2", f"mkdir {path}")
    yield path
    on(runs, "n2", f"umount -l {path}/small 2> /dev/null; true")
    for node in ("n1", "n2"):
        on(runs, node, f"rm -rf {path}")
    for file in path.iterdir():
        file.unlink()
    path.rmdir()


def on(runs: Runs, node: str, script: str) -> None:
    runs.lab.run("srun", "--quiet", "--nodelist", node, "sh", "-c", script)


def cannot(runs: Runs, is_cleared: Callable[[str], None]) -> list[str]:
    """The error of a run that could not start; no rank may have started, and no node may keep files."""
    runs.submit()
    runs.wait(code=1)
    assert not (runs.folder / "begun").exists()
    for node in ("n1", "n2"):
        is_cleared(node)
    return runs.batch_log().splitlines()


@pytest.mark.needs("namespaces")
def test_nodes_that_see_different_files_are_named(runs: Runs, own: Path):
    for node, text in (("n1", "one"), ("n2", "two!")):
        on(runs, node, f"echo {text} > {own}/words")
    (own / "words").write_text("here\n")
    runs.job("touch begun", "nodes: 2", f"stage: {{copy: [{own}/words], directory: {own}/local, broadcast: false}}\n")
    output = cannot(runs, lambda node: on(runs, node, f'test -z "$(ls -A {own}/local)"'))
    at = output.index("staging: n2 and n1 got different files: 1 with 5 bytes, and 1 with 4 (stage)")
    assert output[at + 1] == "  try: stoker resume      (after the files of `stage` are stable on all nodes)"
    # The same number of bytes does not hide it.
    on(runs, "n2", f"echo 2 > {own}/words")
    on(runs, "n1", f"echo 1 > {own}/words")
    output = cannot(runs, lambda node: on(runs, node, f'test -z "$(ls -A {own}/local)"'))
    assert "staging: n2 and n1 got different files: 1 with 2 bytes, and 1 with 2 (stage)" in output


@pytest.mark.needs("namespaces")
def test_the_one_node_that_has_not_got_it_is_named(runs: Runs, own: Path):
    on(runs, "n1", f"echo one > {own}/words")
    (own / "words").write_text("here\n")
    runs.job("touch begun", "nodes: 2", f"stage: {{copy: [{own}/words], directory: {own}/local, broadcast: false}}\n")
    output = cannot(runs, lambda node: on(runs, node, f'test -z "$(ls -A {own}/local)"'))
    assert any(line.startswith(f"n2: {own}/words: ") for line in output)
    assert not any(line.startswith("n1: ") for line in output)


@pytest.mark.needs("namespaces")
def test_a_node_that_does_not_see_the_files_gets_them_from_its_peers(runs: Runs, own: Path):
    on(runs, "n1", f"echo one > {own}/words")
    (own / "words").write_text("here\n")
    runs.job("cat $STOKER_STAGE_DIR/words", "nodes: 2", f"stage: {{copy: [{own}/words], directory: {own}/local}}\n")
    runs.submit()
    assert runs.wait() == f"run {runs.run.name}: done\n"
    assert [runs.log(rank) for rank in (0, 1)] == ["one\n", "one\n"]


@pytest.mark.needs("namespaces")
def test_a_node_whose_disk_has_no_inodes_left_is_named_with_a_cure(runs: Runs, own: Path):
    small = f"{own}/small"
    on(runs, "n1", f"mkdir {small}")
    on(runs, "n2", f"mkdir {small} && mount -t tmpfs -o size=8M,nr_inodes=30 none {small}")
    (runs.folder / "many").mkdir()
    for number in range(40):
        (runs.folder / f"many/{number}").write_text("x")
    with tarfile.open(runs.folder / "many.tar", "w") as tar:
        tar.add(runs.folder / "many", "many")
    for keys, what in (("unpack: [many.tar]", "many.tar"), ("copy: [many]", "many")):
        runs.job("touch begun", "nodes: 2", f"stage: {{{keys}, directory: {small}}}\n")
        output = cannot(runs, lambda node: on(runs, node, f'test -z "$(ls -A {small})"'))
        (at,) = (
            number
            for number, line in enumerate(output)
            if re.fullmatch(rf"n2: .*{what}: needs 4\d inodes, but only 2\d are free in {small}/\S+", line)
        )
        assert output[at + 1] == "  try: stage: {directory: DIR}, a folder on a disk with enough space on every node"


@pytest.mark.needs("namespaces")
def test_four_nodes_read_each_shard_once_and_send_it_to_each_other(runs: Runs, example_dataset: Path):
    caches = f"/dev/shm/stoker-broadcast-{os.getpid()}"
    nodes = ("n1", "n2", "n3", "n4")
    try:
        runs.job(
            "cat $STOKER_DATA_TRAIN/*.tar | cksum; readlink -f $STOKER_DATA_TRAIN/*.tar | grep -c /shards/",
            "nodes: 4",
            f"data: {{train: {{source: {example_dataset}, place: local}}}}\nstage: {{directory: {caches}}}\n",
        )
        runs.submit()
        assert runs.wait() == f"run {runs.run.name}: done\n"
        shards = list(example_dataset.glob("*.tar"))
        size = sum(shard.stat().st_size for shard in shards)
        logs = [runs.log(rank).splitlines() for rank in range(4)]
        assert len({log[0] for log in logs}) == 1
        assert [log[1] for log in logs] == [str(len(shards))] * 4
        events = staged(runs, "in")
        assert [event["bytes"] for event in events] == [size] * 4
        assert sum(event["bytes"] - event["received"] for event in events) == size
        assert " received from other nodes, 0 B in caches already" in runs.batch_log()
        (report,) = json.loads(runs.stoker("report", "last", "--format", "json").out)["runs"]
        (row,) = report["staging"]
        assert (row["nodes"], row["read_bytes"], row["received_bytes"], row["hit_rate"]) == (4, size, 3 * size, 0.75)
        assert "staged data" in runs.stoker("report", "last", "--format", "text").out
        # The next job finds everything.
        runs.submit()
        runs.wait()
        assert [(event["bytes"], event["cached"]) for event in staged(runs, "in")] == [(0, size)] * 4
    finally:
        for node in nodes:
            on(runs, node, f"rm -rf {caches}")


@dataclass
class CountedMount:
    """A folder, and a mount of it that nothing caches, which counts the bytes read."""

    server: Path
    path: Path
    process: subprocess.Popen

    def read_bytes(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/io").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[CountedMount]:
    """Labs that start later see it on all nodes."""
    server, path = tmp_path / "server", tmp_path / "shared"
    server.mkdir()
    path.mkdir()
    process = subprocess.Popen(["bindfs", "-f", "-o", "direct_io", server, path])
    wait_until(lambda: os.path.ismount(path), "the folder is mounted")
    yield CountedMount(server, path, process)
    subprocess.run(["umount", "-l", path], check=True)
    process.terminate()
    process.wait()


def make_environment(folder: Path) -> Path:
    """A virtual environment with all kinds of files, and a cache of models in it."""
    env = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    site = next(env.glob("lib/python*/site-packages"))
    for number in range(500):
        (site / f"m{number}.py").write_text(f"x = {number}\n" * number)
    (site / "libcuda.so").write_bytes(os.urandom(12_000_000))
    os.link(site / "m1.py", site / "same.py")
    (site / "odd\n\xff name").write_text("odd")
    (env / "empty/inner").mkdir(parents=True)
    (env / "empty").chmod(0o750)
    (env / "hub/blobs").mkdir(parents=True)
    (env / "hub/snapshots/1").mkdir(parents=True)
    (env / "hub/blobs/abc").write_bytes(os.urandom(5_000_000))
    (env / "hub/snapshots/1/model.safetensors").symlink_to("../../blobs/abc")
    (env / "hub/.lock").touch(0o600)
    return env


DESCRIBE = "find . ! -type d -printf '%P %M %n %l %T@\\0' -o -type d -printf '%P %M\\0' | sort -z | sha256sum"
CONTENT = "find . -type f -print0 | sort -z | xargs -0 cat | sha256sum"


@pytest.mark.needs("namespaces", "fuse", "bindfs")
def test_four_nodes_read_an_environment_and_an_archive_once(counted: CountedMount, make_lab: Callable[..., Lab]):
    lab = make_lab(f"s{os.getpid()}", "--nodes", "4")
    runs = Runs(lab, lab.shared / "project")
    runs.folder.mkdir()
    disks = f"/dev/shm/stoker-spread-{os.getpid()}"
    env = make_environment(counted.server)
    words = counted.server / "words"
    words.write_bytes(os.urandom(6_000_000))
    with tarfile.open(counted.server / "words.tar", "w") as tar:
        tar.add(words, "words")
    size = sum(f.stat().st_size for f in env.rglob("*") if f.is_file() and not f.is_symlink() and f.name != "same.py")
    size += (counted.server / "words.tar").stat().st_size
    expected = [
        subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout
        for command, folder in ((DESCRIBE, env), (CONTENT, env), ("cksum < words", counted.server))
    ]
    runs.job(
        f"cd $STOKER_STAGE_DIR/env; {DESCRIBE}; {CONTENT}; cksum < ../words; ls ..;"
        "python -c 'import sys; print(sys.prefix)'; echo $VIRTUAL_ENV",
        "nodes: 4",
        f"environment: {{venv: {counted.path}/env}}\n"
        f"stage: {{copy: [{counted.path}/env], unpack: [{counted.path}/words.tar], directory: {disks}}}\n",
    )
    try:
        before = counted.read_bytes()
        runs.submit()
        assert runs.wait() == f"run {runs.run.name}: done\n", runs.batch_log()
        read = counted.read_bytes() - before
        logs = [runs.log(rank).splitlines() for rank in range(4)]
        assert len({tuple(log) for log in logs}) == 1
        assert [f"{line}\n" for line in logs[0][:3]] == expected
        assert logs[0][3:5] == ["env", "words"]
        assert logs[0][5] == logs[0][6] == f"{disks}/stoker-{runs.run.name}/env"
        # Not once per node. The mount's requests count, too, and on a slow machine a late part is read again.
        assert size <= read < size * 1.5
        events = staged(runs, "in")
        assert len(events) == 4
        assert sum(event["bytes"] - event["received"] for event in events) < events[0]["bytes"] * 1.5
        assert " received from other nodes, 0 B in caches already" in runs.batch_log()
    finally:
        for node in ("n1", "n2", "n3", "n4"):
            on(runs, node, f"rm -rf {disks}")
