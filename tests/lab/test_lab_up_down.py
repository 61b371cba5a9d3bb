"""Labs come and go without a trace: side by side, on full disks, with taken ports and killed owners, after crashes; as root
and as an ordinary user. test_lab_soak.py does all of it twenty times."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import remains
from conftest import BIN
from places import SOMEBODY, Labs, in_mode, kill_all_of
from running import wait_until

pytestmark = pytest.mark.needs("slurm")

# A job that runs on, with a step that ignores being asked to end.
STUBBORN = "trap '' TERM; srun sh -c 'trap \"\" TERM; sleep 300'"


def two_nodes(labs: Labs, name: str, *options: str) -> None:
    labs("up", "--name", name, "--nodes", "2", *options, code=0)


def is_answering(labs: Labs, name: str) -> bool:
    return json.loads(labs("status", "--name", name, "--json", code=0).out)["labs"][0]["answering"]


def test_up_with_jobs_and_down_leaves_nothing(labs):
    folder = labs.folder("u")
    assert not remains.look(folder)
    two_nodes(labs, folder.name)
    there = remains.look(folder)
    assert len(there.processes) >= 4 and there.files  # the check can see
    if labs.mode == "namespaces":
        assert len(there.namespaces) == 2 and len(there.links) == 3 and len(there.mounts) >= 2
    assert labs.slurm(folder, "srun", "-N2", "id", "-u").split() == 2 * [str(labs.user or os.getuid())]
    finds = 'test -w "$SLURM_TMPDIR" && echo $CUDA_VISIBLE_DEVICES'
    assert labs.slurm(folder, "srun", "-N2", "--gres=gpu:1", "sh", "-c", finds).split() == ["0", "0"]
    labs.slurm(folder, "sbatch", "-N2", "-o", "/dev/null", "--wrap", STUBBORN)
    labs("down", "--name", folder.name, code=0)
    assert not remains.look(folder)
    assert not folder.parent.exists()


def come_and_go_with_accounting(labs: Labs) -> None:
    folder = labs.folder("m")
    two_nodes(labs, folder.name, "--accounting")
    assert {"mariadbd", "slurmdbd"} <= {process.split()[1] for process in remains.look(folder).processes}
    assert (
        labs.slurm(folder, "sacctmgr", "--noheader", "--parsable2", "show", "account", "lab", "format=account")
        == "lab\n"
    )
    labs("down", "--name", folder.name, code=0)
    assert not remains.look(folder)


def test_two_concurrent_labs_do_not_conflict(labs):
    folders = [labs.folder("a"), labs.folder("b")]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda folder: two_nodes(labs, folder.name), folders))
    described = [json.loads((folder / "lab.json").read_text()) for folder in folders]
    assert described[0]["controller_port"] != described[1]["controller_port"]
    if labs.mode == "namespaces":
        assert {n["address"] for n in described[0]["nodes"]}.isdisjoint(n["address"] for n in described[1]["nodes"])
    for folder in folders:
        labs.slurm(folder, "srun", "-N2", "true")
    labs("down", "--name", folders[0].name, code=0)
    assert not remains.look(folders[0])
    labs.slurm(folders[1], "srun", "-N2", "true")  # the other stands
    labs("down", "--name", folders[1].name, code=0)
    assert not remains.look(folders[1])


def test_two_at_once_come_and_go_at_the_same_time(labs):
    folders = [labs.folder("a"), labs.folder("b")]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda folder: two_nodes(labs, folder.name), folders))
        list(threads.map(lambda folder: labs("down", "--name", folder.name, code=0), folders))
    assert not any(remains.look(folder) for folder in folders)


@in_mode("processes")
def test_a_name_in_use_is_refused(labs):
    name = labs.folder("u").name
    two_nodes(labs, name)
    refused = labs("up", "--name", name, code=1)
    assert refused.err == (
        f"{name}: a lab with this name exists ({labs.folder('u')})\n"
        f"  try: stoker lab down --name {name}      (or another: stoker lab up --name other)\n"
    )
    assert is_answering(labs, name)


def test_a_taken_port_is_stepped_over(labs):
    file = labs.folder("u") / "lab.json"
    two_nodes(labs, file.parent.name)
    first = json.loads(file.read_text())
    labs("down", "--name", file.parent.name, code=0)
    ports = {first["controller_port"]} | ({n["port"] for n in first["nodes"]} if labs.mode == "processes" else set())
    taken = [socket.create_server(("", port)) for port in ports]
    two_nodes(labs, file.parent.name)
    second = json.loads(file.read_text())
    assert ports.isdisjoint({second["controller_port"], *(n["port"] for n in second["nodes"])})
    labs.slurm(file.parent, "srun", "-N2", "true")
    labs("down", "--name", file.parent.name, code=0)
    for listening in taken:
        listening.close()
    assert not remains.look(file.parent)


@pytest.mark.needs("mount")
def test_a_full_disk_is_an_error_and_leaves_no_lab(labs):
    name = labs.folder("f").name
    with labs.disk("8m") as folder:
        refused = labs("up", "--name", name, code=1)
        assert refused.err == (
            f"{name}: 8.39 MB free in {folder}, needs 33.6 MB\n"
            f"  try: STOKER_LAB_DIR=/path/with/space stoker lab up --name {name}\n"
        )
        assert not list(folder.iterdir())
        assert not remains.look(folder / name).processes


@pytest.mark.needs("mount")
def test_a_disk_that_fills_up_under_a_lab_does_not_keep_it(labs):
    name = labs.folder("f").name
    with labs.disk("48m") as folder:
        two_nodes(labs, name)
        big = f"{folder}/{name}/shared/big"
        subprocess.run(f"cat /dev/zero > {big}; true", shell=True, stderr=subprocess.DEVNULL, timeout=60)
        assert os.statvfs(folder).f_bavail == 0
        labs("down", "--name", name, code=0)
        assert not list(folder.iterdir())
        left = remains.look(folder / name)
        assert not left.processes and not left.namespaces and not left.links


@pytest.mark.parametrize("when", ["later", "while it starts"])
def test_the_lab_ends_with_a_killed_owner(labs, when):
    folder = labs.folder("o")
    who = {} if labs.user is None else {"user": SOMEBODY}
    # The whole session of the owner is killed; the lab must not be in it.
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, **who
    ) as owner:
        try:
            starting = labs.start("up", "--name", folder.name, "--nodes", "2", "--owner", str(owner.pid))
            if when == "later":
                assert starting.wait() == 0, starting.stderr.read()
                labs.slurm(folder, "sbatch", "-N2", "-o", "/dev/null", "--wrap", STUBBORN)
            else:
                wait_until(lambda: (folder / "etc").exists() or starting.poll() is not None, "the lab is half made")
            assert any("stoker-guard" in process for process in remains.look(folder).processes)
        finally:
            os.killpg(owner.pid, signal.SIGKILL)
    wait_until(lambda: not remains.look(folder), "nothing is left")
    starting.wait()


def test_down_takes_away_what_a_crash_left(labs):
    folder = labs.folder("c")
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as owner:
        two_nodes(labs, folder.name, "--owner", str(owner.pid))
        assert any("stoker-guard" in process for process in remains.look(folder).processes)
        kill_all_of(folder)
        os.killpg(owner.pid, signal.SIGKILL)
    left = remains.look(folder)
    assert left.files and not left.processes
    assert (len(left.namespaces), len(left.links)) == ((2, 3) if labs.mode == "namespaces" else (0, 0))
    refused = labs("up", "--name", folder.name, code=1)
    assert refused.err.startswith(f"{folder.name}: a lab with this name exists ({folder})\n  try: stoker lab down ")
    labs("down", "--name", folder.name, code=0)
    assert not remains.look(folder)


@in_mode("namespaces")
@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("has_processes", [False, True], ids=["killed", "alive"])
@pytest.mark.parametrize("place_of", ["same", "other"])
def test_up_and_down_clean_up_after_a_lab_whose_folder_is_gone(labs, has_processes, place_of):
    folder = labs.folder("c")
    elsewhere = {"STOKER_LAB_DIR": labs.place / ("labs" if place_of == "same" else "others")}

    def orphan() -> None:
        two_nodes(labs, folder.name)
        if not has_processes:
            kill_all_of(folder)
        shutil.rmtree(folder)
        left = remains.look(folder)
        assert len(left.namespaces) == 2 and len(left.links) == 3 and bool(left.processes) == has_processes

    orphan()
    report = labs("down", "--name", folder.name, "--json", env=elsewhere, code=0)
    assert (json.loads(report.out)["namespaces"], json.loads(report.out)["folder"]) == (2, False)
    assert not remains.look(folder)
    orphan()
    labs("up", "--name", folder.name, "--nodes", "1", env=elsewhere, code=0)
    left = remains.look(Path(elsewhere["STOKER_LAB_DIR"], folder.name))
    assert len(left.namespaces) == 1 and len(left.links) == 2
    labs("down", "--name", folder.name, env=elsewhere, code=0)
    assert not remains.look(folder)


@in_mode("namespaces")
@pytest.mark.needs("namespaces")
def test_a_lab_of_that_name_in_another_folder_is_left_alone(labs):
    folder, elsewhere = labs.folder("c"), {"STOKER_LAB_DIR": labs.place / "others"}
    two_nodes(labs, folder.name)
    refused = labs("up", "--name", folder.name, env=elsewhere, code=1)
    assert refused.err == (
        f"{folder.name}: the name belongs to the lab {folder} (--name)\n  try: stoker lab up --name other\n"
    )
    nothing = labs("down", "--name", folder.name, env=elsewhere, code=0)
    assert nothing.out == f"{folder.name}: not found; nothing to remove\n"
    assert is_answering(labs, folder.name)


@in_mode("namespaces")
@pytest.mark.needs("namespaces")
def test_a_killed_lab_of_that_name_in_another_folder_is_named_with_the_way_to_remove_it(labs):
    folder, elsewhere = labs.folder("c"), {"STOKER_LAB_DIR": labs.place / "others"}
    two_nodes(labs, folder.name)
    kill_all_of(folder)
    refused = labs("up", "--name", folder.name, env=elsewhere, code=1)
    cure = f"STOKER_LAB_DIR={folder.parent} stoker lab down --name {folder.name}"
    assert refused.err == (
        f"{folder.name}: the name belongs to the lab {folder}, none of whose processes runs\n  try: {cure}\n"
    )
    subprocess.run(cure, shell=True, env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}, check=True)
    assert not remains.look(folder)


# What is there when `up` is so far.
MOMENTS = ["lab.json", "munge", "etc/task-prolog", "log/munged.out", "log/slurmctld.out", "log/slurmd-n2.out"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_down_takes_a_half_made_lab_away(labs, moment):
    folder = labs.folder("h")
    starting = labs.start("up", "--name", folder.name)
    wait_until(lambda: (folder / moment).exists() or starting.poll() is not None, "the lab is half made", every=0.001)
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    labs("down", "--name", folder.name, code=0)
    assert not remains.look(folder)


@pytest.mark.parametrize("seconds", [0.02, 0.08])
def test_down_ends_what_a_killed_down_began(labs, seconds):
    folder = labs.folder("k")
    two_nodes(labs, folder.name)
    ending = labs.start("down", "--name", folder.name)
    time.sleep(seconds)
    ending.send_signal(signal.SIGKILL)
    ending.wait()
    labs("down", "--name", folder.name, code=0)
    assert not remains.look(folder)
    assert not folder.parent.exists()


def test_down_works_when_the_folder_is_partly_gone_and_twice(labs):
    folder = labs.folder("g")
    two_nodes(labs, folder.name)
    (folder / "lab.json").unlink()
    shutil.rmtree(folder / "etc")
    gone = labs("down", "--name", folder.name, code=0).out
    assert re.fullmatch(rf"{folder.name}: removed in \d+\.\d s \(\d+ processes? killed\)\n", gone)
    assert not remains.look(folder)
    again = labs("down", "--name", folder.name, code=0).out
    assert again == f"{folder.name}: not found; nothing to remove\n"


def test_an_interrupted_start_leaves_nothing(labs):
    folder = labs.folder("i")
    starting = labs.start("up", "--name", folder.name, "--nodes", "8")
    wait_until(lambda: (folder / "etc").exists() or starting.poll() is not None, "the lab is half made")
    starting.send_signal(signal.SIGINT)
    code = starting.wait()
    if code == 0:  # it was up by then: Ctrl-C came too late
        labs("down", "--name", folder.name, code=0)
    else:
        assert (code, starting.stderr.read()) == (130, f"{folder.name}: interrupted; the lab was removed\n")
    assert not remains.look(folder)


@in_mode("processes")
def test_a_shell_with_the_labs_environment_survives_down(labs):
    folder = labs.folder("u")
    two_nodes(labs, folder.name)
    with subprocess.Popen(["sleep", "600"], env=os.environ | {"SLURM_CONF": str(folder / "etc/slurm.conf")}) as shell:
        labs("down", "--name", folder.name, code=0)
        time.sleep(0.1)
        assert shell.poll() is None
        shell.kill()
