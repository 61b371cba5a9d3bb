"""`stoker sweep FILE` with its trials in a storage of Optuna: kill -9, retries, two drivers, a database that is restarted."""

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import postgres_server
import pytest
from running import wait_until

SWEEP = """
job: job.yaml
space: {lr: {min: 0.001, max: 1, log: true}, width: [16, 32]}
objectives: {loss: minimize}
sampler: sobol
"""
JOB = f"""
name: toy
run: {sys.executable} train.py ${{params.lr}} ${{params.width}}
params: {{lr: 0.1, width: 16}}
"""
TRAIN = """
import sys
print(f"loss: {float(sys.argv[1]) + int(sys.argv[2])}")
"""
# Continues where it was.
SLOW = """
import os, pathlib, sys, time
place = pathlib.Path(os.environ["STOKER_ATTEMPT_DIR"]).parent / "progress"
done = int(place.read_text()) if place.exists() else 0
for step in range(done, 10):
    time.sleep(0.1)
    place.with_suffix(".new").write_text(str(step + 1))
    place.with_suffix(".new").rename(place)
print(f"loss: {float(sys.argv[1])}")
"""
FAILS_FIRST = """
import pathlib, sys
first = pathlib.Path(sys.argv[1] + ".seen")
if not first.exists():
    first.write_text("")
    sys.exit(7)
print("loss: 1")
"""
# Holds its trial until a file appears.
WAITS = """
import pathlib, time
while not pathlib.Path("GO").exists():
    time.sleep(0.05)
print("loss: 1")
"""
READ = """
import json, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
url, name = sys.argv[1:3]
journal = optuna.storages.journal
storage = optuna.storages.JournalStorage(journal.JournalFileBackend(url[10:])) if url.startswith("journal") else url
study = optuna.load_study(study_name=name, storage=storage)
"""


@pytest.fixture
def postgres():
    """A PostgreSQL database, whose server the test may restart."""
    with tempfile.TemporaryDirectory(prefix="stoker-postgres-") as folder:
        Path(folder).chmod(0o755)
        with postgres_server.running(Path(folder) / "server") as host:
            yield host


def create_database(host, name):
    import psycopg

    try:
        with psycopg.connect(f"host={host} user=ana dbname=postgres", autocommit=True) as connection:
            connection.execute(f"create database {name}")
    except psycopg.OperationalError:  # it is starting
        return False
    return True


@pytest.fixture
def address(request, tmp_path):
    if request.param == "postgresql":
        host = request.getfixturevalue("postgres")
        name = f"d{len(list(host.glob('*.made')))}"
        (host / f"{name}.made").touch()
        wait_until(lambda: create_database(host, name), "PostgreSQL has a new database")
        return f"postgresql://ana@/{name}?host={host}"
    return {"journal": f"journal://{tmp_path}/studies.log", "sqlite": f"sqlite:///{tmp_path}/studies.db"}[request.param]


SOME = [
    pytest.param("journal", marks=pytest.mark.needs("optuna")),
    pytest.param("sqlite", marks=[pytest.mark.needs("optuna"), pytest.mark.soak]),
    pytest.param("postgresql", marks=[pytest.mark.needs("optuna", "postgres", "psycopg"), pytest.mark.soak]),
]
STORAGES = pytest.mark.parametrize("address", SOME, indirect=True)
SLOW_STORAGES = pytest.mark.parametrize(
    "address", [pytest.param(*one.values, marks=[*one.marks, pytest.mark.soak]) for one in SOME], indirect=True
)
JOURNAL = pytest.mark.parametrize("address", SOME[:1], indirect=True)


class Sweep:
    """`stoker sweep lr.yaml` in a folder with lr.yaml, job.yaml and train.py."""

    def __init__(self, stoker):
        self.stoker, self.folder = stoker, stoker.folder
        self.env = {"STOKER_PYTHON": sys.executable}

    def write(self, address, more="", train=TRAIN, place="."):
        folder = self.folder / place
        folder.mkdir(exist_ok=True)
        (folder / "lr.yaml").write_text(f"{SWEEP}storage: {address}\n{more}")
        (folder / "job.yaml").write_text(JOB)
        (folder / "train.py").write_text(train.replace("GO", str(self.folder / "go")))

    def __call__(self, *words, file="lr.yaml", **options):
        return self.stoker("sweep", file, *words, env=self.env, **options)

    def command(self, *words, **options):
        return self.stoker("sweep", *words, env=self.env, **options)

    def start(self, *words, file="lr.yaml", **options):
        return self.stoker.start("sweep", file, *words, env=self.env, **options)

    def trials(self, address):
        return json.loads(self.command("show", f"{address}#lr", "--top", "0", "--json", code=0).out)

    def runs(self, place="."):
        folders = (self.folder / place / "lr.study/runs").iterdir()
        return sorted(json.loads((run / "run.json").read_text())["name"] for run in folders if run.is_dir())

    def optuna(self, address, program):
        url = address.replace("postgresql:", "postgresql+psycopg:")
        done = subprocess.run([sys.executable, "-c", READ + program, url, "lr"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def sweep(stoker):
    return Sweep(stoker)


@STORAGES
def test_trials_of_a_storage_are_runs_that_optuna_sees_while_they_run(sweep, address):
    sweep.write(address, "trials: 4\nat_once: 2\n", train=WAITS)
    driver = sweep.start("--json")
    wait_until(lambda: len(list((sweep.folder / "lr.study/runs").glob("*/attempts/1/rank-0000.log"))) == 2, "two run")
    rows = "print(json.dumps([[one.state.name, one.params, one.user_attrs] for one in study.trials]))"
    seen = sweep.optuna(address, rows)
    assert [one[0] for one in seen] == ["RUNNING", "RUNNING"]
    assert all(one[1].keys() == {"lr", "width"} for one in seen)
    assert all(one[2]["stoker:worker"].endswith("/driver") for one in seen)
    (sweep.folder / "go").write_text("")
    out, err = driver.communicate()
    assert driver.returncode == 0, err
    summary = json.loads(out)
    assert (summary["study"], summary["complete"]) == (f"{address}#lr", 4)
    states = sweep.optuna(address, "print(json.dumps([[one.state.name, one.value] for one in study.trials]))")
    assert states == [["COMPLETE", 1.0]] * 4
    assert sweep.runs() == ["lr-0", "lr-1", "lr-2", "lr-3"]
    assert sweep(code=0).out.startswith("lr: 4 complete trials\n  best  trial ")
    again = sweep.command("best", "lr.yaml", "--rerun", code=0)
    assert again.out.endswith("same result, difference 0.00 %\n")


@SLOW_STORAGES
def test_after_kill_9_of_the_driver_each_trial_of_a_storage_has_run_exactly_once(sweep, address):
    sweep.write(address, "trials: 6\nat_once: 3\n", train=SLOW)
    runs = sweep.folder / "lr.study/runs"
    for count in (1, 3, 4):
        driver = sweep.start()
        wait_until(lambda count=count: len(list(runs.glob("*/run.json"))) >= count, f"{count} runs")
        driver.kill()
        driver.communicate()
    sweep(code=0)
    trials = sweep.trials(address)
    complete = [trial for trial in trials if trial["state"] == "complete"]
    assert len(complete) == 6
    # A driver that was killed while it asked leaves a failed trial, which had no run.
    rest = [trial for trial in trials if trial["state"] != "complete"]
    assert {trial["message"] for trial in rest} <= {"Stoker ended while it asked", "trials: 6"}
    assert sweep.runs() == sorted(f"lr-{trial['number']}" for trial in complete)
    for run in runs.iterdir():
        if run.is_dir():
            assert [folder.name for folder in (run / "attempts").iterdir() if folder.is_dir()] == ["1"]


@STORAGES
def test_a_failed_trial_of_a_storage_is_retried_with_a_new_number(sweep, address):
    sweep.write(address, "trials: 2\nretries: 1\n", train=FAILS_FIRST)
    sweep(code=0)
    trials = [(one["number"], one["attempt"], one["state"], one["origin"]) for one in sweep.trials(address)]
    assert sorted(trials) == [
        (0, 0, "failed", "sobol"),
        (1, 1, "complete", "retry 0"),
        (2, 0, "failed", "sobol"),
        (3, 1, "complete", "retry 2"),
    ]
    assert sweep.runs() == ["lr-0", "lr-1.1", "lr-2", "lr-3.1"]


@pytest.mark.soak
@JOURNAL
def test_retries_of_a_trial_of_a_storage_end_with_their_number(sweep, address):
    sweep.write(address, "trials: 1\nretries: 2\n", train="raise SystemExit(7)")
    assert "lr: the last 3 trials failed" in sweep(code=2).err
    trials = sorted((one["number"], one["attempt"], one["origin"]) for one in sweep.trials(address))
    assert trials == [(0, 0, "sobol"), (1, 1, "retry 0"), (2, 2, "retry 1")]


@pytest.mark.soak
@JOURNAL
def test_ctrl_c_stops_the_trials_of_a_storage_and_the_next_call_resumes_them(sweep, address):
    sweep.write(address, "trials: 2\nat_once: 2\n", train=SLOW)
    driver = sweep.start()
    runs = sweep.folder / "lr.study/runs"
    wait_until(lambda: len(list(runs.glob("*/attempts/progress"))) == 2, "both trials run")
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate()
    assert driver.returncode == 130
    assert "stopping 2 trials, to be resumed by the next stoker sweep\n" in err
    again = sweep(code=0)
    assert again.err.count("resumed\n") == 2, again.err
    assert [trial["state"] for trial in sweep.trials(address)] == ["complete"] * 2


@SLOW_STORAGES
def test_drivers_in_two_folders_share_a_study_and_its_limit(sweep, address):
    for place in ("one", "two"):
        sweep.write(address, "trials: 6\nat_once: 2\n", train=WAITS, place=place)
    # Whoever creates the study fills it.
    first = sweep.start(file="one/lr.yaml")
    wait_until(lambda: len(list((sweep.folder / "one").glob("lr.study/runs/*/run.json"))) == 2, "the first has trials")
    second = sweep.start(file="two/lr.yaml")
    wait_until(lambda: len(list((sweep.folder / "two").glob("lr.study/runs/*/run.json"))) == 2, "the second has trials")
    refused = sweep(file="one/lr.yaml", code=1)
    assert f"one/lr.study: process {first.pid} on " in refused.err
    (sweep.folder / "go").write_text("")
    for driver in (first, second):
        _, err = driver.communicate()
        assert driver.returncode == 0, err
    complete = [trial for trial in sweep.trials(address) if trial["state"] == "complete"]
    assert len(complete) == 6
    names = sweep.runs("one") + sweep.runs("two")
    assert sorted(names) == sorted(f"lr-{trial['number']}" for trial in complete)


@JOURNAL
def test_a_folder_with_the_runs_of_a_different_study_is_refused(sweep, address):
    sweep.write(address, "trials: 1\n")
    sweep(code=0)
    Path(address.removeprefix("journal://")).unlink()
    refused = sweep(code=2)
    assert refused.err.endswith(
        f"lr.study: has the runs of a different study, and not of {address}#lr\n  try: mv lr.study lr.study.old\n"
    )
    subprocess.run(["sh", "-c", "mv lr.study lr.study.old"], cwd=sweep.folder, check=True)
    sweep(code=0)
    assert sweep.runs() == ["lr-0"]


@JOURNAL
def test_a_study_in_a_folder_is_no_place_for_the_runs_of_a_storage(sweep, address):
    sweep.write(address, "trials: 1\n")
    (sweep.folder / "lr.yaml").write_text(f"{SWEEP}trials: 1\n")
    sweep(code=0)
    sweep.write(address, "trials: 1\n")
    refused = sweep(code=2)
    assert "lr.study: is a study itself, and its runs are not trials of the storage (storage)\n" in refused.err


@JOURNAL
def test_a_trial_that_its_user_ended_does_not_end_the_driver(sweep, address):
    sweep.write(address, "trials: 2\n", train=WAITS)
    driver = sweep.start()
    wait_until(lambda: list((sweep.folder / "lr.study/runs").glob("*/attempts/1/rank-0000.log")), "a trial runs")
    sweep.command("tell", f"{address}#lr", "0", "0.5", code=0)
    (sweep.folder / "go").write_text("")
    _, err = driver.communicate()
    assert driver.returncode == 0, err
    assert {one["number"]: one["values"] for one in sweep.trials(address)} == {0: {"loss": 0.5}, 1: {"loss": 1}}


@pytest.mark.soak
@pytest.mark.needs("optuna", "postgres", "psycopg")
def test_the_driver_waits_for_a_database_that_is_restarted(sweep, open_folder):
    address = f"postgresql://ana@/postgres?host={open_folder}/server"
    sweep.write(address, "trials: 3\n", train=WAITS)
    log = sweep.folder / "err"
    with postgres_server.running(open_folder / "server"):
        with log.open("w") as err:
            driver = sweep.start(stderr=err)
        wait_until(lambda: list((sweep.folder / "lr.study/runs").glob("*/attempts/1/rank-0000.log")), "a trial runs")
    wait_until(lambda: "(retrying)\n" in log.read_text(), "the driver notices")
    (sweep.folder / "go").write_text("")
    with postgres_server.running(open_folder / "server"):
        assert driver.wait() == 0, log.read_text()
        complete = [trial for trial in sweep.trials(address) if trial["state"] == "complete"]
        assert len(complete) == 3
