"""Labs come and go without a trace: many times, side by side, on full disks, with taken ports and killed owners."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import needs
import pytest
import remains
from labs import wait_until

pytestmark = pytest.mark.needs("slurm")
MODES = ["processes", pytest.param("namespaces", marks=pytest.mark.needs("namespaces"))]


def unique(letter: str) -> str:
    """A lab's name that no other test run on this machine uses."""
    return f"{letter}{os.getpid()}"


@pytest.fixture
def place() -> Iterator[Path]:
    """A short folder for labs, as the names of Slurm's sockets are limited; open to all users."""
    folder = Path(tempfile.mkdtemp(prefix="lt-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def labs(stoker, place):
    """labs("up", ...) runs `stoker lab up ...` with its labs in `place`; all of them are taken down at the end."""

    def run(verb: str, *arguments: str, **options):
        environment = {"STOKER_LAB_DIR": place / "labs"} | options.pop("env", {})
        return stoker("lab", verb, *arguments, env=environment, timeout=180, **options)

    yield run
    for folder in sorted(place.glob("**/lab.json")):
        run("down", "--name", folder.parent.name)


def up_and_down(labs, folder: Path, mode: str) -> None:
    name = folder.name
    assert not remains.look(folder)
    labs("up", "--name", name, "--nodes", "2", "--mode", mode, code=0)
    there = remains.look(folder)
    assert len(there.processes) >= 4 and there.files  # the check can see
    if mode == "namespaces":
        assert len(there.namespaces) == 2 and len(there.links) == 3 and len(there.mounts) >= 2
    conf = {"SLURM_CONF": folder / "etc/slurm.conf"}
    ran = subprocess.run(["srun", "-N2", "true"], env=os.environ | conf, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    # A job that runs on, and one that ignores being asked to end.
    subprocess.run(
        ["sbatch", "-N2", "-o", "/dev/null", "--wrap", "trap '' TERM; srun sh -c 'trap \"\" TERM; sleep 300'"],
        env=os.environ | conf, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    labs("down", "--name", name, code=0)
    assert not remains.look(folder)


@pytest.mark.parametrize("mode", MODES)
def test_up_and_down_in_a_row_leave_nothing(labs, place, mode):
    for _ in range(3):
        up_and_down(labs, place / "labs" / unique("u"), mode)
    assert not (place / "labs").exists()


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_up_and_down_twenty_times_leave_nothing(labs, place, mode):
    for _ in range(20):
        up_and_down(labs, place / "labs" / unique("u"), mode)


@pytest.mark.parametrize("mode", MODES)
def test_two_at_once_do_not_meet(labs, place, mode):
    names = [unique("a"), unique("b")]
    with ThreadPoolExecutor(2) as threads:
        started = list(
            threads.map(lambda name: labs("up", "--name", name, "--nodes", "2", "--mode", mode, "--json"), names)
        )
    described = [json.loads(done.out) for done in started]
    configurations = [Path(one["slurm_conf"]).read_text() for one in described]
    ports = [re.findall(r"SlurmctldPort=(\d+)", text)[0] for text in configurations]
    assert ports[0] != ports[1]
    if mode == "namespaces":
        assert {n["address"] for n in described[0]["nodes"]}.isdisjoint(n["address"] for n in described[1]["nodes"])
    for one in described:
        answer = subprocess.run(
            ["srun", "-N2", "true"],
            env=os.environ | {"SLURM_CONF": one["slurm_conf"]},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert answer.returncode == 0, answer.stderr
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: labs("down", "--name", name, code=0), names))
    assert not any(remains.look(place / "labs" / name) for name in names)


def test_as_an_ordinary_user_in_processes(stoker, place):
    if not needs.is_met("root"):
        pytest.skip("needs root: the tests run as root, to run the command as somebody else")
    user = 33  # www-data: every Debian has it
    os.chown(place, user, user)
    settings = {
        "env": {"STOKER_LAB_DIR": place / "labs", "HOME": place, "USER": "www-data"},
        "user": user,
        "cwd": place,
        "timeout": 180,
    }
    folder = place / "labs" / unique("u")
    stoker("lab", "up", "--name", folder.name, "--nodes", "2", code=0, **settings)
    assert json.loads((folder / "lab.json").read_text())["mode"] == "processes"
    who = stoker("lab", "shell", "--name", folder.name, "--", "srun", "-N2", "id", "-u", code=0, **settings)
    assert who.out.split() == ["33", "33"]
    stoker("lab", "down", "--name", folder.name, code=0, **settings)
    assert not remains.look(folder)


def test_a_name_in_use_is_refused(labs, place):
    name = unique("u")
    labs("up", "--name", name, "--nodes", "1", "--mode", "processes", code=0)
    refused = labs("up", "--name", name, "--mode", "processes", code=1)
    assert refused.err == (
        f"{name}: there is a lab of that name ({place}/labs/{name})\n"
        f"  try: stoker lab down --name {name}      (or another: stoker lab up --name other)\n"
    )
    assert '"answering":true' in labs("status", "--name", name, "--json", code=0).out  # and it still stands


def test_a_taken_port_is_stepped_over(labs, place):
    name = unique("u")
    labs("up", "--name", name, "--nodes", "1", "--mode", "processes", code=0)
    first = json.loads((place / "labs" / name / "lab.json").read_text())["controller_port"]
    labs("down", "--name", name, code=0)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("", first))
        taken.listen()
        labs("up", "--name", name, "--nodes", "1", "--mode", "processes", code=0)
        assert json.loads((place / "labs" / name / "lab.json").read_text())["controller_port"] != first
        labs("down", "--name", name, code=0)


@pytest.mark.needs("mount")
@pytest.mark.parametrize("mode", MODES)
def test_a_full_disk_is_told_and_leaves_nothing(labs, place, mode):
    labs_folder, name = place / "labs", unique("f")
    labs_folder.mkdir(mode=0o755)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "none", labs_folder], check=True)
    try:
        refused = labs("up", "--name", name, "--mode", mode, code=1)
        assert refused.err == (
            f"{name}: 8.39 MB free in {labs_folder}, needs 33.6 MB\n"
            f"  try: STOKER_LAB_DIR=/path/with/room stoker lab up --name {name}\n"
        )
        assert not list(labs_folder.iterdir())
        assert not remains.look(labs_folder / name).processes
    finally:
        subprocess.run(["umount", "-l", labs_folder], check=True)


@pytest.mark.needs("mount")
@pytest.mark.parametrize("mode", MODES)
def test_a_disk_that_fills_up_under_a_lab_does_not_keep_it(labs, place, mode):
    labs_folder, name = place / "labs", unique("f")
    labs_folder.mkdir(mode=0o755)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=755", "none", labs_folder], check=True)
    try:
        labs("up", "--name", name, "--nodes", "2", "--mode", mode, code=0)
        subprocess.run(
            f"cat /dev/zero > {labs_folder}/{name}/shared/big; true", shell=True, stderr=subprocess.DEVNULL, timeout=60
        )
        assert os.statvfs(labs_folder).f_bavail == 0
        labs("down", "--name", name, code=0)
        assert not list(labs_folder.iterdir())
        left = remains.look(labs_folder / name)
        assert not left.processes and not left.namespaces and not left.links
    finally:
        subprocess.run(["umount", "-l", labs_folder], check=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("when", ["later", "while it starts"])
def test_the_lab_ends_with_a_killed_owner(stoker, place, mode, when):
    folder = place / "labs" / unique("o")
    owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        environment = {"STOKER_LAB_DIR": place / "labs"}
        command = ["lab", "up", "--name", folder.name, "--nodes", "2", "--mode", mode, "--owner", str(owner.pid)]
        starting = stoker.start(*command, env=environment)
        if when == "later":
            assert starting.wait(timeout=120) == 0, starting.stderr.read()
        else:
            wait_until(lambda: (folder / "etc").exists() or starting.poll() is not None, "the lab is half made")
        assert any("stoker-guard" in process for process in remains.look(folder).processes)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        wait_until(lambda: not remains.look(folder), "nothing is left")
        starting.wait(timeout=60)
    finally:
        owner.kill()
        owner.wait()


def kill_all_of(folder: Path) -> None:
    """As a crash of the machine: all processes of the lab end at once, and none gets to clean up."""
    for _ in range(100):
        left = [int(process.split()[0]) for process in remains.look(folder).processes]
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    pytest.fail(f"processes of {folder} do not end: {left}")


@pytest.mark.parametrize("mode", MODES)
def test_down_takes_away_what_a_crash_left(stoker, labs, place, mode):
    folder = place / "labs" / unique("c")
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as owner:
        labs("up", "--name", folder.name, "--nodes", "2", "--mode", mode, "--owner", str(owner.pid), code=0)
        assert any("stoker-guard" in process for process in remains.look(folder).processes)
        kill_all_of(folder)
        os.killpg(owner.pid, signal.SIGKILL)
    left = remains.look(folder)
    assert left.files and not left.processes
    assert (len(left.namespaces), len(left.links)) == ((2, 3) if mode == "namespaces" else (0, 0))
    refused = labs("up", "--name", folder.name, "--mode", mode, code=1)
    assert refused.err.startswith(f"{folder.name}: there is a lab of that name ({folder})\n  try: stoker lab down ")
    labs("down", "--name", folder.name, code=0)
    assert not remains.look(folder)


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("with_processes", [False, True], ids=["killed", "alive"])
@pytest.mark.parametrize("place_of", ["same", "other"])
def test_up_and_down_clean_up_after_a_lab_whose_folder_is_gone(labs, place, with_processes, place_of):
    folder = place / "labs" / unique("c")
    elsewhere = {"STOKER_LAB_DIR": place / ("labs" if place_of == "same" else "others")}

    def orphan() -> None:
        labs("up", "--name", folder.name, "--nodes", "2", code=0)
        if not with_processes:
            kill_all_of(folder)
        shutil.rmtree(folder)
        left = remains.look(folder)
        assert len(left.namespaces) == 2 and len(left.links) == 3 and bool(left.processes) == with_processes

    orphan()
    told = labs("down", "--name", folder.name, "--json", env=elsewhere, code=0)
    assert (json.loads(told.out)["namespaces"], json.loads(told.out)["folder"]) == (2, False)
    assert not remains.look(folder)
    orphan()
    labs("up", "--name", folder.name, "--nodes", "1", env=elsewhere, code=0)
    left = remains.look(Path(elsewhere["STOKER_LAB_DIR"], folder.name))
    assert len(left.namespaces) == 1 and len(left.links) == 2
    labs("down", "--name", folder.name, env=elsewhere, code=0)
    assert not remains.look(folder)


@pytest.mark.needs("namespaces")
def test_a_lab_of_that_name_in_another_folder_is_left_alone(labs, place):
    folder, elsewhere = place / "labs" / unique("c"), {"STOKER_LAB_DIR": place / "others"}
    labs("up", "--name", folder.name, "--nodes", "1", code=0)
    refused = labs("up", "--name", folder.name, env=elsewhere, code=1)
    assert refused.err == (
        f"{folder.name}: the lab {folder} has that name (--name)\n  try: stoker lab up --name other\n"
    )
    nothing = labs("down", "--name", folder.name, env=elsewhere, code=0)
    assert nothing.out == f"{folder.name}: not there; nothing to take away\n"
    assert '"answering":true' in labs("status", "--name", folder.name, "--json", code=0).out


@pytest.mark.parametrize("mode", MODES)
def test_down_takes_a_half_made_lab_away(stoker, labs, place, mode):
    folder = place / "labs" / unique("h")
    starting = stoker.start("lab", "up", "--name", folder.name, "--mode", mode, env={"STOKER_LAB_DIR": place / "labs"})
    wait_until(lambda: (folder / "munge").exists() or starting.poll() is not None, "the lab is half made")
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    labs("down", "--name", folder.name, code=0)
    assert not remains.look(folder)


@pytest.mark.parametrize("mode", MODES)
def test_down_works_when_the_folder_is_partly_gone_and_twice(labs, place, mode):
    folder = place / "labs" / unique("g")
    labs("up", "--name", folder.name, "--nodes", "2", "--mode", mode, code=0)
    (folder / "lab.json").unlink()
    shutil.rmtree(folder / "etc")
    gone = labs("down", "--name", folder.name, code=0).out
    assert re.fullmatch(rf"{folder.name}: gone after \d+\.\d s \(\d+ processes ended\)\n", gone)
    assert not remains.look(folder)
    again = labs("down", "--name", folder.name, code=0).out
    assert again == f"{folder.name}: not there; nothing to take away\n"


def test_an_interrupted_start_leaves_nothing(stoker, place):
    folder = place / "labs" / unique("i")
    starting = stoker.start(
        "lab",
        "up",
        "--name",
        folder.name,
        "--mode",
        "processes",
        "--nodes",
        "8",
        env={"STOKER_LAB_DIR": place / "labs"},
    )
    wait_until(lambda: (folder / "etc").exists() or starting.poll() is not None, "the lab is half made")
    starting.send_signal(signal.SIGINT)
    code = starting.wait(timeout=60)
    if code == 0:  # it was up by then: Ctrl-C came too late
        stoker("lab", "down", "--name", folder.name, env={"STOKER_LAB_DIR": place / "labs"}, code=0)
    else:
        assert (code, starting.stderr.read()) == (130, f"{folder.name}: interrupted; nothing of it is left\n")
    assert not remains.look(folder)


def test_a_shell_with_the_labs_environment_survives_down(labs, place):
    name = unique("u")
    labs("up", "--name", name, "--nodes", "1", "--mode", "processes", code=0)
    conf = place / "labs" / name / "etc/slurm.conf"
    with subprocess.Popen(["sleep", "600"], env=os.environ | {"SLURM_CONF": str(conf)}) as shell:
        labs("down", "--name", name, code=0)
        time.sleep(0.1)
        assert shell.poll() is None
        shell.kill()


@pytest.mark.needs("slurmdbd")
def test_accounting_knows_jobs_that_have_ended(accounting_lab):
    lab = accounting_lab
    job = lab.submit("echo done", "-o", "log", "-J", "told")
    lab.wait_for(job, "COMPLETED")
    row = ["sacct", "--noheader", "--parsable2", "-X", "-S", "now-1hour", "--format=JobID,JobName,State,ExitCode"]
    wait_until(lambda: lab.run(*row).out.splitlines()[-1:] == [f"{job}|told|COMPLETED|0:0"], "the job's row", 120)
    assert "echo done" in lab.run("sacct", "-B", "-j", job).out
    lab.stoker("lab", "status", "--name", lab.name)
