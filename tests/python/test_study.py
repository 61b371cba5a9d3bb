"""stoker.study: a search from Python, by processes and threads, with trials that fail, and wrong definitions."""

import hashlib
import json
import math

import pytest

SPACE = "space={'lr': {'min': 1e-4, 'max': 1.0, 'log': True}, 'width': [16, 32]}, objectives={'loss': 'minimize'}"


def test_a_loop_over_trials_finds_the_optimum(python):
    out = python(
        f"""
import json, math, stoker
study = stoker.study("lr.study", {SPACE}, trials=40)
for trial in study:
    trial.tell((math.log10(trial.params["lr"]) + 2) ** 2 + (trial.params["width"] == 16))
print(json.dumps(study.best[0]))
"""
    )
    best = json.loads(out)
    assert best["params"]["width"] == 32
    assert math.isclose(math.log10(best["params"]["lr"]), -2, abs_tol=0.05)


# A space of all kinds of parameters, and trials of all states, some with equal values.
MIXED = """
import math, stoker
SPACE = {
    "lr": {"min": 1e-4, "max": 1, "log": True},
    "width": {"min": 8, "max": 64},
    "drop": {"min": 0, "max": 0.5, "step": 0.05},
    "opt": {"values": ["sgd", "adam", "lion"]},
    "momentum": {"min": 0, "max": 0.99, "type": "float", "when": {"opt": "sgd"}},
}
study = stoker.study("m.study", space=SPACE, objectives={"loss": "minimize"}, sampler="tpe", pruner={"kind": "median"})
for number in range(400):
    trial = study.ask()
    p = trial.params
    print(sorted(p.items()))
    loss = abs(math.log10(p["lr"]) + 2) + abs(p["width"] - 30) / 30 + p["drop"] + len(p["opt"]) / 3
    loss = round(loss + abs(p.get("momentum", 0.5) - 0.9), 2)
    if number % 11 == 10:
        trial.fail()
    elif trial.report(loss + number % 3, step=1):
        trial.prune()
    else:
        trial.tell(loss)
"""


def test_tpe_proposes_the_points_of_a_plain_computation(python):
    """Their digest is that of samplers which sort all trials and add up all kernels for each point."""
    points = "".join(line + "\n" for line in python(MIXED).splitlines())
    assert hashlib.sha256(points.encode()).hexdigest()[:16] == "3bb5654d91c81b97"


def test_trials_are_pruned_and_fail_by_exceptions(python):
    out = python(
        f"""
import stoker
study = stoker.study("lr.study", {SPACE}, pruner={{"kind": "asha", "min_resource": 1, "reduction_factor": 2}})
with study.ask() as trial:
    print(trial.report(0.5, step=1))
    trial.tell(0.4)
with study.ask() as trial:
    print(trial.report(0.9, step=1))
    trial.prune()
try:
    with study.ask() as trial:
        raise MemoryError("too large")
except MemoryError:
    pass
try:
    with study.ask():
        pass
except stoker.InvalidError as error:
    print(error)
print([(t["number"], t["state"], t["message"]) for t in study.trials])
again = study.retry(2)
print(again.number, again.attempt, again.params == study.trials[1]["params"])
"""
    )
    assert out.splitlines()[:5] == [
        "False",
        "True",
        "trial 3: no result",
        "  try: trial.tell(loss)",
        "[(0, 'complete', ''), (1, 'pruned', ''), (2, 'failed', 'MemoryError: too large'), (3, 'failed', 'no result')]",
    ]
    assert out.splitlines()[5].startswith("2 1 ")


def test_threads_and_forked_processes_share_a_study(python):
    out = python(
        f"""
import os, stoker, threading
study = stoker.study("lr.study", {SPACE})
numbers = []
def work():
    for _ in range(20):
        trial = study.ask()
        numbers.append(trial.number)
        trial.tell(1.0)
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        for _ in range(20):
            study.ask().tell(2.0)
        os._exit(0)
    children.append(child)
[thread.join() for thread in threads]
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
print(len(set(numbers)), len(study.trials), {{t["state"] for t in study.trials}})
"""
    )
    assert out == "80 120 {'complete'}\n"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("stoker.study('none.yaml')", "none.yaml: no such file or directory"),
        ("stoker.study('lr.yaml', trials=3)", "stoker.study: trials without space (the definition is in lr.yaml)"),
        (
            "stoker.study('a', space={'lr': {'min': 2, 'max': 1}}, objectives={'l': 'minimize'})",
            "a: parameter lr: min 2 is above max 1",
        ),
        ("stoker.study('a', space={'lr': object()}, objectives={'l': 'minimize'})", "is no value of a sweep file"),
        (
            "stoker.study('a', space={'lr': [float('nan')]}, objectives={'l': 'minimize'})",
            "stoker.study: Out of range float",
        ),
        (
            "stoker.study('a', space={'lr': [1]}, objectives={'l': 'minimize'}).ask().tell(1.0, 2.0)",
            "a: 2 values for trial 0",
        ),
    ],
)
def test_wrong_definitions_are_errors(python, call, error):
    out = python(
        f"""
import stoker
try:
    {call}
except (stoker.StokerError, OSError) as error:
    print(type(error).__name__, error)
"""
    )
    assert error in out


def test_numbers_of_numpy_are_values(python):
    out = python(
        """
import numpy, stoker
study = stoker.study("s.study", space={"lr": list(numpy.logspace(-3, -1, 3)), "n": range(2)}, objectives={"l": "minimize"}, sampler="grid")
print([trial.params for trial in study][-1])
"""
    )
    assert out == "{'lr': 0.1, 'n': 1}\n"
