"""A study on a shared filesystem whose clients see changes of other clients up to a minute late."""

import json
import subprocess
import sys
import time
from collections import Counter

import pytest
from stale_mounts import SECONDS, stale_mounts

pytestmark = pytest.mark.needs("fuse", "bindfs")

WORKER = """
import sys, stoker
study = stoker.study(
    sys.argv[1],
    space={"x": {"min": -1.0, "max": 1.0}, "y": {"min": -1.0, "max": 1.0}},
    objectives={"loss": "minimize"},
    sampler="SAMPLER",
    trials=int(sys.argv[2]),
)
done = []
for trial in study:
    x, y = trial.params["x"], trial.params["y"]
    trial.report(x * x + y * y + 1, step=1)
    trial.tell(x * x + y * y)
    done.append(trial.number)
print(*done)
"""


def run_workers(mounts, environment, count: int, sampler: str) -> list[list[int]]:
    words = [sys.executable, "-c", WORKER.replace("SAMPLER", sampler)]
    workers = [
        subprocess.Popen(
            [*words, mounts[number % len(mounts)] / "s.study", str(count)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    numbers = []
    for worker in workers:
        out, err = worker.communicate(timeout=300)
        assert worker.returncode == 0, err
        numbers.append([int(word) for word in out.split()])
    return numbers


def check_complete(stoker, folder, count: int) -> None:
    shown = stoker("sweep", "show", folder / "s.study", "--top", "0", "--json", code=0).out
    assert Counter(trial["state"] for trial in json.loads(shown)) == {"complete": count}


@pytest.mark.parametrize(("sampler", "count"), [("tpe", 200), pytest.param("random", 1000, marks=pytest.mark.soak)])
def test_four_processes_on_two_clients_run_each_trial_once(module_environment, stoker, sampler, count):
    with stale_mounts() as mounts:
        numbers = run_workers(mounts, module_environment, count, sampler)
        ended = Counter(number for own in numbers for number in own)
        assert sum(ended.values()) == count
        assert set(ended.values()) == {1}
        assert all(numbers)  # each process had some
        check_complete(stoker, mounts[0].parent / "server", count)
        if count == 1000:
            time.sleep(SECONDS + 1)
            for mount in mounts:
                check_complete(stoker, mount, count)


def test_a_client_that_saw_no_study_sees_it_once_it_is_created(stoker):
    with stale_mounts() as mounts:
        sweep = "space: {x: [1, 2]}\nobjectives: {loss: minimize}\nsampler: grid\n"
        (mounts[0] / "s.yaml").write_text(sweep)
        assert "no study" in stoker("sweep", "show", mounts[1] / "s.yaml", code=1).err
        stoker("sweep", "ask", mounts[0] / "s.yaml", code=0)
        asked = stoker("sweep", "ask", mounts[1] / "s.yaml", code=0)
        assert "trial 1: x=2\n" in asked.out
