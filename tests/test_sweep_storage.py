"""`stoker sweep` on studies in storages of Optuna: journals, SQLite and PostgreSQL, beside Optuna users, killed and shared."""

import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postgres_server
import pytest
from failing_disk import failing_disk

SWEEP = """
space:
  lr: {min: 1.0e-4, max: 1, log: true}
  width: [16, 32, true, '16']
objectives: {val_acc: maximize}
"""

USER = """
import sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
url, name = sys.argv[1:3]
journal = optuna.storages.journal
storage = optuna.storages.JournalStorage(journal.JournalFileBackend(url[10:])) if url.startswith("journal") else url
"""


@pytest.fixture
def sweep(stoker):
    """`stoker sweep` with the Python of the tests, and `sweep.user(...)`, a program of an Optuna user."""

    def command(*words, **options):
        return stoker("sweep", *words, env={"STOKER_PYTHON": sys.executable}, **options)

    def user(program, url, name="lr"):
        done = subprocess.run(
            [sys.executable, "-c", USER + program, url.replace("postgresql:", "postgresql+psycopg:"), name],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    command.folder = stoker.folder
    command.user = user
    command.start = lambda *words: stoker.start("sweep", *words, env={"STOKER_PYTHON": sys.executable})
    return command


@pytest.fixture(scope="module")
def postgres():
    """The address of a PostgreSQL database."""
    # The path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="stoker-postgres-") as folder:
        Path(folder).chmod(0o755)
        with postgres_server.running(Path(folder) / "server") as host:
            yield f"postgresql://ana@/postgres?host={host}"


@pytest.fixture
def address(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("postgres")
    return {"journal": f"journal://{tmp_path}/studies.log", "sqlite": f"sqlite:///{tmp_path}/studies.db"}[request.param]


STORAGES = pytest.mark.parametrize(
    "address",
    [
        pytest.param("journal", marks=pytest.mark.needs("optuna")),
        pytest.param("sqlite", marks=[pytest.mark.needs("optuna"), pytest.mark.soak]),
        pytest.param("postgresql", marks=[pytest.mark.needs("optuna", "postgres", "psycopg"), pytest.mark.soak]),
    ],
    indirect=True,
)


def ask(sweep, study):
    return json.loads(sweep("ask", study, "--json", code=0).out)


def trials_of(sweep, study):
    return {one["number"]: one for one in json.loads(sweep("show", study, "--top", 0, "--json", code=0).out)}


@STORAGES
def test_optuna_reads_what_stoker_writes_and_the_other_way_round(sweep, address):
    study = f"{address}#lr"
    (sweep.folder / "lr.yaml").write_text(
        f"{SWEEP}pruner: {{kind: asha, min_resource: 1, reduction_factor: 2}}\nstorage: {address}\n"
        "first: [{lr: 0.5, width: true}]\n"
    )
    first = sweep("ask", "lr.yaml", code=0)
    assert (first.out, first.err) == ("trial 0: lr=0.5 width=true\n", f"{study}: new study\n")
    assert sweep("report", study, 0, 1, 0.5, code=0).out == "continue\n"
    sweep("tell", study, 0, 0.7, code=0)
    assert ask(sweep, study)["trial"] == 1
    assert sweep("report", study, 1, 1, 0.1, code=0).out == "stop\n"
    sweep("tell", "lr.yaml", 1, "--pruned", code=0)
    failed = ask(sweep, study)
    sweep("tell", study, 2, "--failed", "--message", "out of memory", code=0)
    again = json.loads(sweep("ask", study, "--retry", 2, "--json", code=0).out)
    assert again == {"trial": 3, "attempt": 1, "values": failed["values"]}
    sweep("tell", study, 3, "nan", code=0)
    read = json.loads(
        sweep.user(
            """
import json
study = optuna.load_study(study_name=name, storage=storage)
study.optimize(lambda trial: trial.suggest_float("lr", 1e-4, 1, log=True) + (trial.suggest_categorical(
    "width", [16, 32, True, "16"]) == "16"), n_trials=1)
study.optimize(lambda trial: trial.suggest_int("lr_steps", 1, 9), n_trials=1)
study.enqueue_trial({"lr": 0.25, "width": 32})
print(json.dumps([[one.state.name, one.value, one.params.get("width"), one.intermediate_values] for one in study.trials]))
""",
            address,
        )
    )
    assert [one[0] for one in read] == ["COMPLETE", "PRUNED", "FAIL", "FAIL", "COMPLETE", "COMPLETE", "WAITING"]
    assert read[0] == ["COMPLETE", 0.7, True, {"1": 0.5}]
    shown = sweep("show", study, code=0)
    assert shown.err == f"{study}: 1 trial outside the space left out\n"
    assert shown.out.startswith("lr: maximize val_acc, sampler auto, 2 complete, 1 pruned, 2 failed\n")
    trials = trials_of(sweep, study)
    assert trials[2]["message"] == "out of memory"
    assert trials[3]["message"] == "val_acc is nan"
    assert trials[4]["origin"] == "optuna"
    assert trials[0]["reports"] == [[1, 0.5]]
    best = json.loads(sweep("best", study, "--json", code=0).out)
    assert best[0]["number"] in (0, 4)
    assert ask(sweep, study) == {"trial": 6, "attempt": 0, "values": {"lr": 0.25, "width": 32}}
    assert sweep("tell", study, 0, 0.9).err.endswith("lr: trial 0 has ended (complete)\n")
    table = sweep("export", study, code=0).out.splitlines()
    assert table[0] == "trial,state,val_acc,lr,width,seconds"


@STORAGES
def test_processes_share_a_study_and_its_limit(sweep, address):
    study = f"{address}#shared"
    (sweep.folder / "shared.yaml").write_text(f"{SWEEP}trials: 13\nstorage: {study}\nsampler: random\n")
    with ThreadPoolExecutor(4) as pool:
        run = ("run", "shared.yaml", "--max-failed", 0, "-q", "--", "sh", "-c", "sleep 0.05; echo 0.5")
        done = list(pool.map(lambda _: sweep(*run), range(4)))
    assert {one.code for one in done} == {0}, [one.err for one in done]
    trials = trials_of(sweep, study).values()
    complete = [one for one in trials if one["state"] == "complete"]
    assert len(complete) == 13
    assert {one["message"] for one in trials if one["state"] != "complete"} <= {"trials: 13"}
    assert len({json.dumps(one["params"]) for one in complete}) == 13
    assert sweep("ask", study).err == "shared: no trial is left (trials: 13)\n"


@pytest.mark.soak
@pytest.mark.needs("optuna")
def test_a_grid_is_tried_once_by_processes_that_are_killed(sweep, tmp_path):
    address = f"journal://{tmp_path}/studies.log"
    (sweep.folder / "grid.yaml").write_text(
        f"space: {{a: [1, 2, 3, 4], b: [1, 2, 3]}}\nobjectives: {{loss: minimize}}\nsampler: grid\nstorage: {address}\n"
    )
    printed = []
    for kill in range(200):
        process = sweep.start("ask", "grid.yaml", "--json")
        if kill % 3:
            time.sleep(0.3 + 0.1 * (kill % 7))
            process.kill()
        out, _ = process.communicate()
        if process.returncode == 1:
            assert "grid: no trial is left (every point was tried)" in out
            break
        if out:
            printed.append(json.loads(out))
    # A trial whose process was killed later still runs.
    trials = trials_of(sweep, f"{address}#grid")
    points = [json.dumps(one["params"]) for one in trials.values() if one["state"] == "running"]
    assert len(points) == len(set(points)) == 12
    assert {one["trial"] for one in printed} <= {one["number"] for one in trials.values() if one["state"] == "running"}


@pytest.mark.soak
@pytest.mark.needs("optuna")
def test_a_study_of_an_optuna_user_is_continued(sweep, tmp_path):
    address = f"journal://{tmp_path}/studies.log"
    empty = "optuna.create_study(study_name='empty', storage=storage)\n"
    sweep.user(
        empty
        + """
study = optuna.create_study(study_name=name, storage=storage, directions=["minimize", "maximize"])
study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), trial.suggest_categorical("c", [None, "a", 2])==2), n_trials=5)
""",
        address,
        "my study",
    )
    shown = sweep("show", f"{address}#my study", code=0).out
    assert shown.startswith("my_study: minimize value_0, maximize value_1, sampler auto, 5 complete\n")
    asked = ask(sweep, f"{address}#my study")
    assert asked["trial"] == 5
    sweep("tell", f"{address}#my study", 5, 0.5, 1, code=0)
    assert len(json.loads(sweep("export", f"{address}#my study", "--format", "json").out)) == 6
    assert sweep("show", f"{address}#empty").err == (
        f"{address}#empty: the study has no trial yet, and no parameters without one\n"
    )
    (sweep.folder / "empty.yaml").write_text(f"{SWEEP}storage: {address}\n")
    assert sweep("ask", "empty.yaml").err == (
        f"{address}#empty: its objectives are others (value: minimize)\n  try: objectives: {{value: minimize}}\n"
    )
    (sweep.folder / "empty.yaml").write_text(
        SWEEP.replace("val_acc: maximize", "value: minimize") + f"storage: {address}\n"
    )
    assert ask(sweep, "empty.yaml")["trial"] == 0
    assert sweep("show", "empty.yaml").code == 0


@pytest.mark.needs("optuna")
def test_a_sampler_of_optuna_and_a_warm_start_work_in_a_storage(sweep, tmp_path):
    address = f"journal://{tmp_path}/studies.log"
    (sweep.folder / "old.csv").write_text("lr,width,val_acc\n0.1,16,0.5\n0.2,32,0.6\n")
    text = f"{SWEEP}sampler: {{optuna: NSGAIISampler, population_size: 4}}\nwarm_start: old.csv\nstorage: {address}\n"
    (sweep.folder / "evolve.yaml").write_text(text)
    done = sweep("run", "evolve.yaml", "--trials", 9, "--", "echo", "{lr}", code=0)
    assert "old.csv: 2 trials for the sampler" in done.err
    (sweep.folder / "old.csv").unlink()
    sweep("run", "evolve.yaml", "--trials", 3, "--", "echo", "{lr}", code=0)
    out = sweep.user(
        """
import json
states = [json.loads(one.user_attrs["stoker:sampler"]) for one in optuna.load_study(study_name=name, storage=storage).trials]
print([state["trial"]["NSGAIISampler:generation"] for state in states])
""",
        address,
        "evolve",
    )
    generations = json.loads(out)
    assert len(generations) == 12
    assert generations == sorted(generations)
    assert generations[-1] >= 2


@pytest.mark.parametrize(
    ("study", "error"),
    [
        ("redis://host/1#x", "redis://host/1: 'redis' is no storage of studies (one of: journal, postgresql, sqlite)"),
        (
            "journal://studies.log#x",
            "journal://studies.log: is not an absolute path\n  try: journal:///shared/studies.log#x",
        ),
        ("sqlite:///studies.db#x", "sqlite:///studies.db: is not an absolute path\n  try: sqlite:////tmp/studies.db#x"),
        (
            "journal:///no/studies.log",
            "journal:///no/studies.log: names no study\n  try: journal:///no/studies.log#name",
        ),
        ("journal:///no/studies.log#x", "/no/studies.log: no such file or directory"),
    ],
)
def test_wrong_addresses_are_refused(sweep, study, error):
    done = sweep("show", study)
    assert done.code in (1, 2)
    assert done.err == f"{error}\n"


@pytest.mark.needs("optuna")
def test_an_unknown_study_is_named_with_one_like_it(sweep, tmp_path):
    address = f"journal://{tmp_path}/studies.log"
    sweep.user("optuna.create_study(study_name=name, storage=storage)", address, "rates")
    assert sweep("show", f"{address}#rate").err == f"{address}#rate: 'rate' is unknown; did you mean 'rates'?\n"


@pytest.mark.needs("optuna", "psycopg")
def test_a_password_is_not_shown(sweep):
    done = sweep("show", "postgresql://lab:secret@127.0.0.1:1/studies#x")
    assert done.code == 3
    assert done.err.startswith("postgresql://lab:***@127.0.0.1:1/studies#x: ")
    assert "secret" not in done.err


@pytest.mark.needs("fuse")
def test_sqlite_on_a_shared_filesystem_is_refused_with_the_cure(sweep, tmp_path):
    (tmp_path / "data").mkdir()
    with failing_disk(tmp_path / "data", tmp_path / "box") as disk:
        for words in (["show", f"sqlite:///{disk.folder}/a.db#lr"], ["ask", "lr.yaml"]):
            (sweep.folder / "lr.yaml").write_text(f"{SWEEP}storage: sqlite:///{disk.folder}/a.db\n")
            done = sweep(*words)
            assert done.code == 2
            assert done.err == (
                f"sqlite:///{disk.folder}/a.db: SQLite on FUSE (locks of SQLite do not hold between nodes, and a study is lost)\n"
                f"  try: journal://{disk.folder}/a.log\n"
            )
