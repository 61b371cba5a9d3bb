"""stoker jupyter and stoker notebook where no Slurm is needed: refusals, and secrecy of the token."""

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest
from conftest import Stoker
from running import Process

SERVER = f"""#!{sys.executable}
import http.server, os, sys
options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
mood = os.environ.get("MOOD", "locked")
if mood == "ends":
    sys.exit("no such kernel, token " + os.environ["JUPYTER_TOKEN"] + "\\nport is taken")
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        knows = self.headers.get("Authorization") == "token " + os.environ["JUPYTER_TOKEN"]
        self.send_response(200 if mood == "open" or (mood == "locked" and knows) else 403)
        self.end_headers()
http.server.ThreadingHTTPServer((options["--ip"], int(options["--port"])), Answer).serve_forever()
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a jupyter-server that has a mood."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "jupyter-server").write_text(SERVER)
    (folder / "jupyter-server").chmod(0o755)
    return folder


def environment(programs: Path, scratch: Path, **more: str) -> dict[str, str]:
    scratch.mkdir(exist_ok=True)
    return {"PATH": f"{programs}:/usr/bin:/bin", "TMPDIR": str(scratch), **more}


def asked(place: dict, token: str | None = None) -> int:
    request = urllib.request.Request(f"http://{place['address']}:{place['port']}/api/status")
    if token:
        request.add_header("Authorization", f"token {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except HTTPError as refused:
        return refused.code


def started(stoker: Stoker, *words: str, **options) -> tuple[Process, dict]:
    process = stoker.start("notebook", *words, stdin=subprocess.PIPE, **options)
    line = process.stdout.readline()
    if not line.startswith("stoker-notebook "):
        pytest.fail(f"printed {line!r}, {process.stderr.read()!r}")
    return process, json.loads(line.removeprefix("stoker-notebook "))


def test_server_is_announced_after_it_accepts_only_its_token(stoker, programs, tmp_path):
    scratch = tmp_path / "scratch"
    process, place = started(stoker, "--ports", "21000-21999", env=environment(programs, scratch))
    assert (place["program"], place["address"]) == ("jupyter-server", "127.0.0.1")
    assert 21000 <= place["port"] <= 21999
    assert len(place["token"]) == 48
    assert asked(place) == 403
    assert asked(place, "other") == 403
    assert asked(place, place["token"]) == 200
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert place["token"].encode() not in each.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    (folder,) = scratch.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    process.stdin.close()
    assert process.wait() == 0
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_nothing_is_left(stoker, programs, tmp_path, how):
    scratch = tmp_path / "scratch"
    process, place = started(stoker, env=environment(programs, scratch))
    process.send_signal(how)
    assert process.wait() == 0
    assert list(scratch.iterdir()) == []
    with pytest.raises(URLError):
        asked(place)


def test_a_server_that_lets_everybody_in_is_ended(stoker, programs, tmp_path):
    process = stoker.start("notebook", stdin=subprocess.PIPE, env=environment(programs, tmp_path / "s", MOOD="open"))
    assert process.wait() == 2
    assert process.stderr.read() == (
        "jupyter-server: accepts requests without its token, because of a setting in ~/.jupyter\n"
        "  try: environment: {variables: {JUPYTER_CONFIG_DIR: /tmp/none}}\n"
    )
    assert process.stdout.read() == ""


def test_server_with_a_different_token_is_ended(stoker, programs, tmp_path):
    process = stoker.start("notebook", stdin=subprocess.PIPE, env=environment(programs, tmp_path / "s", MOOD="deaf"))
    assert process.wait() == 2
    assert process.stderr.read().splitlines()[0] == (
        "jupyter-server: does not accept its token (HTTP 403), because of a setting in ~/.jupyter"
    )


def test_last_log_lines_are_printed_without_the_token(stoker, programs, tmp_path):
    process = stoker.start("notebook", stdin=subprocess.PIPE, env=environment(programs, tmp_path / "s", MOOD="ends"))
    assert process.wait() == 3
    assert process.stderr.read() == "jupyter-server: exit code 1, its last log lines:\n  port is taken\n"
    assert list((tmp_path / "s").iterdir()) == []


def test_missing_server_is_reported_with_a_cure(stoker, tmp_path):
    none = "jupyter: none of jupyter-lab, jupyter-server, jupyter-notebook is in the PATH of the job's environment\n"
    empty = tmp_path / "empty"
    empty.mkdir()
    process = stoker.start("notebook", stdin=subprocess.PIPE, env=environment(empty, tmp_path / "s"))
    assert process.wait() == 1
    assert process.stderr.read() == (
        none + "  try: pip install jupyterlab      (in the job's venv, conda environment or container)\n"
    )
    (tmp_path / "job.yaml").write_text("run: 'true'\n")
    # Reported on the login node, before an allocation is requested.
    result = stoker("jupyter", code=1, env=environment(empty, tmp_path / "s"))
    assert result.err == none + "  try: pip install jupyterlab\n"


def test_what_cannot_be_is_refused(stoker, programs, tmp_path):
    (tmp_path / "job.yaml").write_text("run: 'true'\nresources: {nodes: 2, time: 1h}\n")
    assert (
        stoker("notebook", "--ports", "99", code=2).err
        == "notebook: --ports 99: not a port range (as in 21000-21999)\n"
    )
    assert stoker("jupyter", "--port", "0", code=2).err == "jupyter: --port 0: must be from 1 to 65535\n"
    inside = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1"}
    refused = stoker("jupyter", "job.yaml", code=2, env=inside).err
    assert refused == "jupyter: already in an allocation (SLURM_JOB_ID)\n  try: stoker run job.yaml\n"
    missing = environment(programs, tmp_path / "s") | {"PATH": str(programs)}
    assert stoker("jupyter", code=3, env=missing).err == (
        "salloc: program not found in PATH (is this a machine with Slurm?)\n  try: stoker run job.yaml\n"
    )
    shown = json.loads(stoker("jupyter", "--dry-run", "--json", code=0, env=missing).out)["command"]
    assert shown[0] == "salloc"
    assert {"--nodes=2", "--time=01:00:00", "notebook"} <= set(shown)
    assert "--pty" not in shown
    assert os.path.basename(shown[shown.index("notebook") - 1]) == "stoker"
