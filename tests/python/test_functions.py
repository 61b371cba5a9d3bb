"""stoker.submit on a real cluster: results, exceptions, logs and failures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MODULE
from labs import Lab
from stoker import call

SCRIPT = """
import os, sys, time
import stoker

class Mistake(Exception):
    def __init__(self, what, where):
        super().__init__(what, where)

def add(a, b, scale=1):
    print("adding", a, b)
    return (a + b) * scale

def fail(at):
    if os.environ["RANK"] == str(at):
        raise Mistake("no such class: 11", at)
    time.sleep(600)

def place():
    return os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["SLURMD_NODENAME"]

def die():
    os.kill(os.getpid(), 9)

def third(item):
    print("item", item)
    if item == 3:
        raise Mistake("three", 3)
    return 10 * item

def die_at_one(item):
    if item == 1:
        os.kill(os.getpid(), 9)
    return item

def unpicklable():
    return lambda: 0

if __name__ == "__main__":
"""


def program(lab: Lab, body: str, **options) -> str:
    """Output of a script with the functions above and this body, in the lab's shared folder."""
    folder = lab.shared / "project"
    folder.mkdir(exist_ok=True)
    lines = body.strip().splitlines()
    (folder / "script.py").write_text(SCRIPT + "".join(f"    {line}\n" for line in lines))
    path = os.environ.get("PYTHONPATH", MODULE)
    done = lab.run(sys.executable, "script.py", cwd=folder, env={"PYTHONPATH": path}, timeout=200, **options)
    return done.out


pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def without_cloudpickle(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides cloudpickle from this process and its children, except in its own test."""
    if "cloudpickle" in request.node.name:
        return
    (tmp_path / "without").mkdir()
    (tmp_path / "without/sitecustomize.py").write_text("import sys\nsys.modules['cloudpickle'] = None\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/without:{MODULE}")
    monkeypatch.setitem(sys.modules, "cloudpickle", None)


@pytest.mark.needs("slurm")
def test_a_function_of_a_script_returns_result_and_log(lab: Lab):
    output = program(
        lab,
        """
future = stoker.submit(add, 2, 3, kwargs={"scale": 10}, nodes=1, time="5m")
print(future.result(timeout=120), future.exception(), future.done(), future.cancelled())
print(future.log(), end="")
print(sorted(os.listdir(future.folder)))
""",
    )
    assert output.splitlines() == [
        "50 None True False",
        "adding 2 3",
        "['attempts', 'call.pkl', 'capsule', 'checkpoints', 'job.yaml', 'result-0000.pkl', 'run.json']",
    ]
    (run,) = json.loads(lab.stoker("status", "--json", cwd=lab.shared / "project").out)["runs"]
    assert (run["name"], run["ranks"]) == ("add", 1)
    assert list((lab.shared / "project/runs").glob(".call-*")) == []


@pytest.mark.needs("slurm")
def test_every_rank_returns_a_result(lab: Lab):
    output = program(
        lab,
        """
future = stoker.submit(place, nodes=2, ranks_per_node=2, cpus_per_rank=1)
print(future.results(timeout=120), future.result())
""",
    )
    places = [(str(rank), "4", f"n{1 + rank // 2}") for rank in range(4)]
    assert output == f"{places} {places[0]}\n"


@pytest.mark.needs("slurm")
def test_an_exception_is_raised_with_its_traceback(lab: Lab):
    output = program(
        lab,
        """
future = stoker.submit(fail, 1, nodes=2, cpus_per_rank=1)
try:
    future.result(timeout=120)
except Mistake as error:
    print(repr(error))
    print(str(error.__cause__).strip().splitlines()[1], "script.py" in str(error.__cause__))
other = stoker.submit(unpicklable)
print(type(other.exception(timeout=120)).__name__)
""",
    )
    assert output.splitlines()[:2] == [
        "Mistake('no such class: 11', 1)",
        "Traceback (most recent call last): True",
    ]
    assert output.splitlines()[2] in ("AttributeError", "PicklingError", "RemoteError")


@pytest.mark.needs("slurm")
def test_a_call_without_result_reports_its_end(lab: Lab):
    output = program(
        lab,
        """
killed = stoker.submit(die)
held = stoker.submit(add, 1, 2, extra=["--hold"])
try:
    held.result(timeout=0.2)
except stoker.WaitTimeoutError as error:
    print(error)
print(held.done(), held.cancel(), held.exception(timeout=120).__class__.__name__, held.cancelled(), held.cancel())
print(killed.exception(timeout=120))
try:
    stoker.submit(add, partition="fast")
except stoker.InvalidError as error:
    print(error)
""",
    ).splitlines()
    assert output[0].endswith(": no result within 0.2 s (submitted)")
    assert output[1] == "False True CancelledError True False"
    assert "failed (rank 0 (n1) exited after " in output[2] and "killed by signal 9 (SIGKILL))" in output[2]
    assert output[3].startswith("  try: stoker logs ")
    assert "invalid partition specified: fast" in output[4]


@pytest.mark.needs("slurm")
def test_an_array_returns_a_future_for_each_item(lab: Lab):
    output = program(
        lab,
        """
futures = stoker.map_array(third, range(6), at_once=3, time="10m")
print([future.exception(timeout=120).__class__.__name__ for future in futures])
print([future.result() for future in futures if future.exception() is None])
print(futures[2].log(), end="")
print(futures[3].exception())
tasks = sorted(os.listdir(futures[0].folder / "tasks"))
print(len(tasks) <= 2 * len(futures))
print(stoker.map_array(third, []))
""",
    )
    assert output.splitlines() == [
        "['NoneType', 'NoneType', 'NoneType', 'Mistake', 'NoneType', 'NoneType']",
        "[0, 10, 20, 40, 50]",
        "item 2",
        "('three', 3)",
        "True",
        "[]",
    ]


@pytest.mark.needs("slurm")
def test_a_killed_task_is_reported_and_its_peers_succeed(lab: Lab):
    output = program(
        lab,
        """
futures = stoker.map_array(die_at_one, [0, 1], time="10m")
print(futures[0].result(timeout=120), futures[1].exception(timeout=120))
""",
    )
    assert output.startswith("0 run ")
    assert ": task 2: failed (" in output and "killed by signal 9 (SIGKILL)" in output


def test_a_call_is_read_with_its_module_path(tmp_path: Path):
    file = tmp_path / "call.pkl"
    call.write_call(file, json.dumps, [(([1],), {}), (([2],), {"indent": 1})])
    function, arguments, keywords = call.read_call(file.read_bytes(), 1)
    assert function(*arguments, **keywords) == json.dumps([2], indent=1)


def test_an_unpicklable_function_gets_a_cure(tmp_path: Path):
    with pytest.raises(call.InvalidError) as error:
        call.write_call(tmp_path / "call.pkl", lambda: 0, [((), {})])
    assert str(error.value).startswith("submit: ")
    assert str(error.value).endswith("\n  try: pip install cloudpickle")


def test_cloudpickle_sends_lambdas(tmp_path: Path):
    scale = 7
    call.write_call(tmp_path / "call.pkl", lambda item: scale * item, [((6,), {})])
    environment = os.environ | {"PYTHONPATH": str(MODULE), "STOKER_RUN_DIR": str(tmp_path), "RANK": "0"}
    subprocess.run([sys.executable, "-m", "stoker.call", "call.pkl"], cwd=tmp_path, env=environment, check=True)
    assert call.read_answer((tmp_path / "result-0000.pkl").read_bytes()) == 42


def test_a_script_without_a_main_guard_does_not_submit_itself_again(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "import stoker\nfrom stoker import call\nfrom pathlib import Path\ndef f(): pass\n"
        "if not call.is_inside(): call.write_call(Path('c.pkl'), f, [((), {})])\nelse: stoker.submit(f)\n"
    )
    environment = dict(os.environ)
    subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, check=True)
    ran = subprocess.run(
        [sys.executable, "-m", "stoker.call", "c.pkl"],
        cwd=tmp_path,
        env=environment | {"STOKER_RUN_DIR": str(tmp_path), "RANK": "0"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert 'try: move the call below if __name__ == "__main__":' in ran.stderr
    with pytest.raises(call.InvalidError):
        call.read_answer((tmp_path / "result-0000.pkl").read_bytes())


def test_an_unknown_keyword_is_rejected_with_the_known_ones():
    import stoker

    with pytest.raises(stoker.InvalidError, match=r"unknown keyword 'node' \(one of: name, working_directory, nodes"):
        stoker.submit(print, node=2)
