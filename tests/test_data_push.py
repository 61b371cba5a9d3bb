"""stoker data push and pull: a dataset arrives complete or not at all, whatever happens to the link, the processes and the host."""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import zarr
from labs import BIN
from packing import jpeg
from packing import tree as whole_tree
from running import wait_until
from ssh_host import SshHost

pytestmark = pytest.mark.needs("sshd")

BLOCK = 4 << 20


@pytest.fixture(scope="module")
def ssh_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    host = SshHost(tmp_path_factory.mktemp("host"), BIN)
    yield host
    host.close()


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of two shards, each of two blocks."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "files/a").mkdir(parents=True)
    chance = random.Random(1)
    for number in range(12):
        (folder / f"files/a/{number}.bin").write_bytes(chance.randbytes(1_000_000))
    command = [BIN / "stoker", "data", "pack", "files", "photos", "--layout", "files", "--shards", "2"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "photos"


class Pusher:
    """Runs stoker where `ssh` knows the hosts; the far home is empty at first."""

    def __init__(self, stoker, host: SshHost, photos: Path):
        self.stoker = stoker
        self.host = host
        self.home = host.home
        for entry in [*self.home.iterdir(), *host.tools.iterdir()]:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        host.relay.cut_after = None
        self.env = {"PATH": f"{host.client(stoker.folder)}:{os.environ['PATH']}"}
        self.photos = stoker.folder / "photos"
        shutil.copytree(photos, self.photos)

    def __call__(self, *words: object, code: int | None = 0):
        """With one stream, which connects once, unless the test names a number."""
        if words[0] in ("push", "pull") and "--streams" not in words and "--" not in words:
            words = (*words, "--streams", "1")
        return self.stoker("data", *words, code=code, env=self.env)

    def json(self, *words: object) -> dict:
        return json.loads(self(*words, "--json").out)

    def start(self, *words: object):
        return self.stoker.start("data", *words, env=self.env)

    def pending(self, parent: Path | None = None) -> list[Path]:
        return list((parent or self.home).glob(".stoker-transfer-*"))

    def has_block(self) -> bool:
        return any(file.stat().st_size >= BLOCK for folder in self.pending() for file in folder.iterdir())

    def check(self, name: str = "photos") -> None:
        """The dataset is complete there, and nothing else."""
        assert tree(self.home / name) == tree(self.photos)
        assert not self.pending()


@pytest.fixture
def push(stoker, ssh_host, photos) -> Pusher:
    return Pusher(stoker, ssh_host, photos)


def tree(folder: Path) -> dict[str, str]:
    """Every file's SHA-256, without the list of a copy."""
    return {name: digest for name, digest in whole_tree(folder).items() if name != ".stoker-copy.json"}


def cure_of(err: str) -> list[str]:
    """The words of the command after "try:"."""
    line = err.split("try: stoker data ")[1].splitlines()[0]
    return shlex.split(line.split("      (")[0])


@pytest.mark.parametrize(("host", "by"), [("plain", "sha256sum"), ("stoker", "stoker")])
def test_a_dataset_arrives_and_is_not_sent_twice(push, host, by):
    report = push.json("push", "photos", f"{host}:photos", "--streams", "4")
    assert report["outcome"] == "copied"
    assert report["streams"] == 3  # two shards and the index
    assert report["verified_by"].split()[0] == by
    assert report["sent_bytes"] == report["bytes"] == sum(p.stat().st_size for p in push.photos.iterdir())
    assert report["folder"] == str(push.home / "photos")
    push.check()
    again = push.json("push", "photos", f"{host}:photos")
    assert (again["outcome"], again["sent_bytes"]) == ("present", 0)
    back = push.json("pull", f"{host}:photos", "back")
    assert back["outcome"] == "copied"
    assert tree(push.stoker.folder / "back") == tree(push.photos)
    assert push("verify", "back", "--full").out.endswith("every byte verified\n")


def test_folders_of_this_machine_need_no_ssh(push):
    push.env["PATH"] = "/nowhere"
    assert push.json("push", "photos", "to/copy")["verified_by"].startswith("stoker")
    assert push.json("pull", "to/copy", "other", "--streams", "3")["streams"] == 3
    assert tree(push.stoker.folder / "other") == tree(push.photos)


@pytest.mark.parametrize("shell", ["motd", "bash", pytest.param("fish", marks=pytest.mark.needs("fish")),
                                   pytest.param("zsh", marks=pytest.mark.needs("zsh"))])  # fmt: skip
def test_any_login_shell_and_any_greeting_work(push, shell):
    assert push.json("push", "photos", f"{shell}:photos")["verified_by"] == "sha256sum"
    push.check()


def test_names_are_data_and_never_code(push):
    name = 'with blank/it\'s "quoted"/$HOME `x`;*?[a]/-dash/back\\slash\\0101/é ü/a:b'
    push("push", "photos", f"plain:{name}")
    assert tree(push.home / name) == tree(push.photos)
    push("push", "photos", f"stoker:deep/er/{name}")
    assert tree(push.home / "deep/er" / name) == tree(push.photos)
    push("pull", f"plain:~/{name}", f"./{name}")
    assert tree(push.stoker.folder / name) == tree(push.photos)


def test_another_hash_program_is_used_and_named(push):
    push.host.tool("sha256sum", "exit 1")
    push.host.tool("shasum", "exit 1")
    assert push.json("push", "photos", "tools:photos")["verified_by"] == "openssl"
    push.check()


def test_a_host_without_any_hash_program_is_refused(push):
    for name in ("sha256sum", "shasum", "openssl", "python3"):
        push.host.tool(name, "exit 1")
    done = push("push", "photos", "tools:photos", code=3)
    assert "tools: has neither stoker" in done.err
    assert "--host-program PATH" in done.err


@pytest.mark.parametrize("host", ["plain", "stoker"])
def test_after_kill_minus_9_the_next_call_continues(push, host):
    for limit in ("15MB/s", "30MB/s"):
        process = push.start("push", "photos", f"{host}:photos", "--limit", limit)

        wait_until(push.has_block, "blocks arrive")
        process.kill()
        process.communicate()
        assert not (push.home / "photos").exists()
        assert not list(push.home.glob(".*/manifest.json"))
    report = push.json("push", "photos", f"{host}:photos")
    assert report["sent_bytes"] + report["found_bytes"] == report["bytes"]
    assert report["found_bytes"] > 0
    push.check()


@pytest.mark.parametrize("streams", ["1", "4"])
def test_after_a_cut_link_the_printed_command_continues(push, streams):
    size = sum(path.stat().st_size for path in push.photos.iterdir())
    push.host.relay.sent = 0
    push.host.relay.cut_after = size * 9 // 10
    done = push("push", "photos", "relayed:photos", "--streams", streams, code=3)
    assert "relayed: " in done.err
    assert not (push.home / "photos").exists()
    push.host.relay.cut_after = None
    assert cure_of(done.err) == ["push", "photos", "relayed:photos", "--streams", streams]
    report = push.json(*cure_of(done.err))
    if streams == "1":  # several may all be in their first block
        assert report["found_bytes"] > 0
    assert report["sent_bytes"] + report["found_bytes"] == size
    push.check()


def test_an_interrupt_ends_soon_and_the_next_call_continues(push):
    process = push.start("push", "photos", "plain:photos", "--limit", "2MB/s")
    wait_until(
        lambda: any(file.stat().st_size for folder in push.pending() for file in folder.iterdir()), "blocks arrive"
    )
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "interrupted" in err
    assert cure_of(err) == ["push", "photos", "plain:photos", "--limit", "2MB/s"]
    assert not (push.home / "photos").exists()
    push("push", "photos", "plain:photos")
    push.check()


def test_what_was_damaged_since_is_sent_again(push):
    process = push.start("push", "photos", "plain:photos", "--limit", "20MB/s", "--streams", "1")
    wait_until(push.has_block, "a block arrives")
    process.kill()
    process.communicate()
    (folder,) = push.pending()
    shard = max(folder.iterdir(), key=lambda path: path.stat().st_size)
    with shard.open("r+b") as file:
        file.seek(100)
        file.write(b"damaged")
    report = push.json("push", "photos", "plain:photos")
    assert report["sent_bytes"] + report["found_bytes"] == report["bytes"]
    push.check()


@pytest.mark.parametrize("target", ["plain:photos", "copy"])
def test_a_damaged_source_is_never_published(push, target):
    shard = sorted(push.photos.glob("*.tar"))[1]
    data = bytearray(shard.read_bytes())
    data[5_000_000] ^= 1
    shard.write_bytes(data)
    done = push("push", "photos", target, code=1)
    assert f"photos: block 1 of {shard.name} has the hash " in done.err
    assert not (push.home / "photos").exists()
    assert not (push.stoker.folder / "copy").exists()
    shard.unlink()
    assert "does not exist" in push("push", "photos", target, code=1).err


def test_a_damaged_dataset_of_a_host_is_not_pulled(push):
    push("push", "photos", "plain:photos")
    shard = sorted((push.home / "photos").glob("*.tar"))[0]
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    assert f"of {shard.name} has the hash " in push("pull", "plain:photos", "back", code=1).err
    assert not (push.stoker.folder / "back").exists()
    shard.write_bytes(data[:-1])
    assert "the manifest lists" in push("pull", "plain:photos", "back", code=1).err


@pytest.mark.parametrize("host", ["plain", "stoker"])
def test_what_is_there_is_never_merged_or_lost(push, host):
    (push.home / "other").mkdir()
    (push.home / "other/notes.txt").write_text("mine")
    done = push("push", "photos", f"{host}:other", code=1)
    assert done.err.startswith(f"{host}:other: is a folder with other files\n")
    push(*cure_of(done.err))
    assert tree(push.home / "other/photos") == tree(push.photos)
    push("push", "photos", f"{host}:other", "--replace", code=1)
    assert (push.home / "other/notes.txt").read_text() == "mine"
    assert push("push", "photos", f"{host}:other/notes.txt", code=1).err == f"{host}:other/notes.txt: is not a folder\n"
    (push.home / "dangling").symlink_to("nowhere")
    push("push", "photos", f"{host}:dangling", code=1)
    (push.home / "empty").mkdir()
    push("push", "photos", f"{host}:empty/")
    assert tree(push.home / "empty") == tree(push.photos)


def test_a_different_dataset_is_refused_or_moved_aside(push):
    files = push.stoker.folder / "files/a"
    files.mkdir(parents=True)
    (files / "1.bin").write_bytes(b"other")
    push("pack", "files", "small", "--layout", "files")
    push("push", "small", "plain:data")
    done = push("push", "photos", "plain:data", code=1)
    assert "plain:data: is a different dataset (version " in done.err
    report = push.json("push", "photos", "plain:data", "--replace")
    assert tree(push.home / "data") == tree(push.photos)
    assert tree(Path(report["moved_aside"])) == tree(push.stoker.folder / "small")
    (push.home / "data/manifest.json").write_text("{}")
    assert "is a dataset that cannot be read" in push("push", "photos", "plain:data", code=1).err


def test_an_incomplete_copy_is_not_taken_for_complete(push):
    shutil.copytree(push.photos, push.home / "photos")
    shard = sorted((push.home / "photos").glob("*.tar"))[0]
    shard.write_bytes(shard.read_bytes()[:-1])
    assert f"has this version, but {shard.name} has " in push("push", "photos", "plain:photos", code=1).err
    shard.unlink()
    assert f"has this version, but {shard.name} is missing" in push("push", "photos", "plain:photos", code=1).err


@pytest.mark.parametrize("host", ["plain", "stoker"])
def test_two_calls_at_once_both_succeed(push, host):
    both = [push.start("push", "photos", f"{host}:photos", "--limit", "30MB/s", "--json") for _ in range(2)]
    outputs = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    push.check()


def test_a_dry_run_writes_nothing(push):
    report = push.json("push", "photos", "plain:deep/photos", "--dry-run")
    assert (report["outcome"], report["sent_bytes"]) == ("planned", report["bytes"])
    assert report["free_bytes"] > 0
    assert list(push.home.iterdir()) == []


def test_space_inodes_and_quotas_are_checked_first(push):
    row = "/dev/sda1 1000 990 {} {}% /home"
    push.host.tool("df", f'case $1 in -Pk) echo "{row.format(2000, 99)}";; *) echo "{row.format(900, 10)}";; esac')
    done = push("push", "photos", "tools:photos", code=1)
    assert "tools:photos: needs 12.0 MB, only 2.05 MB are free on the disk" in done.err
    push.host.tool("df", f'case $1 in -Pk) echo "{row.format(200000000, 1)}";; *) echo "{row.format(3, 99)}";; esac')
    assert "needs 5 inodes, only 3 are free on the disk" in push("push", "photos", "tools:photos", code=1).err
    (push.host.tools / "df").unlink()
    push.host.tool("stat", "echo lustre")
    push.host.tool("lfs", 'echo "/scratch 900000 1000000 1000000 - 5 0 0 -"')
    push("push", "photos", "tools:photos")
    shutil.rmtree(push.home / "photos")
    push.host.tool("lfs", 'echo "/scratch 999000 1000000 1000000 - 5 0 0 -"')
    assert "are free of your quota" in push("push", "photos", "tools:photos", code=1).err
    assert list(push.home.iterdir()) == []


def test_a_disk_that_refuses_a_block_is_an_error_and_nothing_appears(push):
    done = push("push", "photos", "small:photos", code=None)
    assert done.code != 0
    assert "small: " in done.err
    assert not (push.home / "photos").exists()
    push("push", "photos", "plain:photos")
    push.check()


@pytest.mark.parametrize(
    ("host", "words"),
    [("locked", "Permission denied"), ("closed", "Connection refused"), ("no.such.host.invalid", "resolve"),
     ("nologin", "This account is currently not available")],
)  # fmt: skip
def test_a_host_that_cannot_be_reached_is_named_with_ssh_s_reason(push, host, words):
    for arguments in (("push", "photos", f"{host}:photos"), ("pull", f"{host}:photos", "back")):
        done = push(*arguments, code=3)
        assert done.err.startswith(f"{host}: ")
        assert words in done.err
        assert f"try: ssh {host} true" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("push", "photos", "-oProxyCommand=x:y"), "unknown option"),
        (("push", "--", "photos", "-oProxyCommand=x:y"), "invalid host"),
        (("push", "photos", "plain:"), "no path of a dataset"),
        (("push", "photos", ":x"), "invalid host"),
        (("push", "photos", "plain:~bob/x"), "only ~/ is expanded"),
        (("push", "photos", ""), "no path of a dataset"),
        (("push", "photos", "plain:a\nb"), "control character"),
        (("push", "nothing", "plain:x"), "nothing"),
        (("push", "plain:x", "photos"), "try: stoker data pull plain:x photos"),
        (("pull", "photos", "plain:x"), "try: stoker data push photos plain:x"),
        (("pull", "plain:nothing", "x"), "plain:nothing: does not exist"),
        (("push", "photos", "plain:x", "--streams", "0"), "--streams: 0 is not between 1 and 64"),
        (("push", "photos", "plain:x", "--limit", "0B/s"), "--limit: must be above 0"),
        (("push", "photos", "plain:x", "--limit", "fast"), "--limit: 'fast' is not a byte count"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_sent(push, arguments, words):
    done = push(*arguments, code=None)
    assert done.code in (1, 2), done
    assert words in done.err
    assert list(push.home.iterdir()) == []


def test_files_that_are_no_dataset_are_refused_with_a_command_that_works(push):
    files = push.stoker.folder / "my files/a"
    files.mkdir(parents=True)
    (files / "1.jpg").write_bytes(jpeg(1))
    done = push("push", "my files", "plain:files", code=1)
    assert done.err.startswith("my files: is not a dataset (no manifest.json)\n")
    push(*cure_of(done.err))
    push("push", "my files-packed", "plain:files")
    assert (push.home / "files/manifest.json").exists()
    shutil.copytree(files, push.home / "pictures")
    assert "plain:pictures: is not a dataset" in push("pull", "plain:pictures", "x", code=1).err


def test_links_read_only_files_and_other_entries(push):
    shards = sorted(push.photos.glob("*.tar"))
    elsewhere = push.stoker.folder / "elsewhere.tar"
    shards[0].rename(elsewhere)
    shards[0].symlink_to(elsewhere)
    for path in push.photos.iterdir():
        path.chmod(0o444)
    (push.photos / "README.md").write_text("mine")
    done = push("push", "photos", "plain:photos")
    assert "not copied: 1 other entry of photos, not part of the dataset" in done.err
    there = push.home / "photos"
    assert not any(path.is_symlink() for path in there.iterdir())
    assert tree(there) == {name: digest for name, digest in tree(push.photos).items() if name != "README.md"}


@pytest.mark.parametrize("options", [["--hash", "crc32c"], ["--format", "parquet"]])
def test_every_kind_of_dataset_is_copied(push, options):
    files = push.stoker.folder / "files/a"
    files.mkdir(parents=True)
    for number in range(3):
        (files / f"{number}.bin").write_bytes(random.Random(number).randbytes(3_000_000))
    push("pack", "files", "data", "--layout", "files", *options)
    push("push", "data", "plain:data")
    assert tree(push.home / "data") == tree(push.stoker.folder / "data")
    push("pull", "plain:data", "back")
    push("verify", "back", "--full")


def test_a_zarr_folder_arrives_with_all_its_files(push):
    (push.stoker.folder / "grid").mkdir()
    group = zarr.create_group(zarr.storage.LocalStore(push.stoker.folder / "grid/train.zarr"), zarr_format=3)
    array = group.create_array("t2m", shape=(50, 12, 20), dtype="f4", chunks=(8, 6, 10))
    array[:] = numpy.random.default_rng(8).normal(size=(50, 12, 20))
    push("index", "grid", "--window", "0:10:3", "--variable", "t2m")
    push("push", "grid", "plain:zarr")
    push("pull", "plain:zarr", "back")
    assert tree(push.stoker.folder / "back") == tree(push.home / "zarr")
    push("verify", "back", "--full")
    chunk = max(
        (path for path in (push.home / "zarr/train.zarr").rglob("*") if path.is_file()),
        key=lambda path: path.stat().st_size,
    )
    data = bytearray(chunk.read_bytes())
    data[-1] ^= 1
    chunk.write_bytes(data)
    assert "has the hash" in push("pull", "plain:zarr", "damaged", code=1).err
    assert not (push.stoker.folder / "damaged").exists()


def test_the_transfer_node_of_the_site_is_used(push):
    sites = push.stoker.folder / "config/stoker/sites"
    sites.mkdir(parents=True)
    (sites / "ours.yaml").write_text(
        'name: ours\nwhat: Ours\nsources: {page: {url: "https://example.org", date: 2026-01-01}}\n'
        'detect: {hosts: ["login*"], from: page}\ntransfer: {host: data.ours.example, from: page}\n'
    )
    push.env["XDG_CONFIG_HOME"] = str(push.stoker.folder / "config")
    words = push.stoker.folder / "words"
    (push.stoker.folder / "programs/ssh").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {words}\nexec /usr/bin/ssh -F {push.host.config} -o HostName=127.0.0.1 '
        '-o HostKeyAlias=x -o StrictHostKeyChecking=no plain "$(eval echo \\"\\${$#}\\")"\n'
    )
    push("push", "photos", "ada@login1:photos", "--streams", "1", code=None)
    assert "HostName=data.ours.example" in words.read_text().splitlines()
    assert "ada@login1" in words.read_text().splitlines()
    push("push", "photos", "ada@login1:photos", "--streams", "1", "--login-node", code=None)
    assert "HostName" not in words.read_text()


# What a host may print instead of answers, or between them.
BAD_ANSWERS = {
    "nothing": "exit 0",
    "endless": "yes hello",
    "no end of line": "exec head -c 50000000 /dev/zero",
    "another greeting": "echo stoker-shell x sha256sum; cat > /dev/null",
    "binary": "head -c 100000 /dev/urandom; cat > /dev/null",
}


@pytest.mark.parametrize("answer", BAD_ANSWERS)
def test_a_host_that_answers_anything_else_is_an_error(push, answer):
    (push.stoker.folder / "programs/ssh").write_text(f"#!/bin/sh\n{BAD_ANSWERS[answer]}\n")
    process = push.start("push", "photos", "plain:photos")
    if answer in ("another greeting", "binary", "endless"):  # an endless answer: a user ends it
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode in (3, 130)
    assert err.startswith("plain: ")


@pytest.mark.soak
def test_answers_that_change_on_the_way_never_publish_a_wrong_dataset(push):
    """Each call sees one damaged byte of what the host answers."""
    damage = push.stoker.folder / "damage.py"
    damage.write_text(
        "import os, random, subprocess, sys\n"
        "chance = random.Random(int(sys.argv[1]))\n"
        f"far = subprocess.Popen(['/usr/bin/ssh', '-F', '{push.host.config}', *sys.argv[2:]], stdout=subprocess.PIPE)\n"
        "at = int(2 ** chance.uniform(5, 25))\n"
        "while data := far.stdout.read1(65536):\n"
        "    if 0 <= at < len(data):\n"
        "        data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:]\n"
        "    at -= len(data)\n"
        "    os.write(1, data)\n"
    )
    push("push", "photos", "plain:source")
    for seed in range(60):
        (push.stoker.folder / "programs/ssh").write_text(f'#!/bin/sh\nexec python3 {damage} {seed} "$@"\n')
        for words, target in (
            (("pull", "plain:source", f"got-{seed}"), push.stoker.folder / f"got-{seed}"),
            (("push", "photos", f"plain:sent-{seed}"), push.home / f"sent-{seed}"),
        ):
            process = push.start(*words, "--streams", "1")
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:  # an answer without its end of line: a user would interrupt
                process.send_signal(signal.SIGINT)
                process.communicate()
            assert process.returncode in (0, 1, 2, 3, 130)
            if target.exists():
                assert tree(target) == tree(push.photos)
                shutil.rmtree(target)


def test_a_hostile_manifest_cannot_write_outside(push):
    push("push", "photos", "plain:photos")
    index = push.home / "photos/manifest.json"
    name = sorted((push.home / "photos").glob("*.tar"))[0].name
    index.write_text(index.read_text().replace(name, "../../" + name))
    push("pull", "plain:photos", "deep/back", code=1)
    assert not list(push.stoker.folder.rglob("deep/**/*.tar"))
