"""`sampler: optuna.NAME`: points of Optuna's samplers, over several processes, with constraints, and errors."""

import json
import shutil
import sys

import pytest

SPACE = """
space:
  lr: {min: 1.0e-4, max: 1, log: true}
  layers: {min: 1, max: 9}
"""
OBJECTIVE = "objectives: {loss: minimize}\n"
TRAIN = ["awk", "BEGIN { x = log({lr}) / log(10) + 2; print x * x + ({layers} - 4) ^ 2 / 10 }"]
TRAIN = [word.replace("{ ", "{{ ").replace(" }", " }}") for word in TRAIN]


@pytest.fixture
def sweep(stoker):
    """`stoker sweep` with the Python of the tests."""

    def command(*words, python=sys.executable, **options):
        return stoker("sweep", *words, env={"STOKER_PYTHON": python}, **options)

    command.folder = stoker.folder
    return command


def write(sweep, name, text):
    (sweep.folder / name).write_text(text)


def trials_of(sweep, study):
    trials = json.loads(sweep("export", study, "--format", "json", code=0).out)
    return [(trial["params"], trial["values"]) for trial in trials]


def test_an_unavailable_optuna_is_an_error_and_creates_no_study(sweep, tmp_path):
    write(sweep, "a.yaml", SPACE + OBJECTIVE + "sampler: optuna.CmaEsSampler\n")
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {shutil.which("python3", path="/usr/bin")} -S "$@"\n')
    bare.chmod(0o755)
    for python, error in [
        (bare, f"optuna: {bare} has no module optuna\n  try: {bare} -m pip install optuna"),
        ("/bin/true", "optuna: /bin/true ended (exit code 0)"),
        ("/no/python", "optuna: /no/python: no such file or directory\n  try: export STOKER_PYTHON=/path/to/python"),
        ("/bin/echo", "optuna: an answer of /bin/echo is not JSON"),
    ]:
        done = sweep("ask", "a.yaml", python=python)
        assert done.code in (1, 2, 3)
        assert done.err == f"{error}\n"
        assert not (sweep.folder / "a.study").exists()


@pytest.mark.parametrize(
    ("sampler", "error"),
    [
        ("optuna", "a.yaml:5:10: names no sampler of Optuna (sampler: optuna.TPESampler)"),
        ("{popsize: 4}", "a.yaml:5:10: names no sampler of Optuna (sampler: optuna.TPESampler)"),
        ("{optuna: TPESampler, seed: 1}", "a.yaml:5:31: is the study's seed (seed: 1 beside sampler)"),
        ("optuna.TPE Sampler", "a.yaml: sampler 'optuna.TPE Sampler': is no name of a class"),
    ],
)
def test_a_wrong_sampler_in_a_file_is_refused(sweep, sampler, error):
    write(sweep, "a.yaml", f"{SPACE.strip()}\n{OBJECTIVE}sampler: {sampler}\n")
    done = sweep("ask", "a.yaml")
    assert done.code == 2
    assert done.err.splitlines()[0] == error


@pytest.mark.needs("optuna")
@pytest.mark.parametrize(
    ("sampler", "error"),
    [
        ("optuna.CmaSampler", "sampler optuna.CmaSampler: 'CmaSampler' is unknown; did you mean 'CmaEsSampler'?"),
        ("optuna.BaseSampler", "sampler optuna.BaseSampler: 'BaseSampler' is unknown"),
        (
            "{optuna: TPESampler, popsize: 4}",
            "sampler optuna.TPESampler: TypeError: TPESampler.__init__() got an unexpected keyword argument 'popsize'",
        ),
    ],
)
def test_samplers_that_optuna_does_not_have_create_no_study(sweep, sampler, error):
    write(sweep, "a.yaml", f"{SPACE}{OBJECTIVE}sampler: {sampler}\n")
    done = sweep("ask", "a.yaml")
    assert done.code == 2
    assert done.err.startswith(error)
    assert not (sweep.folder / "a.study").exists()


@pytest.mark.needs("optuna")
def test_processes_continue_an_evolution_where_others_ended(sweep):
    for name in ["one", "two", "other"]:
        seed = 2 if name == "other" else 1
        sampler = "{optuna: CmaEsSampler, popsize: 5}"
        write(sweep, f"{name}.yaml", f"{SPACE}{OBJECTIVE}sampler: {sampler}\nseed: {seed}\n")
    sweep("run", "one.yaml", "--trials", 36, "--", *TRAIN, code=0)
    for _ in range(3):
        sweep("run", "two.yaml", "--trials", 12, "--", *TRAIN, code=0)
    sweep("run", "other.yaml", "--trials", 3, "--", *TRAIN, code=0)
    one = trials_of(sweep, "one.study")
    assert one == trials_of(sweep, "two.study")
    assert one[1:3] != trials_of(sweep, "other.study")[1:3]
    assert min(values["loss"] for _, values in one) < 0.02
    late = [values["loss"] for _, values in one[-10:]]
    early = [values["loss"] for _, values in one[:10]]
    assert sorted(late)[5] < sorted(early)[5]
    assert sweep("show", "one.yaml").out.startswith("one: minimize loss, sampler optuna.CmaEsSampler, 36 complete\n")


@pytest.mark.needs("optuna")
@pytest.mark.parametrize(
    "sampler",
    [
        "TPESampler",
        pytest.param("QMCSampler", marks=pytest.mark.soak),
        pytest.param("RandomSampler", marks=pytest.mark.soak),
    ],
)
def test_conditions_and_constraints_hold(sweep, sampler):
    write(
        sweep,
        "a.yaml",
        "space:\n  kind: [sgd, 1, true, '1']\n  momentum: {min: 0.1, max: 0.95, step: 0.2, when: {kind: [sgd, true]}}\n"
        "  layers: {min: 1, max: 9}\nconstraints: layers <= 4 or kind == 'sgd'\n"
        f"{OBJECTIVE}sampler: optuna.{sampler}\n",
    )
    done = sweep(
        "run", "a.yaml", "--trials", 25, "--", "sh", "-c", 'echo 1 # "$@"', "--momentum={momentum}", "{layers}"
    )
    assert done.code == 0, done.err
    trials = [params for params, _ in trials_of(sweep, "a.study")]
    assert len({json.dumps(params, sort_keys=True) for params in trials}) == 25
    for params in trials:
        assert ("momentum" in params) == (params["kind"] == "sgd" or params["kind"] is True)
        assert params.get("momentum", 0.1) in (0.1, 0.3, 0.5, 0.7, 0.9)
        assert params["layers"] <= 4 or params["kind"] == "sgd"
    assert {json.dumps(params["kind"]) for params in trials} == {'"sgd"', "1", "true", '"1"'}


@pytest.mark.needs("optuna")
def test_generations_of_several_objectives_are_kept_in_the_study(sweep):
    objectives = "objectives: {loss: minimize, size: maximize}\n"
    write(sweep, "a.yaml", f"{SPACE}{objectives}sampler: {{optuna: NSGAIISampler, population_size: 8}}\n")
    program = 'BEGIN {{ x = log({lr}) / log(10) + 2; print "loss: " x * x "\\nsize: " {layers} - x * x }}'
    sweep("run", "a.yaml", "--trials", 40, "--", "awk", program, code=0)
    front = json.loads(sweep("best", "a.yaml", "--json", code=0).out)
    assert min(trial["values"]["loss"] for trial in front) < 0.01
    assert max(trial["values"]["size"] for trial in front) > 7
    states = [line for path in (sweep.folder / "a.study/journal").iterdir() for line in path.read_text().splitlines()]
    for generation in range(5):
        assert sum(f'"NSGAIISampler:generation":{generation}}}' in line for line in states) == 8


@pytest.mark.needs("optuna")
def test_a_finite_space_ends_and_a_warm_start_counts(sweep):
    write(sweep, "old.csv", "layers,loss\n1,0.5\n2,0.4\n")
    text = f"space: {{layers: {{min: 1, max: 4}}}}\n{OBJECTIVE}sampler: optuna.TPESampler\nwarm_start: old.csv\n"
    write(sweep, "a.yaml", text)
    done = sweep("run", "a.yaml", "--", "echo", "{layers}", code=0)
    assert "a: no trial is left" in done.err
    assert sorted(params["layers"] for params, _ in trials_of(sweep, "a.study")) == [3, 4]
    again = sweep("ask", "a.yaml")
    assert (again.code, again.err) == (1, "a: no trial is left (every point was tried)\n")
