"""`stoker lab up|status|env|shell|logs`: output and errors."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator

import pytest
from labs import Lab, start_lab, stop_lab
from places import SOMEBODY, in_mode, unique
from running import wait_until

pytestmark = pytest.mark.needs("slurm")


@pytest.fixture(scope="module")
def odd_lab() -> Iterator[Lab]:
    """Two nodes of one core each and no GPU, where arrays end at task 10."""
    name = unique("p")
    yield start_lab(name, "--nodes", "2", "--pin", "--gpus", "0", "--max-array-size", "11")
    stop_lab(name)


def test_status_shows_nodes_jobs_and_stopped_daemons(lab):
    job = lab.submit("sleep 300", "-w", "n2", "-o", "log")
    lab.wait_for(job, "RUNNING")
    lab.submit("sleep 300", "--hold", "-o", "log")
    shown = lab.stoker("lab", "status", "--name", lab.name).out
    rows = [re.split(r"  +", line.strip()) for line in shown.splitlines()]
    version = re.escape(lab.description["slurm_version"])
    assert re.fullmatch(rf"{lab.name}: 4 nodes, {lab.mode} mode, Slurm {version}, up, started .+ ago", rows[0][0])
    assert rows[1] == ["NODE", "ADDRESS", "STATE", "CPUS", "JOBS", "NOTE"]
    address = {node["name"]: node["address"] for node in lab.description["nodes"]}
    assert [row[:5] for row in rows[2:6]] == [
        ["n1", address["n1"], "idle", "0/2", "-"],
        ["n2", address["n2"], "mixed", "1/2", job],
        ["n3", address["n3"], "idle", "0/2", "-"],
        ["n4", address["n4"], "idle", "0/2", "-"],
    ]
    assert rows[6] == ["jobs: 1 running, 1 pending"]

    lab.stoker("lab", "fault", "kill", "n3", "--name", lab.name)
    assert re.search(
        r"^n3 .* slurmd is not running$", lab.stoker("lab", "status", "--name", lab.name).out, re.MULTILINE
    )
    (report,) = json.loads(lab.stoker("lab", "status", "--name", lab.name, "--json").out)["labs"]
    assert (report["answering"], report["running"], report["pending"]) == (True, 1, 1)
    assert [node["daemon"] for node in report["nodes"]] == [True, True, False, True]
    assert report["nodes"][1]["jobs"] == [job]
    assert report["daemons"] == {"munged": True, "slurmctld": True}


def test_the_environment_is_all_that_slurm_needs(lab, stoker):
    report = json.loads(lab.stoker("lab", "env", "--name", lab.name, "--json", env={"MODULEPATH": "/site/modules"}).out)
    assert report == {
        "SLURM_CONF": f"{lab.folder}/etc/slurm.conf",
        "MODULEPATH": f"{lab.folder}/modules:/site/modules",
    }
    script = 'eval "$("$0" lab env --name "$1")" && sinfo --noheader --format=%D --partition=debug'
    bare = {"PATH": os.environ["PATH"], "STOKER_LAB_DIR": str(lab.folder.parent)}
    output = subprocess.run(["bash", "-c", script, stoker.path, lab.name], env=bare, capture_output=True, text=True)
    assert (output.stdout, output.stderr) == ("4\n", "")


def test_a_shell_is_on_its_node_in_the_same_folder(lab):
    def on(*words: str, code: int = 0):
        return lab.stoker("lab", "shell", *words, code=code)

    assert on("n2", "--name", lab.name, "--", "sh", "-c", "pwd; exit 7", code=7).out == f"{lab.shared}\n"
    if lab.mode == "namespaces":
        assert on("n2", "--name", lab.name, "--", "hostname").out == "n2\n"
        address = lab.description["nodes"][2]["address"]
        assert on("--name", lab.name, "--", "getent", "hosts", "n3").out.split() == [address, "n3"]
    typed = lab.stoker(
        "lab", "shell", "n1", "--name", lab.name, env={"SHELL": "/bin/sh"}, stdin=subprocess.DEVNULL, code=0
    )
    assert typed.out == ""
    assert on("n9", "--name", lab.name, code=1).err == f"n9: no such node in {lab.name} (available: n1, n2, n3, n4)\n"


def test_logs_are_the_daemons_own(lab):
    def logs(*words: str, code: int = 0):
        return lab.stoker("lab", "logs", *words, "--name", lab.name, code=code)

    of_n1 = (lab.folder / "log/slurmd-n1.log").read_text().splitlines()
    assert logs("n1", "-n", "2").out.splitlines() == of_n1[-2:]
    every = json.loads(logs("--json", "-n", "1").out)
    assert {"slurmctld", "slurmd-n1", "slurmd-n4"} <= set(every)
    assert all(len(lines) <= 1 for lines in every.values())
    assert logs("n9", code=1).err == (
        f"{lab.name}: no log of 'n9' (available: munged, slurmctld, slurmd-n1, slurmd-n2, slurmd-n3, slurmd-n4)\n"
    )
    assert logs("-n", "0", code=2).err == "lab: --lines 0: must be at least 1\n"


def test_a_small_array_limit_is_slurms(odd_lab):
    assert odd_lab.run("sbatch", "--hold", "--array=0-10", "--wrap", "true").out.startswith("Submitted batch job ")
    refused = odd_lab.run("sbatch", "--hold", "--array=0-11", "--wrap", "true", code=1)
    assert "Invalid job array specification" in refused.err


def test_a_lab_without_gpus_has_no_partition_for_them(odd_lab):
    shown = odd_lab.run("sinfo", "--noheader", "--format=%P %G").out.splitlines()
    assert sorted(shown) == ["cpu* (null)", "debug (null)", "low (null)"]


# CPU work of a fixed size per task, begun together; where root may, it runs before whatever else is on the machine.
WORK = """
import os, pathlib, sys, time
try:
    os.nice(-19)
except PermissionError:
    pass
here = pathlib.Path(sys.argv[1])
(here / os.environ["SLURM_PROCID"]).touch()
while len(list(here.iterdir())) < 2:
    time.sleep(0.001)
begin, used = time.monotonic(), time.process_time()
while time.process_time() < used + 0.3:
    sum(range(1000))
print(time.monotonic() - begin)
"""


@pytest.fixture
def two_cores() -> set[int]:
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("needs cores2: the machine has one core")
    return cores


def test_tasks_of_two_pinned_nodes_have_a_core_each_and_of_one_share_it(odd_lab, two_cores):
    def cores_of_tasks(*where: str) -> set[int]:
        command = ["srun", *where, "-n2", "grep", "-h", "Cpus_allowed_list", "/proc/self/status"]
        return {int(core) for core in odd_lab.run(*command).out.split()[1::2]}

    assert len(cores_of_tasks("-N1")) == 1
    assert len(cores_of_tasks("-N2")) == 2 and cores_of_tasks("-N2") <= two_cores


@pytest.mark.soak
def test_two_pinned_nodes_are_faster_than_one(odd_lab, two_cores):
    def slowest(*where: str) -> float:
        here = tempfile.mkdtemp(dir=odd_lab.shared)
        output = odd_lab.run("srun", *where, "-n2", "python3", "-c", WORK, here).out
        return max(float(line) for line in output.splitlines())

    on_one, on_two = (min(slowest(*where) for _ in range(2)) for where in (["-N1"], ["-N2"]))
    assert on_two < 0.75 * on_one


@in_mode("processes")
def test_missing_packages_are_named_with_the_install_command(labs):
    bare = {"PATH": "/nonexistent"}
    name = labs.folder("m").name
    report = labs("up", "--name", name, "--mode", "processes", env=bare, code=3).err
    sudo = "" if os.geteuid() == 0 else "sudo "
    assert report == (
        "lab: slurmctld, slurmd, sinfo, srun, munged, setsid: not installed\n"
        f"  try: {sudo}apt-get install -y --no-install-recommends slurm-wlm munge util-linux\n"
    )
    report = labs("up", "--name", name, "--accounting", env=bare, code=3).err
    assert report == (
        "lab: slurmctld, slurmd, sinfo, srun, munged, setsid, slurmdbd, mariadbd, sacctmgr: not installed\n"
        f"  try: {sudo}apt-get install -y --no-install-recommends slurm-wlm munge util-linux slurmdbd mariadb-server\n"
    )
    assert not (labs.place / "labs").exists()


@pytest.mark.needs("root")
@pytest.mark.parametrize("labs", ["user"], indirect=True)
def test_another_user_gets_a_sudo_command(labs):
    report = labs("up", "--name", "m", env={"PATH": "/nonexistent"}, code=3).err
    assert report.splitlines()[1] == (
        "  try: sudo apt-get install -y --no-install-recommends slurm-wlm munge util-linux"
    )


@in_mode("namespaces")
@pytest.mark.needs("namespaces")
def test_namespaces_need_iproute(labs):
    report = labs("up", "--name", "m", env={"PATH": "/nonexistent"}, code=3).err
    assert report == (
        "lab: slurmctld, slurmd, sinfo, srun, munged, setsid, ip, tc, nsenter: not installed\n"
        "  try: apt-get install -y --no-install-recommends slurm-wlm munge util-linux iproute2\n"
    )


@pytest.mark.parametrize(
    ("options", "output"),
    [
        ("--nodes 0", "lab: --nodes 0: must be 1 to 64\n"),
        ("--nodes 65", "lab: --nodes 65: must be 1 to 64\n"),
        ("--nodes 99999999999", "lab: --nodes 2147483647: must be 1 to 64\n"),
        ("--cpus 0", "lab: --cpus 0: must be 1 to 256\n"),
        ("--gpus 17", "lab: --gpus 17: must be 0 to 16\n"),
        ("--max-array-size 1", "lab: --max-array-size 1: must be 2 to 4000001\n"),
        ("--mode threads", "lab: mode 'threads': must be processes or namespaces\n"),
        ("--name Lab", "lab: name 'Lab': must be a lower-case letter, then up to 10 letters and digits\n"),
        ("--owner 0", "lab: --owner 0: must be the id of a process\n"),
        ("--mode processes --name x --owner 4194304", "x: owner 4194304: no such process (--owner)\n"),
    ],
)
def test_options_that_make_no_sense_are_refused(stoker, place, options, output):
    refused = stoker("lab", "up", *shlex.split(options), env={"STOKER_LAB_DIR": place / "labs"}, code=2)
    assert refused.err == output
    assert not (place / "labs").exists()


def test_a_folder_that_others_can_change_is_refused(stoker, place):
    place.chmod(0o777)
    refused = stoker("lab", "up", "--mode", "processes", env={"STOKER_LAB_DIR": place}, code=2)
    assert refused.err == (
        f"lab: {place}: must be your folder, writable only by you\n"
        "  try: STOKER_LAB_DIR=/path/to/another stoker lab up\n"
    )
    long = place / ("x" * 40)
    assert stoker("lab", "up", "--mode", "processes", env={"STOKER_LAB_DIR": long}, code=2).err == (
        f"lab: {long}: path longer than 48 characters, which the names of Slurm's sockets do not allow (STOKER_LAB_DIR)\n"
    )


def test_a_path_that_slurm_would_misread_is_refused(stoker, place):
    refused = stoker("lab", "up", "--mode", "processes", env={"STOKER_LAB_DIR": place / "my labs"}, code=2)
    assert refused.err == (
        f"lab: {place}/my labs: Slurm's files take only letters, digits and . _ - + @ in a path (STOKER_LAB_DIR)\n"
    )
    assert not (place / "my labs").exists()


def test_where_there_is_no_lab(stoker, place):
    environment = {"STOKER_LAB_DIR": place / "labs"}
    assert stoker("lab", "status", env=environment, code=0).out == "no lab (stoker lab up starts one)\n"
    for verb in ("status", "env", "shell", "logs", "fault"):
        refused = stoker("lab", verb, "--name", "x", env=environment, code=1)
        assert refused.err == "x: no such lab\n  try: stoker lab up --name x\n"
    (place / "labs/y").mkdir(parents=True)
    (place / "labs/y/lab.json").write_text("[]")
    assert stoker("lab", "env", "--name", "x", env=environment, code=1).err.startswith(
        "x: no such lab (available: y)\n"
    )
    assert stoker("lab", "env", "--name", "y", env=environment, code=1).err == (
        f"{place}/labs/y/lab.json: not a JSON object\n"
    )


@pytest.mark.needs("root")
def test_namespaces_are_refused_where_the_kernel_or_the_user_may_not(stoker, place):
    environment = {"STOKER_LAB_DIR": place / "labs", "HOME": place}
    os.chown(place, SOMEBODY, SOMEBODY)
    refused = stoker("lab", "up", "--mode", "namespaces", env=environment, user=SOMEBODY, cwd=place, code=2)
    assert refused.err == ("lab: namespaces need root (--mode namespaces)\n  try: stoker lab up --mode processes\n")
    os.chown(place, 54321, 54321)
    nameless = stoker("lab", "up", env=environment, user=54321, cwd=place, code=2)
    assert nameless.err == "lab: user 54321 has no name on this machine, which Slurm needs (/etc/passwd)\n"
    os.chown(place, 0, 0)
    weak = subprocess.run(
        ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", stoker.path, "lab", "up"],
        env=os.environ | {"STOKER_LAB_DIR": str(place / "labs")}, capture_output=True, text=True,
    )  # fmt: skip
    assert (weak.returncode, weak.stderr) == (
        3,
        "lab: the kernel refuses namespaces to this process (Operation not permitted)\n"
        "  try: stoker lab up --mode processes\n",
    )


@in_mode("namespaces")
@pytest.mark.needs("namespaces")
def test_names_that_strangers_use_are_refused(labs):
    name = labs.folder("s").name
    for make, undo, output in (
        (
            f"ip link add {name} type bridge",
            f"ip link del {name}",
            f"{name}: the name belongs to a network interface (--name)\n  try: stoker lab up --name other\n",
        ),
        (
            f"ip netns add {name}-n1",
            f"ip netns del {name}-n1",
            f"{name}: the network namespace {name}-n1 already exists (--name)\n  try: stoker lab down --name {name}\n",
        ),
    ):
        subprocess.run(shlex.split(make), check=True)
        try:
            assert labs("up", "--name", name, code=1).err == output
        finally:
            subprocess.run(shlex.split(undo), check=True)


def test_a_daemon_that_exits_during_start_is_named_with_its_last_log_line(labs):
    folder = labs.folder("e")
    programs = labs.place / "bin"
    programs.mkdir()
    for program in ("slurmctld", "slurmd"):
        for other in programs.iterdir():
            other.unlink()
        (programs / program).write_text(
            "#!/bin/sh\n[ $1 = -V ] && echo slurm-wlm 1.2.3 && exit\necho first\necho no luck\nexit 1\n"
        )
        (programs / program).chmod(0o755)
        environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
        refused = labs("up", "--name", folder.name, "--nodes", "1", env=environment, code=3)
        daemon = program if program == "slurmctld" else "slurmd-n1"
        assert refused.err == f"{folder.name}: {daemon} exited during start: no luck\n"
        assert not folder.exists()


@in_mode("processes")
def test_down_is_quick_although_jobs_ignore_signals(labs):
    folder = labs.folder("q")
    labs("up", "--name", folder.name, "--nodes", "2", code=0)
    labs.slurm(
        folder, "sbatch", "-N2", "-o", "/dev/null", "--wrap", "trap '' TERM; srun sh -c 'trap \"\" TERM; sleep 300'"
    )
    wait_until(lambda: labs.slurm(folder, "squeue", "-h", "-t", "R"), "the job runs")
    begin = time.monotonic()
    labs("down", "--name", folder.name, code=0)
    assert time.monotonic() - begin < 25  # held to 3 s by bench/lab_up_down.py; SIGTERM alone would take 30
