"""`stage:` in a job: files on the node's local disk before the ranks start, and results that are copied back."""

import fcntl
import json
import os
import signal
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from running import finish, wait_for

SHOW = "cd $STOKER_STAGE_DIR && cat a/one b/two c/three && readlink a/link && stat -c %a a/one"


def write_job(stoker, run: str, stage: str, more: str = "", local: Path | None = None) -> None:
    (stoker.folder / "job.yaml").write_text(
        f"name: staged\nrun: {{shell: {json.dumps(run)}}}\nresources: {{ranks_per_node: 2}}\n"
        f"stage: {{{stage}, directory: {local or stoker.folder / 'local'}}}\n{more}"
    )


@pytest.fixture
def sources(stoker) -> Path:
    """a.tar, b.zip and the folder c in src/."""
    src = stoker.folder / "src"
    for name, text in (("a/one", "1\n"), ("b/two", "2\n"), ("c/three", "3\n")):
        (src / name).parent.mkdir(parents=True)
        (src / name).write_text(text)
    (src / "a/link").symlink_to("one")
    (src / "a/one").chmod(0o755)
    with tarfile.open(src / "a.tar", "w") as tar:
        tar.add(src / "a", "a")
    with zipfile.ZipFile(src / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(src / "b/two", "b/two")
    return src


def local(stoker) -> list[str]:
    folder = stoker.folder / "local"
    return os.listdir(folder) if folder.exists() else []


def attempt(stoker, number: int = 1) -> Path:
    (run,) = (stoker.folder / "runs").iterdir()
    return run / f"attempts/{number}"


def staged_events(stoker) -> list[dict]:
    lines = (attempt(stoker) / "events-node-0000.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["kind"] == "staged"]


def test_archives_and_folders_are_staged_before_the_ranks_start(stoker, sources: Path):
    write_job(stoker, SHOW, "unpack: [src/a.tar, src/b.zip], copy: [src/c]")
    done = stoker("run", "job.yaml", code=0)
    assert sorted(done.out.replace("[1] ", "").splitlines()) == sorted(["1", "2", "3", "one", "755"] * 2)
    assert "staged 4 files, 6 B in " in done.err
    (event,) = staged_events(stoker)
    assert (event["direction"], event["files"], event["bytes"]) == ("in", 4, 6)
    assert local(stoker) == []


def test_ranks_of_a_node_share_one_folder_that_is_staged_once(stoker, sources: Path):
    write_job(stoker, 'stat -c "%i" $STOKER_STAGE_DIR/c/three', "copy: [src/c]")
    done = stoker("run", "job.yaml", code=0)
    assert len(set(done.out.replace("[1] ", "").splitlines())) == 1
    assert len(staged_events(stoker)) == 1


def test_a_run_is_done_once_its_results_are_copied_back(stoker):
    write_job(stoker, "echo $RANK > $STOKER_STAGE_DIR/$RANK", "back: ['0', '1']")
    stoker("run", "job.yaml", code=0)
    lines = (attempt(stoker) / "events-node-0000.jsonl").read_text().splitlines()
    kinds = [event["kind"] for event in map(json.loads, lines)]
    assert kinds.count("attempt_ended") == 1
    assert kinds[-2:] == ["staged", "attempt_ended"]


def test_results_of_a_failed_run_are_copied_back(stoker):
    write_job(
        stoker,
        "mkdir -p $STOKER_STAGE_DIR/results; echo $RANK > $STOKER_STAGE_DIR/results/$RANK;"
        "while [ $(ls $STOKER_STAGE_DIR/results | wc -l) != 2 ]; do sleep 0.05; done; exit 3",
        "back: [results, models/]",
    )
    failed = stoker("run", "job.yaml", code=3)
    back = attempt(stoker) / "back/node-0000/results"
    assert sorted(file.name for file in back.iterdir()) == ["0", "1"]
    assert "models/ does not exist and was not staged out\n" in failed.err
    assert "staged out 2 files, 4 B in " in failed.err
    assert local(stoker) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_results_are_copied_back_after_a_signal(stoker, number: int):
    write_job(stoker, "echo $RANK > $STOKER_STAGE_DIR/$RANK; sleep 600", "back: ['0', '1']")
    run = stoker.start("run", "job.yaml")
    folder = stoker.folder / "local"
    wait_for(lambda: sorted(path.read_text() for path in folder.glob("*/[01]")) == ["0\n", "1\n"])
    os.killpg(run.pid, number)
    code, _ = finish(run)
    assert code == 128 + number
    back = attempt(stoker) / "back/node-0000"
    assert [(back / rank).read_text() for rank in "01"] == ["0\n", "1\n"]
    assert local(stoker) == []


def test_results_are_copied_back_after_a_killed_run(stoker):
    write_job(stoker, "echo $RANK > $STOKER_STAGE_DIR/$RANK; sleep 600", "back: ['0']")
    run = stoker.start("run", "job.yaml")
    wait_for(lambda: [p.read_text() for p in (stoker.folder / "local").glob("*/0")])
    os.kill(run.pid, signal.SIGKILL)
    finish(run)
    wait_for(lambda: (attempt(stoker) / "back/node-0000/0").exists())
    wait_for(lambda: local(stoker) == [])


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Blocks opening the file in the meantime (by a lease, which the kernel revokes after 45 s)."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(file)
        signal.signal(signal.SIGIO, before)


def test_leftovers_of_a_killed_stager_do_not_count_as_complete(stoker, sources: Path):
    """kill -9 during staging: the next attempt starts over and deletes the leftovers."""
    write_job(stoker, "ls $STOKER_STAGE_DIR", "unpack: [src/a.tar], copy: [src/c]")
    with held(sources / "c/three"):
        run = stoker.start("run", "job.yaml")
        (left,) = wait_for(lambda: list((stoker.folder / "local").glob("stoker-*/.staging-*/c")))
        found = subprocess.run(["pgrep", "-P", str(run.pid), "-f", " stage "], capture_output=True, text=True)
        (stager,) = found.stdout.split()
        os.kill(int(stager), signal.SIGKILL)
        code, output = finish(run)
    assert code == 3
    assert "staging: 0 of 1 nodes answered before it stopped (see its output above)" in output
    assert left.exists()
    again = stoker("resume", "last", code=0)
    assert sorted(again.out.replace("[1] ", "").split()) == ["a", "a", "c", "c"]
    assert local(stoker) == []


def test_a_signal_during_staging_ends_the_run_before_its_ranks(stoker, sources: Path):
    write_job(stoker, "echo never", "copy: [src/c]")
    with held(sources / "c/three"):
        run = stoker.start("run", "job.yaml")
        wait_for(lambda: list((stoker.folder / "local").glob("stoker-*/.staging-*/c")))
        os.kill(run.pid, signal.SIGTERM)
    code, output = finish(run)
    assert code == 128 + signal.SIGTERM
    assert "interrupted by SIGTERM while staging in (stage)" in output
    wait_for(lambda: local(stoker) == [])
    (shown,) = json.loads(stoker("status", "--json", code=0).out)["runs"]
    assert shown["state"] == "stopped"


def test_a_missing_source_is_reported_before_the_start(stoker, sources: Path):
    write_job(stoker, "echo never", "unpack: [src/none.tar]")
    refused = stoker("run", "job.yaml", code=1)
    assert refused.err.splitlines() == [f"stage.unpack: {sources}/none.tar: no such file or folder"]
    assert not (stoker.folder / "runs").exists()


@pytest.mark.parametrize("name", ["torn.tar", "text.tar"])
def test_a_damaged_archive_ends_the_run_before_its_ranks(stoker, sources: Path, name: str):
    prefix = f"{name}: "
    whole = (sources / "a.tar").read_bytes()
    (sources / "torn.tar").write_bytes(whole[:700])
    (sources / "text.tar").write_text("this is no archive at all\n" * 100)
    write_job(stoker, "echo never", f"unpack: [src/{name}]")
    refused = stoker("run", "job.yaml", code=1)
    assert refused.out == ""
    assert prefix in refused.err
    (run,) = json.loads(stoker("status", "--json", code=0).out)["runs"]
    assert (run["state"], run["exit_code"]) == ("failed", 1)
    assert prefix in run["reason"]
    assert local(stoker) == []


def test_an_archive_with_members_outside_is_refused(stoker):
    with tarfile.open(stoker.folder / "evil.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("../evil"))
    write_job(stoker, "echo never", "unpack: [evil.tar]")
    refused = stoker("run", "job.yaml", code=2).err
    assert "evil.tar: member '../evil' is outside the folder it is unpacked into" in refused
    assert not (stoker.folder / "evil").exists()
    assert not (stoker.folder / "local/evil").exists()


def test_results_must_be_below_the_folder(stoker):
    write_job(stoker, "true", "back: [../../etc]")
    refused = stoker("run", "job.yaml", code=2).err
    assert "stage.back: '../../etc' is not a path below STOKER_STAGE_DIR (such as results)" in refused


@pytest.mark.needs("mount")
def test_a_full_disk_is_reported_before_anything_is_written(stoker, tmpfs):
    disk = tmpfs("1M")
    (stoker.folder / "big").write_bytes(os.urandom(3_000_000))
    with tarfile.open(stoker.folder / "big.tar", "w") as tar:
        tar.add(stoker.folder / "big", "big")
    for stage in ("unpack: [big.tar]", "copy: [big]"):
        write_job(stoker, "echo never", stage, local=disk)
        refused = stoker("run", "job.yaml", code=1).err
        assert "needs 3.00 MB, but only " in refused and f" are free in {disk}/stoker-" in refused
        assert "\n  try: stage: {directory: DIR}, a folder on a disk with enough space on every node\n" in refused
        assert os.listdir(disk) == []


@pytest.mark.needs("mount")
def test_results_that_do_not_fit_fail_the_run_and_stay_on_the_node(stoker, tmpfs):
    disk = tmpfs("1M")
    write_job(
        stoker,
        "head -c 3000000 /dev/zero > $STOKER_STAGE_DIR/best-$RANK",
        "back: [best-0]",
        f"record: {{directory: {disk}/runs}}\n",
    )
    failed = stoker("run", "job.yaml", code=1).err
    assert "stage.back: " in failed and "best-0: needs 3.00 MB, but only " in failed
    (kept,) = local(stoker)
    assert kept.startswith("kept-stoker-") and f"(the output stays in {stoker.folder}/local/{kept})\n" in failed
    assert (stoker.folder / "local" / kept / "best-0").stat().st_size == 3_000_000
    (run,) = json.loads(stoker("status", "--runs", disk / "runs", "--json", code=0).out)["runs"]
    assert run["state"] == "failed"


# Ranks wait until results that they wrote earlier are in the run's folder.
BACK = "$STOKER_ATTEMPT_DIR/back/node-0000"


def test_results_are_copied_back_while_the_ranks_run(stoker):
    write_job(
        stoker,
        "[ $RANK = 0 ] || exit 0; mkdir -p $STOKER_STAGE_DIR/results; echo 1 > $STOKER_STAGE_DIR/results/1;"
        f"until [ -e {BACK}/results/1 ]; do sleep 0.1; done;"
        f"echo 2 > $STOKER_STAGE_DIR/results/2; until [ -e {BACK}/results/2 ]; do sleep 0.1; done; ls -A {BACK}",
        "back: [results], back_every: 1s",
    )
    done = stoker("run", "job.yaml", code=0)
    assert ": copied 1 file of stage.back, 2 B, in " in done.err
    assert "staged out 2 files, 4 B in " in done.err
    back = attempt(stoker) / "back/node-0000"
    assert [(back / f"results/{number}").read_text() for number in (1, 2)] == ["1\n", "2\n"]
    assert os.listdir(back) == ["results"]


@pytest.mark.needs("mount")
def test_results_that_do_not_fit_are_reported_while_the_ranks_continue(stoker, tmpfs):
    disk = tmpfs("1M")
    write_job(
        stoker,
        "[ $RANK = 0 ] || exit 0; head -c 3000000 /dev/zero > $STOKER_STAGE_DIR/best; echo 1 > $STOKER_STAGE_DIR/small;"
        f"until [ -e {BACK}/small ]; do sleep 0.1; done; rm $STOKER_STAGE_DIR/best",
        "back: [best, small], back_every: 1s",
        f"record: {{directory: {disk}/runs}}\n",
    )
    done = stoker("run", "job.yaml", code=0)
    assert "stage.back: best: needs 3.00 MB, but only " in done.err
    assert "; the ranks continue, and the copy is retried every 1s" in done.err
    assert "best does not exist and was not staged out" in done.err


def test_results_are_copied_back_at_the_time_limit(stoker):
    write_job(
        stoker,
        "echo $RANK > $STOKER_STAGE_DIR/$RANK; exec sleep 600",
        "back: ['0', '1'], back_every: 0s",
        "timeouts: {grace: 1s}\n",
    )
    text = (stoker.folder / "job.yaml").read_text()
    (stoker.folder / "job.yaml").write_text(text.replace("ranks_per_node: 2", "ranks_per_node: 2, time: 5s"))
    ended = stoker("run", "job.yaml", code=None)
    assert ended.code != 0 and "time limit" in ended.err
    back = attempt(stoker) / "back/node-0000"
    assert [(back / rank).read_text() for rank in "01"] == ["0\n", "1\n"]


def test_a_run_whose_node_dies_resumes_from_the_checkpoint_that_came_back(stoker):
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    model = stoker.folder / "model"
    model.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
    write_job(
        stoker,
        '[ -z "$STOKER_RESUME" ] || exec cmp "$STOKER_RESUME" model; [ $RANK = 0 ] || exec sleep 600;'
        "mkdir -p $STOKER_STAGE_DIR/checkpoints; cp model $STOKER_STAGE_DIR/checkpoints/step-7.safetensors; exec sleep 600",
        "back: [checkpoints/], back_every: 1s",
    )
    run = stoker.start("run", "job.yaml")
    wait_for(lambda: list((stoker.folder / "runs").glob("*/attempts/1/back/node-0000/checkpoints/step-7.safetensors")))
    (stager,) = subprocess.run(
        ["pgrep", "-P", str(run.pid), "-f", " stage "], capture_output=True, text=True
    ).stdout.split()
    os.kill(int(stager), signal.SIGKILL)
    os.kill(run.pid, signal.SIGKILL)
    finish(run)
    again = stoker("resume", "last", code=0)
    assert "back/node-0000/checkpoints/step-7.safetensors" in again.err
