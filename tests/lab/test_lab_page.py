"""Pages that are one session on a lab: their commands, run in order in one shell, print the output shown on the page."""

import fcntl
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import docs_examples
import pytest
from conftest import BIN, REPOSITORY

pytestmark = pytest.mark.needs("slurm", "namespaces")

PAGES = [
    page for page in sorted((REPOSITORY / "docs").glob("*.md")) if docs_examples.session(page.read_text()) == "lab"
]


class Session:
    """A bash that runs one command at a time; its output is standard output and standard error together."""

    MARK = "-- command done"

    def __init__(self, folder: Path, environment: dict[str, str]):
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._code = 0

    def run(self, command: str, timeout: float = 180) -> tuple[str, int]:
        """Output and exit code of the command. In braces, so that it does not read later commands."""
        script = f"{{ (exit {self._code}); {command}\n}} </dev/null\nprintf '%s %d\\n' '{self.MARK}' $?\n"
        self._shell.stdin.write(script.encode())
        self._shell.stdin.flush()
        output, deadline = b"", time.monotonic() + timeout
        mark = f"{self.MARK} ".encode()
        while not (mark in output and output.endswith(b"\n")):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._shell.stdout], [], [], left)[0]:
                pytest.fail(f"$ {command}\nnot done after {timeout} s; its output:\n{output.decode()}")
            piece = os.read(self._shell.stdout.fileno(), 65536)
            if not piece:
                pytest.fail(f"$ {command}\nended the shell; its output:\n{output.decode()}")
            output += piece
        text, _, code = output.rpartition(mark)
        self._code = int(code)
        return text.decode(), self._code

    def close(self) -> None:
        self._shell.stdin.close()
        self._shell.stdout.close()
        self._shell.kill()
        self._shell.wait()


@pytest.fixture
def session(tmp_path, example_dataset) -> Iterator[Session]:
    """A shell in a folder with the dataset cifar10-6000, on a machine without a running lab called lab1."""
    shutil.copytree(example_dataset, tmp_path / "cifar10-6000")
    labs = tempfile.mkdtemp(prefix="stoker-page-")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("STOKER_", "SLURM_", "SBATCH_"))}
    environment |= {"STOKER_LAB_DIR": labs, "PATH": f"{BIN}:{environment['PATH']}"}
    with open(Path(tempfile.gettempdir()) / "stoker-test-lab1.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in Path(tempfile.gettempdir()).glob("stoker-page-*/lab1"):  # of a killed test
            subprocess.run(
                [BIN / "stoker", "lab", "down"], env=environment | {"STOKER_LAB_DIR": str(left.parent)}, timeout=60
            )
        session = Session(tmp_path, environment)
        yield session
        session.close()
        subprocess.run([BIN / "stoker", "lab", "down"], env=environment, capture_output=True, timeout=60)
    shutil.rmtree(labs, ignore_errors=True)


def wait_until(session: Session, command: str, wrong: list[str]) -> None:
    deadline = time.monotonic() + 120
    while session.run(command)[1] != 0:
        if time.monotonic() > deadline:
            pytest.fail("\n\n".join([*wrong, f"{command}: not so after 120 s"]))
        time.sleep(0.1)


def test_there_are_such_pages():
    assert {page.name for page in PAGES} >= {"lab.md", "two-nodes.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_shows_the_output_of_the_commands(session, tmp_path, page):
    text = blessed = page.read_text()
    wrong = []
    for example in docs_examples.examples(text):
        if isinstance(example, docs_examples.File):
            (tmp_path / example.name).write_text(example.text)
        elif isinstance(example, docs_examples.Until):
            wait_until(session, example.command, wrong)
        else:
            output, _ = session.run(example.command)
            if not docs_examples.matches(example.expected, output):
                wrong.append(
                    f"docs/{page.name}:{example.line}: $ {example.command}\nthe page shows:\n{example.expected}\nthe command prints:\n{output}"
                )
                if os.environ.get("STOKER_BLESS") and "…" not in example.expected:
                    blessed = docs_examples.with_output(blessed, example, output)
    if blessed != text:
        page.write_text(blessed)
    assert not wrong, "\n\n".join(wrong)
