"""stoker data purge: unused copies go; what is in use, young, changed or not copied by Stoker stays."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from packing import tree

DAY = 86400


class Scratch:
    """A folder `scratch` with copies of a dataset."""

    def __init__(self, stoker, source: Path):
        self.stoker = stoker
        self.folder = stoker.folder / "scratch"
        self.source = source
        self.env: dict[str, str] = {"STOKER_CACHE": str(stoker.folder / "cache")}

    def copy(self, name: str = "photos", days: float = 40) -> Path:
        self.stoker("data", "push", self.source, self.folder / name, code=0)
        self.age(self.folder / name, days)
        return self.folder / name

    def age(self, folder: Path, days: float, read_days: float | None = None) -> None:
        now = time.time()
        for path in [*folder.rglob("*"), folder]:
            os.utime(path, (now - (days if read_days is None else read_days) * DAY, now - days * DAY))

    def __call__(self, *words: object, code: int = 0):
        words = ("data", "purge", "--older-than", "30d", self.folder, *words)
        return self.stoker(*words, code=code, env=self.env)

    def json(self, *words: object, code: int = 0) -> dict:
        return json.loads(self(*words, "--json", code=code).out)

    def program(self, name: str, text: str) -> None:
        folder = self.stoker.folder / "programs"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
        self.env["PATH"] = f"{folder}:{os.environ['PATH']}"


@pytest.fixture
def scratch(stoker, example_dataset: Path, tmp_path: Path) -> Scratch:
    scratch = Scratch(stoker, shutil.copytree(example_dataset, tmp_path / "source"))
    scratch.program("squeue", "exit 0")
    return scratch


def test_old_copies_are_listed_and_removed_only_with_yes(scratch):
    old, young = scratch.copy("old"), scratch.copy("deep/young", 3)
    listed = scratch()
    assert f"{old}: would be removed: copy of " in listed.out
    assert "; 1 used within 30d\n" in listed.out
    assert old.exists()
    scratch(*listed.out.split("next  stoker data purge --older-than 30d ")[1].split()[1:])
    assert not old.exists()
    assert (young / "manifest.json").exists()
    assert scratch.json("--yes")["entries"] == []


def test_a_read_or_a_write_counts_as_use(scratch):
    read, written = scratch.copy("read"), scratch.copy("written")
    scratch.age(read, 40, read_days=2)
    shard = next(written.glob("*.tar"))
    os.utime(shard, (time.time() - 40 * DAY, time.time() - DAY))
    report = scratch.json("--yes")
    assert (report["entries"], report["recently_used"]) == ([], 2)
    assert read.exists()
    assert written.exists()


def test_listing_is_not_a_use(scratch):
    scratch.copy()
    for _ in range(3):
        (entry,) = scratch.json()["entries"]
        assert entry["kept"] == ""


def test_what_a_process_has_open_or_names_stays(scratch):
    old = scratch.copy()
    file = next(old.glob("*.tar")).open("rb")
    for command, options in (
        (["sleep", "600"], {"stdin": file}),
        (["sleep", "600"], {"cwd": old}),
        (["sh", "-c", "sleep 600; true", "training.py", "scratch/photos"], {"cwd": scratch.stoker.folder}),
    ):
        process = subprocess.Popen(command, start_new_session=True, **options)
        file.close()
        scratch.age(old, 40)
        (entry,) = scratch.json("--yes")["entries"]
        assert entry["in_use"], command
        assert f"process {process.pid} uses " in entry["kept"]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert tree(scratch.source).items() <= tree(old).items()
    scratch.age(old, 40)
    assert scratch.json("--yes")["entries"][0]["kept"] == ""
    assert not old.exists()


def test_what_a_job_in_the_queue_names_stays(scratch):
    old, other = scratch.copy("photos"), scratch.copy("other")
    scratch.program("squeue", f"echo '4711|{scratch.folder}'")
    scratch.program("scontrol", '[ "$3" = 4711 ] && printf "#!/bin/bash\\npython train.py --data=./photos\\n"')
    report = scratch.json("--yes")
    assert {Path(entry["folder"]).name: entry["kept"] for entry in report["entries"]} == {
        "other": "",
        "photos": "job 4711 names it",
    }
    assert old.exists()
    assert not other.exists()


def test_a_machine_with_the_programs_of_slurm_but_no_cluster_has_no_jobs(scratch):
    old = scratch.copy()
    scratch.program(
        "squeue", "echo 'squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host' >&2; exit 1"
    )
    scratch("--yes")
    assert not old.exists()


def test_without_an_answer_of_slurm_nothing_is_removed(scratch):
    old = scratch.copy()
    scratch.program("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    assert "squeue: slurm_load_jobs error: Unable to contact" in scratch("--yes", code=3).err
    assert old.exists()


def test_what_the_cache_uses_stays_and_its_last_use_counts(scratch):
    old = scratch.copy()
    script = f"{scratch.stoker.path} cache stage {old} --cache cache >&2 && echo ready && sleep 600"
    shell = scratch.stoker.start("-c", script, program=Path("/bin/bash"))
    assert shell.stdout.readline() == "ready\n"
    scratch.age(old, 40)
    report = scratch.json("--yes")
    assert (report["entries"], report["recently_used"]) == ([], 1)  # it was used now
    for use in (scratch.stoker.folder / "cache/uses").iterdir():
        os.utime(use, (0, 0), follow_symlinks=False)
    (entry,) = scratch.json("--yes")["entries"]
    assert entry["kept"] == f"process {shell.pid} on {os.uname().nodename} has it in the node-local cache"
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    assert scratch.json("--yes")["entries"][0]["kept"] == ""
    assert not old.exists()


def test_a_run_that_named_it_counts_as_use(scratch):
    old = scratch.copy()
    (scratch.stoker.folder / "job.yaml").write_text(f"name: reads\nrun: ls {old}\n")
    scratch.stoker("run", "job.yaml", code=0)
    scratch.age(old, 40)
    report = scratch.json("--yes")
    assert (report["entries"], report["recently_used"]) == ([], 1)
    (scratch.folder / "mine").mkdir()
    (scratch.stoker.folder / "runs").rename(scratch.folder / "mine/runs")
    assert scratch.json("--yes")["recently_used"] == 1
    shutil.rmtree(scratch.folder / "mine")
    assert scratch.json("--yes")["recently_used"] == 0


def test_only_what_stoker_copied_is_removed(scratch):
    old = scratch.copy()
    (old / "notes.txt").write_text("mine")
    own = shutil.copytree(scratch.source, scratch.folder / "own")
    elsewhere = scratch.stoker.folder / "elsewhere"
    elsewhere.mkdir()
    outside = scratch.copy("outside")
    outside.rename(elsewhere / "outside")
    (scratch.folder / "link").symlink_to(elsewhere)
    for folder in (old, own, elsewhere):
        scratch.age(folder, 40)
    done = scratch("--yes")
    assert f"kept: {own}: not copied by `stoker data push` or `pull`" in done.err
    assert [path.name for path in old.iterdir()] == ["notes.txt"]
    assert tree(own) == tree(scratch.source)
    assert (elsewhere / "outside/manifest.json").exists()


def test_a_changed_file_of_a_copy_stays(scratch):
    old = scratch.copy()
    shard = next(old.glob("*.tar"))
    shard.write_bytes(b"my own")
    scratch.age(old, 40)
    (entry,) = scratch.json("--yes", code=1)["entries"]
    assert entry["kept"] == f"{shard.name} was changed after the copy, and stays"
    assert shard.read_bytes() == b"my own"


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"format":2,"version":"","source":"","files":[]}',
     '{"format":1,"version":"","source":"","files":[{"name":"../../precious","bytes":4}]}',
     '{"format":1,"version":"","source":"","files":[{"name":"/etc/x","bytes":4}]}',
     '{"format":1,"version":"","source":"","files":[{"name":7,"bytes":4}]}'],
)  # fmt: skip
def test_a_damaged_or_hostile_list_removes_nothing(scratch, text):
    (scratch.stoker.folder / "precious").write_text("mine")
    old = scratch.copy()
    before = tree(old)
    (old / ".stoker-copy.json").write_text(text)
    scratch.age(old, 40)
    assert scratch.json("--yes", code=1)["entries"][0]["kept"] != ""
    assert tree(old).keys() == before.keys()
    assert (scratch.stoker.folder / "precious").exists()


def test_a_folder_that_became_a_link_is_not_followed(scratch):
    old = scratch.copy()
    precious = scratch.stoker.folder / "precious"
    precious.mkdir()
    (precious / "data").write_text("mine")
    (old / "part").symlink_to(precious)
    (old / ".stoker-copy.json").write_text(
        '{"format":1,"version":"","source":"","files":[{"name":"part/data","bytes":4}]}'
    )
    os.utime(old / ".stoker-copy.json", (0, 0))
    os.utime(precious / "data", (0, 0))
    scratch("--yes", code=1)
    assert (precious / "data").exists()


def test_an_interrupted_removal_is_finished_by_the_next_call(scratch):
    old = scratch.copy()
    (old / "manifest.json").unlink()
    next(old.glob("*.tar")).unlink()
    scratch.age(old, 40)
    scratch("--yes")
    assert not old.exists()


def test_unfinished_transfers_are_removed_when_they_are_old(scratch):
    scratch.folder.mkdir()
    pending = scratch.folder / (".stoker-transfer-" + "0" * 16)
    other = scratch.folder / ".stoker-transfer-mine"
    for folder in (pending, other):
        folder.mkdir()
        (folder / "train.tar").write_bytes(b"x" * 100)
    assert scratch.json("--yes")["recently_used"] == 1
    scratch.age(pending, 40)
    scratch.age(other, 40)
    (entry,) = scratch.json("--yes")["entries"]
    assert (entry["kind"], entry["bytes"]) == ("unfinished", 100)
    assert not pending.exists()
    assert other.exists()


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["data", "purge", "."], "try: stoker data purge --older-than 30d .\n"),
        (["data", "purge", "--older-than", "30m", "."], "must be at least 1h"),
        (["data", "purge", "--older-than", "30d", "nothing"], "nothing: "),
        (["data", "purge", "--older-than", "30", "."], "has no unit"),
        (["data", "purge", "--older-than", "30d"], "FOLDER"),
    ],
)
def test_bad_arguments_remove_nothing(scratch, words, cure):
    done = scratch.stoker(*words)
    assert done.code in (1, 2)
    assert cure in done.err
