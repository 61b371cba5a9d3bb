"""--host: commands on another machine, through a real ssh. Its login node is a lab's."""

import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import BIN, Completed, Lab
from ports import free_port
from running import wait_until

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.needs("sshd")]

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Laptop:
    """A folder on a machine without Slurm, whose ssh knows the cluster as `login`."""

    def __init__(self, folder: Path, cluster: Path, config: Path):
        self.folder = folder
        self.cluster = cluster
        self.config = config
        self.programs = folder.parent / "programs"
        self.programs.mkdir()
        self.ssh(f'exec /usr/bin/ssh -F {config} "$@"')
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("STOKER_", "SLURM_", "SBATCH_"))}
        self.env["PATH"] = f"{self.programs}:/usr/bin:/bin"

    def ssh(self, text: str) -> None:
        program = self.programs / "ssh"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    @property
    def host(self) -> str:
        return f"login:{self.cluster}"

    def start(self, *words: str | Path, **options) -> subprocess.Popen:
        settings = {"cwd": self.folder, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | options
        return subprocess.Popen(
            [BIN / "stoker", *map(str, words)],
            env=self.env,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **settings,
        )

    def __call__(self, *words: str | Path, code: int | None = 0, host: str | None = None, **options) -> Completed:
        process = self.start(*words, "--host", host or self.host, **options)
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            pytest.fail(f"{words}: not done\n{out}\n{err}")
        if code is not None and process.returncode != code:
            pytest.fail(f"{words}: exit {process.returncode}, expected {code}\nstdout:\n{out}\nstderr:\n{err}")
        return Completed(process.returncode, out, err)

    def job(self, run: str, resources: str = "nodes: 1, time: 5m", more: str = "", file: str = "job.yaml") -> None:
        text = f"name: far\nrun: {{shell: {json.dumps(run)}}}\nresources: {{{resources}}}\n{more}"
        (self.folder / file).parent.mkdir(exist_ok=True)
        (self.folder / file).write_text(text)

    def submit(self) -> str:
        """Submits the job there; the run's id."""
        return json.loads(self("submit", "job.yaml", "--json").out)["run"]

    def processes_there(self, command: str) -> int:
        count = 0
        for each in Path("/proc").glob("[0-9]*"):
            try:
                is_there = os.readlink(each / "cwd") == str(self.cluster)
                count += is_there and f"\0{command}\0".encode() in (each / "cmdline").read_bytes()
            except OSError:
                continue
        return count


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory, shared_lab: Lab) -> Iterator[Path]:
    """An sshd whose machine is the login node of the lab; the ssh config that knows it."""
    folder = tmp_path_factory.mktemp("sshd")
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    port = free_port()
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    variables = {name: shared_lab.env[name] for name in ("SLURM_CONF", "STOKER_LAB_DIR", "STOKER_SLURM_CALLS_PER_S")}
    variables["PATH"] = f"{BIN}:/usr/bin:/bin"
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/user.pub\nPermitRootLogin yes\nPrintMotd no\n"
        f"SetEnv {' '.join(f'{name}={value}' for name, value in variables.items())}\n"
    )
    config = folder / "config"
    known = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {known}")
    common = (
        f"  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n  BatchMode yes\n"
    )
    config.write_text(
        f"Host login\n  HostName 127.0.0.1\n  Port {port}\n{common}"
        f"Host locked\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile none\n  BatchMode yes\n"
        f"  UserKnownHostsFile {folder}/known\n  IdentitiesOnly yes\nHost closed\n  HostName 127.0.0.1\n  Port {free_port()}\n"
    )
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=(folder / "log").open("w"))
    wait_until(lambda: answers(port) or process.poll() is not None, "sshd listens")
    if process.poll() is not None:
        pytest.fail((folder / "log").read_text())
    yield config
    process.terminate()
    process.wait(30)


@pytest.fixture
def laptop(sshd: Path, lab: Lab, tmp_path: Path) -> Laptop:
    folder = tmp_path / "project"
    folder.mkdir()
    return Laptop(folder, lab.shared / "far", sshd)


def test_a_job_goes_there_runs_and_comes_back(laptop):
    (laptop.folder / "words.py").write_text("print('from the laptop')\n")
    (laptop.folder / "lib").mkdir()
    (laptop.folder / "lib/tool.sh").write_text("#!/bin/sh\necho tool\n")
    (laptop.folder / "lib/tool.sh").chmod(0o755)
    laptop.job(f"{sys.executable} words.py; lib/tool.sh; exit 7")
    submitted = json.loads(laptop("submit", "job.yaml", "--json").out)
    assert Path(submitted["folder"]).parent == laptop.cluster / "runs"
    assert laptop("wait", "last", code=7).out.startswith(f"run {submitted['run']}: failed (")
    assert laptop("logs", "last", "--rank", "0").out == "from the laptop\ntool\n"
    (run,) = json.loads(laptop("status", "--json").out)["runs"]
    assert (run["run"], run["state"]) == (submitted["run"], "failed")
    report = laptop("fetch", "last").out
    assert report.startswith(f"fetched {submitted['run']} from login: ")
    assert f"stoker report runs/{submitted['run']}" in report
    # All that is asked of it here is answered here.
    here = subprocess.run(
        [BIN / "stoker", "logs", "last", "--rank", "0"],
        cwd=laptop.folder,
        env=laptop.env,
        capture_output=True,
        text=True,
    )
    assert here.stdout == "from the laptop\ntool\n"
    assert laptop("fetch", "last").out.splitlines()[0].endswith(", replacing an older copy")
    assert {entry.name for entry in (laptop.folder / "runs").iterdir()} == {submitted["run"]}


def test_the_commands_in_the_output_name_the_host_and_work(laptop):
    laptop.job("exit 3")
    host = f"--host {laptop.host}"
    submitted = laptop("submit", "job.yaml").out
    wait = f"stoker wait {host} last"
    assert wait in submitted
    assert f"stoker logs {host} -f last" in submitted
    process = laptop.start(*shlex.split(wait)[1:])
    assert process.wait(120) == 3, process.communicate()
    assert f"stoker submit {host} " in laptop("report", "last", "--format", "text").out
    refused = laptop("resume", "last", code=1).err
    assert f"  try: stoker resume {host} " in refused
    # JSON has the commands of the cluster.
    assert "--host" not in laptop("resume", "last", "--json", code=1).out


def test_a_run_that_was_not_fetched_is_not_replaced(laptop):
    laptop.job("true")
    run = json.loads(laptop("submit", "job.yaml", "--json").out)["run"]
    (laptop.folder / "runs" / run).mkdir(parents=True)
    assert laptop("fetch", run, code=1).err == f"runs/{run}: already exists, and was not fetched\n"
    assert {entry.name for entry in (laptop.folder / "runs").iterdir()} == {run}


def test_what_git_ignores_stays_and_what_was_deleted_goes(laptop):
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=laptop.folder, check=True)

    git("init", "-q")
    for name in ("kept.py", "later-gone.py", "secret.bin", "new.py"):
        (laptop.folder / name).write_text(name)
    (laptop.folder / ".gitignore").write_text("*.bin\nruns/\njob.yaml\n")
    git("add", "kept.py", "later-gone.py")
    git("commit", "-qm", "first")
    laptop.job("ls", more="code: {snapshot: true}\n")
    laptop("submit", "job.yaml")
    laptop("wait")
    # The job file goes also where git ignores it.
    assert laptop("logs", "last", "--rank", "0").out.split() == ["job.yaml", "kept.py", "later-gone.py", "new.py"]
    (laptop.folder / "later-gone.py").unlink()
    (laptop.cluster / "result").write_text("made there")
    laptop("submit", "job.yaml", "--set", "code.snapshot=false")
    laptop("wait")
    assert laptop("logs", "last", "--rank", "0").out.split() == ["job.yaml", "kept.py", "new.py", "result", "runs"]


HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "a'b",
    'a"b',
    "a b",
    "-rf",
    "--help",
    "$HOME",
    "a\\b",
    "é",
    "*",
    "a;touch pwned",
]


def test_no_name_is_interpreted_by_a_remote_shell(laptop):
    for name in HOSTILE:
        (laptop.folder / name).write_text(name)
    laptop.job('for each in *; do printf "%s\\n" "$each"; done')
    words = ["--set", "params.a=$(touch pwned)", "--set", "params.b='; touch pwned; '"]
    laptop("submit", "job.yaml", *words)
    laptop("wait")
    there = set(laptop("logs", "last", "--rank", "0").out.splitlines())
    assert there == {*HOSTILE, "job.yaml", "runs"}
    assert laptop("status", "$(touch pwned)", code=1).err.startswith("run '$(touch pwned)': not found in runs")
    odd = laptop.cluster.parent / "odd $(touch pwned) 'x'"
    laptop("submit", "job.yaml", host=f"login:{odd}")
    assert (odd / "job.yaml").exists()
    laptop("wait", host=f"login:{odd}")
    for folder in (laptop.folder, laptop.cluster, laptop.cluster.parent, odd, Path.home()):
        assert not (folder / "pwned").exists()


def test_without_a_folder_a_mirror_of_the_current_one_is_used(laptop):
    name = f"far-{os.getpid()}"
    moved = laptop.folder.rename(laptop.folder.parent / name)
    laptop.folder = moved
    try:
        laptop.job("true")
        folder = Path(json.loads(laptop("submit", "job.yaml", "--json", host="login").out)["folder"])
        laptop("wait", host="login")
        home = folder.parents[1]
        assert home.parent == Path.home() / "stoker"
        assert home.name.startswith(f"{name}-")
        # A shared folder it is not: on the lab's one machine that makes no difference.
    finally:
        for left in (Path.home() / "stoker").glob(f"{name}-*"):
            shutil.rmtree(left)


def test_logs_are_followed_and_ctrl_c_leaves_nothing_there(laptop):
    laptop.job("echo first; while ! test -e go; do sleep 0.1; done; echo last")
    laptop("submit", "job.yaml")
    following = laptop.start("logs", "-f", "--rank", "0", "--host", laptop.host)
    assert following.stdout.readline() == "first\n"
    again = laptop.start("logs", "-f", "--rank", "0", "--host", laptop.host)
    assert again.stdout.readline() == "first\n"
    os.killpg(again.pid, signal.SIGINT)
    assert again.wait(60) == 130
    killed = laptop.start("logs", "-f", "--rank", "0", "--host", laptop.host)
    assert killed.stdout.readline() == "first\n"
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(60)
    wait_until(lambda: laptop.processes_there("logs") == 1, "followers without a reader have exited")
    (laptop.cluster / "go").write_text("")
    assert following.stdout.read() == "last\n"
    assert following.wait(60) == 0
    for process in (following, again, killed):
        process.stdout.close()
        process.stderr.close()


def test_a_failure_is_explained_there_in_the_language_of_this_machine(laptop):
    laptop.job("echo epoch 1; trainer")
    run = laptop.submit()
    laptop("wait", code=127)
    explained = laptop("explain", "last").out
    assert explained.startswith(f"run {run}: failed (")
    assert "the shell does not find command trainer on that node\n" in explained
    assert json.loads(laptop("explain", run, "--json").out)["diagnosis"]["certainty"] == "known"
    (laptop.cluster / "train.log").write_text("epoch 1\nOSError: [Errno 28] No space left on device: '/a'\n")
    laptop.env["LC_ALL"] = "fr_FR.UTF-8"
    assert "\n  cause      le disque est plein\u00a0: /a\n" in laptop("explain", "train.log", "--lang", "auto").out
    assert "\n  cause      the disk is full: /a\n" in laptop("explain", "train.log", "--lang", "en").out
    assert laptop("explain", "nope", code=1).err == f"run 'nope': not found in runs (newest: {run})\n"


def test_a_report_of_a_run_there_is_written_here(laptop):
    laptop.job("true")
    run = laptop.submit()
    laptop("wait")
    written = laptop("report", "last")
    assert written.out == "  runs/report-last.html\n"
    page = (laptop.folder / "runs/report-last.html").read_text()
    assert page.startswith("<!doctype html>")
    assert run in page
    assert not (laptop.cluster / "runs" / run / "report.html").exists()
    printed = laptop("report", f"runs/{run}/", "--out", "-")
    assert printed.out.startswith("<!doctype html>")
    assert printed.err == written.err
    assert written.err.startswith("far: ")
    (facts,) = json.loads(laptop("report", "--json").out)["runs"]
    assert (facts["id"], facts["state"]) == (run, "done")
    assert laptop("report", run, "--format", "text", "--out", "far.txt").out == "far.txt\n"
    assert (laptop.folder / "far.txt").read_text() == laptop("report", run, "--format", "text").out
    laptop("fetch", run)
    assert {entry.name for entry in (laptop.folder / "runs").iterdir()} == {run, "report-last.html"}
    assert laptop("report", "nope", code=1).err == f"run 'nope': not found in runs (newest: {run})\n"
    assert not (laptop.folder / "runs/report-nope.html").exists()
    error = json.loads(laptop("report", "nope", "--json", code=1).out)["error"]
    assert error["message"] == f"run 'nope': not found in runs (newest: {run})"


def test_a_run_is_resumed_and_rerun_there_with_the_files_there(laptop):
    (laptop.folder / "code").write_text("7")
    laptop.job("exit $(cat code)")
    run = laptop.submit()
    laptop("wait", code=7)
    (laptop.folder / "code").write_text("0")
    folder = laptop.cluster / "runs" / run / "checkpoints"
    assert laptop("resume", "last", code=1).err.startswith(
        f"run {run}: no checkpoint in {folder} (STOKER_CHECKPOINT_DIR), and attempt 1 has run: "
    )
    resumed = json.loads(laptop("resume", "last", "--from-start", "--json").out)
    assert (resumed["run"], resumed["attempt"]) == (run, 2)
    laptop("wait", code=7)
    # A dry run sends the files.
    laptop("submit", "job.yaml", "--dry-run")
    assert laptop("resume", "last", "--from-start").out.startswith("submitted ")
    laptop("wait")
    rerun = json.loads(laptop("rerun", "last", "--json").out)
    assert Path(rerun["folder"]).parent == laptop.cluster / "runs"
    assert rerun["run"] != run
    laptop("wait", rerun["run"])
    for command in ("resume", "rerun"):
        assert laptop(command, "nope", code=1).err.startswith("run 'nope': not found in runs (newest: ")


CLEARED = "\x1b[H\x1b[2J"


def test_top_is_redrawn_on_a_terminal_here_and_ctrl_c_leaves_nothing_there(laptop):
    laptop.job("sleep 600")
    run = laptop.submit()
    wait_until(lambda: json.loads(laptop("top", "--json").out)["state"] == "running", "the run is running")
    once = laptop("top", "last").out
    assert once.startswith(f"{run}: running")
    assert "\x1b" not in once
    here, terminal = pty.openpty()
    live = laptop.start("top", "--host", laptop.host, stdout=terminal)
    os.close(terminal)
    screen = []

    def is_redrawn() -> bool:
        if select.select([here], [], [], 0.1)[0]:
            screen.append(os.read(here, 1 << 16).decode())
        return "".join(screen).count(f"{CLEARED}{run}: running") >= 2

    wait_until(is_redrawn, "the table is redrawn")
    os.killpg(live.pid, signal.SIGINT)
    assert live.wait(60) == 130
    os.close(here)
    live.stderr.close()
    wait_until(lambda: laptop.processes_there("top") == 0, "top there has exited")
    ending = laptop.start("top", "--every", "200ms", "--host", laptop.host)
    laptop("cancel", "last")
    out, _ = ending.communicate(timeout=120)
    assert ending.returncode == 0
    assert f"{run}: cancelled" in out
    assert laptop("top", "nope", code=1).err == f"run 'nope': not found in runs (newest: {run})\n"
    assert laptop("top", "--every", "1ms", code=2).err == "top: --every 1ms: must be at least 100ms\n"


def test_a_run_is_cancelled_from_here(laptop, lab):
    laptop.job("sleep 600")
    job = json.loads(laptop("submit", "job.yaml", "--json").out)["job"]
    assert f"job {job}" in laptop("cancel", "last").out
    assert laptop("wait", code=130).out.endswith(": cancelled\n")
    assert "resources.nodes" in laptop("submit", "job.yaml", "--set", "resources.nodes=none", code=2).err


def test_a_script_of_ones_own_goes_there_too(laptop):
    (laptop.folder / "scripts").mkdir()
    (laptop.folder / "scripts/train.sh").write_text('#!/bin/bash\n#SBATCH --time=5\ncat scripts/data; echo "$1"\n')
    (laptop.folder / "scripts/data").write_text("data\n")
    laptop("submit", "scripts/train.sh", "an argument")
    laptop("wait")
    assert laptop("logs", "last", "--rank", "0").out == "data\nan argument\n"
    # The script chooses the path of its log; the fetched copy is complete.
    laptop("fetch", "last")
    (log,) = laptop.folder.glob("runs/*/attempts/1/rank-0000.log")
    assert log.read_text() == "data\nan argument\n"


def test_connection_errors_are_reported(laptop):
    laptop.job("true")
    refused = laptop("status", code=3, host="closed").err
    assert re.fullmatch(
        r"closed: ssh: connect to host 127\.0\.0\.1 port \d+: Connection refused\n  try: ssh closed true\n", refused
    )
    for command in ("explain", "report", "resume", "rerun", "top"):
        assert laptop(command, "last", code=3, host="closed").err == refused
        error = json.loads(laptop(command, "last", "--json", code=3, host="closed").out)["error"]
        assert (error["code"], error["cure"]) == ("unavailable", "ssh closed true")
    assert not (laptop.folder / "runs").exists()
    assert "Permission denied" in laptop("status", code=3, host="locked").err
    assert laptop("status", code=3, host="nowhere.invalid").err.startswith("nowhere.invalid: ssh: Could not resolve")
    missing = laptop("status", "--host-program", "/opt/no $stoker", code=3).err
    assert missing.startswith("login: /opt/no $stoker is not in the PATH of ssh commands (")
    assert missing.endswith("\n  try: --host-program PATH      (its path on the host)\n")
    assert laptop("status", "--host-program", "/bin/false", code=3).err.startswith(
        "login: /bin/false on the host does not support --host (exit code 1)"
    )
    assert laptop("status", code=2, host="-oProxyCommand=true").err == (
        "--host -oProxyCommand=true: invalid host (examples: login.cluster, ada@login.cluster:exp)\n"
    )
    assert laptop("submit", "../job.yaml", code=1).err == "../job.yaml: no such file\n"
    (laptop.folder.parent / "job.yaml").write_text("run: 'true'\n")
    assert laptop("submit", "../job.yaml", code=2).err == (
        "../job.yaml: must be a relative path below the current folder (--host)\n"
    )
    laptop.ssh("exit 255")
    assert laptop("status", code=3).err.startswith("login: ssh: exit code 255\n")
    (laptop.programs / "ssh").unlink()
    laptop.env["PATH"] = str(laptop.programs)
    assert laptop("status", code=3).err == "ssh: program not found in PATH\n"


def test_a_different_remote_version_is_reported(laptop):
    other = laptop.folder.parent / "stoker"
    other.write_text('#!/bin/sh\necho "Welcome!"; echo "stoker-remote $2 99.1"; cat > /dev/null\n')
    other.chmod(0o755)
    here = subprocess.run([BIN / "stoker", "--version"], capture_output=True, text=True).stdout.split()[1]
    assert laptop("status", "--host-program", other, code=2).err == (
        f"login: stoker 99.1 on the host, {here} here\n"
        "  try: install the same version on the host, or: --host-program PATH\n"
    )


def test_a_broken_connection_is_reported(laptop):
    broken = laptop.folder.parent / "stoker"
    broken.write_text(f'#!/bin/sh\n"{BIN}/stoker" "$@" &\nsleep 1; kill -9 $PPID\n')
    broken.chmod(0o755)
    laptop.job("sleep 600")
    laptop("submit", "job.yaml")
    begin = time.monotonic()
    output = laptop("wait", "--host-program", broken, code=3).err
    assert output.splitlines()[-1].startswith("login: connection lost (ssh: exit code ")
    assert time.monotonic() - begin < 60


def test_words_of_a_shell_and_a_closed_reader_do_no_harm(laptop):
    chatty = laptop.folder.parent / "stoker"
    chatty.write_text(f'#!/bin/sh\nprintf "motd without an end"\nexec "{BIN}/stoker" "$@"\n')
    chatty.chmod(0o755)
    output = json.loads(laptop("status", "--json", "--host-program", chatty).out)
    assert output["runs"] == []
    read, write = os.pipe()
    os.close(read)
    process = laptop.start("status", "--host", laptop.host, stdout=write)
    os.close(write)
    assert process.wait(60) == 128 + signal.SIGPIPE
    process.stderr.close()
