"""stoker shell: an allocation to work in by hand, and what worked there as a job file."""

import fcntl
import os
import pty
import re
import select
import termios
import time

import pytest
from labs import BIN
from running import Process
from submitted import Runs

pytestmark = pytest.mark.needs("slurm")


class Typist:
    """A command on a pseudo-terminal with typed input."""

    def __init__(self, runs: Runs, *words: str):
        self.master, slave = pty.openpty()
        self.output = ""
        self.process = Process(
            [BIN / "stoker", *words],
            cwd=runs.folder,
            env=runs.lab.env | {"PS1": "$ ", "TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def wait_for(self, text: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while text not in self.output:
            if time.monotonic() > end:
                pytest.fail(f"not within {seconds:g} s: {text!r} in {self.output!r}")
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.output += os.read(self.master, 4096).decode(errors="replace")
                except OSError:  # the other end is closed
                    time.sleep(0.1)

    def type(self, line: str) -> None:
        os.write(self.master, f"{line}\n".encode())

    def end(self) -> int:
        code = self.process.wait()
        os.close(self.master)
        return code


def test_what_is_typed_in_an_allocation_becomes_a_job(runs: Runs):
    more = "environment: {variables: {GREETING: hello}}\n"
    runs.job("true", "nodes: 2", more)
    shell = Typist(runs, "shell", "job.yaml", "--record", "worked.yaml")
    shell.type('echo "$GREETING $SLURM_JOB_NUM_NODES $SLURMD_NODENAME" | tee printed')
    shell.wait_for("hello 2 n1\r\n")
    shell.type("false # never again")
    shell.type("srun --ntasks-per-node=1 --overlap true; echo srun gave $?")
    shell.wait_for("srun gave 0\r\n")
    shell.type("exit 3")
    shell.wait_for("successful commands")
    assert shell.end() == 3
    text = (runs.folder / "worked.yaml").read_text()
    assert "tee printed" in text
    assert "never again" not in text
    assert (
        runs.stoker("run", "worked.yaml", "--set", "resources.nodes=1", code=0).out.splitlines()[0].strip() == "hello"
    )
    assert not re.search(r"\bR\b", runs.lab.run("squeue", "--noheader", "--format=%t").out)


def test_a_shell_in_a_shell_is_refused(runs: Runs):
    runs.job("true", "nodes: 1")
    env = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1"}
    refused = runs.stoker("shell", "job.yaml", code=2, env=env).err
    assert refused == "shell: already in an allocation (SLURM_JOB_ID)\n  try: stoker run job.yaml\n"
    (runs.folder / "there.yaml").write_text("")
    refused = runs.stoker("shell", "job.yaml", "--record", "there.yaml", code=1).err
    assert refused == "there.yaml: already exists (--record)\n"
