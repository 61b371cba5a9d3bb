"""`stoker sweep ask --param` and `--objective`: a study without a sweep file, with parameters in Hydra's grammar."""

import json

import pytest


@pytest.fixture
def ask(stoker):
    def run(*words):
        return stoker("sweep", "ask", *words)

    run.folder = stoker.folder
    return run


def test_a_study_is_created_from_overrides(ask, stoker):
    done = ask(
        "new.study", "--param", "lr=tag(log,interval(1e-4,1))", "--param", "opt=choice(sgd,adamw)",
        "--param", "n=range(1,10,2)", "--objective", "loss=minimize", "--json",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "new.study: new study\n")
    values = json.loads(done.out)["values"]
    assert 1e-4 <= values["lr"] <= 1
    assert values["opt"] in ("sgd", "adamw")
    assert values["n"] in (1, 3, 5, 7, 9)
    again = ask("new.study", "--json")
    assert (again.code, json.loads(again.out)["trial"]) == (0, 1)
    assert stoker("sweep", "tell", "new.study", 0, 0.5).code == 0
    assert stoker("sweep", "show", "new.study").out.startswith(
        "new: minimize loss, sampler auto, 1 complete, 1 running"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["a.study", "--param", "lr=interval(1,"], "--param: lr=interval(1,: a value is missing at column 15"),
        (["a.study", "--param", "lr=1,2"], "a.study: no objective\n  try: --objective loss=minimize"),
        (
            ["a.study", "--param", "lr=1,2", "--objective", "loss=down"],
            "--objective 'loss=down': is not NAME=minimize or NAME=maximize\n  try: --objective loss=minimize",
        ),
        (
            ["a.yaml", "--param", "lr=1,2", "--objective", "loss=minimize"],
            "a.yaml: is a sweep file (--param is for a study without one)\n  try: stoker sweep ask a.study",
        ),
        (
            ["old.study", "--param", "lr=1,2", "--objective", "loss=minimize"],
            "old.study: is not new (--warm-start, --param and --objective are for a new study)",
        ),
        (["a.study", "--param", "lr=1,1", "--objective", "loss=minimize"], "parameter lr: value 1 is there twice"),
    ],
)
def test_wrong_overrides_create_no_study(ask, words, error):
    assert ask("old.study", "--param", "lr=1,2", "--objective", "loss=minimize").code == 0
    done = ask(*words)
    assert done.code in (1, 2)
    assert done.err == f"{error}\n"
    assert not (ask.folder / "a.study").exists()
