"""Time of ask and tell in a study with 500 and 5 000 trials of four parameters, by TPE, compared with Optuna's journal; trials per
second of four processes with random points, compared with Optuna's journal; and the time of `stoker sweep ask` as a command in
the study of 5 000. Limits: 1 ms and 5 ms, 2 000 trials/s, 20 ms."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from loader_python import PYTHON, build, environment, run
from measure import BIN, Interval, check_limit, median_interval, start_times

# Prints the medians of ask + tell in ms at 500 and 5 000 trials.
OURS = """
import json, statistics, sys, time
import stoker
study = stoker.study(sys.argv[1], space={f"x{i}": {"min": 0, "max": 1, "type": "float"} for i in range(4)},
                     objectives={"loss": "minimize"}, sampler=sys.argv[2])
found = []
for count in json.loads(sys.argv[3]):
    while True:
        trial = study.ask()
        trial.tell(sum((value - 0.3) ** 2 for value in trial.params.values()))
        if trial.number + 1 >= count:
            break
    times = []
    for _ in range(40):
        before = time.perf_counter()
        trial = study.ask()
        trial.tell(sum((value - 0.3) ** 2 for value in trial.params.values()))
        times.append(1000 * (time.perf_counter() - before))
    found.append(times)
print(json.dumps(found))
"""

THEIRS = """
import json, sys, time
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(storage=JournalStorage(JournalFileBackend(sys.argv[1])), sampler=optuna.samplers.TPESampler(seed=0))
space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(4)}
def one():
    trial = study.ask(space)
    study.tell(trial, sum((value - 0.3) ** 2 for value in trial.params.values()))
    return trial.number
found = []
for count in json.loads(sys.argv[3]):
    import random
    missing = count - len(study.trials)
    for _ in range(missing):
        params = {name: random.random() for name in space}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=space,
                                                  value=sum((value - 0.3) ** 2 for value in params.values())))
    times = []
    for _ in range(40):
        before = time.perf_counter()
        one()
        times.append(1000 * (time.perf_counter() - before))
    found.append(times)
print(json.dumps(found))
"""

# One of four processes: `count` trials with random points, between two lines of standard input and output.
OUR_WORKER = """
import sys
import stoker
study = stoker.study(sys.argv[1], space={f"x{i}": {"min": 0, "max": 1, "type": "float"} for i in range(4)},
                     objectives={"loss": "minimize"}, sampler="random")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    study.ask().tell(1.0)
"""

THEIR_WORKER = """
import sys
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(storage=JournalStorage(JournalFileBackend(sys.argv[1])), study_name="s", load_if_exists=True,
                            sampler=optuna.samplers.RandomSampler())
space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(4)}
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    study.tell(study.ask(space), 1.0)
"""


def rate(code: str, path: Path, count: int) -> float:
    """Trials per second of four processes, from the moment that all are ready."""
    command = [str(PYTHON), "-c", code, str(path), str(count)]
    workers = []
    for _ in range(4):
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            stderr=subprocess.DEVNULL,
        )
        worker.stdout.readline()
        workers.append(worker)
    before = time.perf_counter()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    if any(worker.wait() for worker in workers):
        sys.exit("a worker failed")
    return 4 * count / (time.perf_counter() - before)


def at_least(what: str, found: Interval, limit: float, unit: str) -> bool:
    is_met = found.value >= limit
    print(f"{'ok' if is_met else 'MISSED':7}{what}: {found} {unit}, limit at least {limit:g} {unit}")
    return is_met


def main() -> None:
    build()
    is_met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = json.loads(" ".join(run(OURS, folder / "ours.study", "tpe", "[500, 5000]")))
        theirs = json.loads(" ".join(run(THEIRS, folder / "theirs.log", "tpe", "[500, 5000]")))
        for count, limit, mine, other in zip((500, 5000), (1, 5), ours, theirs, strict=True):
            is_met &= check_limit(f"ask and tell at {count} trials", median_interval(mine), limit, "ms")
            print(f"       Optuna's journal: {median_interval(other)} ms")
        (folder / "ours.yaml").write_text(
            "space: {" + ", ".join(f"x{i}: {{min: 0, max: 1, type: float}}" for i in range(4)) + "}\n"
            "objectives: {loss: minimize}\nsampler: tpe\n"
        )
        is_met &= check_limit(
            "stoker sweep ask at 5 000 trials",
            start_times([BIN / "stoker", "sweep", "ask", folder / "ours.yaml"], 40),
            20,
            "ms",
        )
        mine = [rate(OUR_WORKER, folder / f"rate-{turn}.study", 1000) for turn in range(5)]
        other = [rate(THEIR_WORKER, folder / f"rate-{turn}.log", 100) for turn in range(5)]
        is_met &= at_least("trials of four processes", median_interval(mine), 2000, "/s")
        print(f"       Optuna's journal: {median_interval(other)} /s")
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
