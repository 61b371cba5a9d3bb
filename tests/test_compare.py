"""`stoker compare` of runs of a real command: differences, results, chance, and guards for continuous integration."""

import json
from pathlib import Path

import browser
import pytest

POINTS = """\
import os, sys
path = os.environ["STOKER_ATTEMPT_DIR"] + "/points-0000-toy.csv"
with open(path, "w") as out:
    out.write(f"time,step,value,metric\\n,1,9,loss\\n,2,{sys.argv[1]},loss\\n,,{1 - float(sys.argv[1])},best accuracy\\n")
"""


@pytest.fixture
def trained(stoker, tmp_path):
    """trained(0.5, 0.4): runs with these losses; their ids."""
    (tmp_path / "p.py").write_text(POINTS)
    (tmp_path / "job.yaml").write_text("name: toy\nrun: python3 p.py ${params.loss}\nparams: {loss: 1}\n")

    def train(*losses: float) -> list[str]:
        return [
            json.loads(stoker("run", "job.yaml", "--set", f"params.loss={loss}", "--json", code=0).out)["run"]
            for loss in losses
        ]

    return train


def compared(stoker, *words: str, code: int = 0) -> dict:
    return json.loads(stoker("compare", *words, "--json", code=code).out)


def test_two_runs_differ_in_a_parameter_and_its_result(stoker, trained):
    before, after = trained(0.5, 0.4)
    found = compared(stoker, before, after)
    assert (found["before"], found["after"]) == ([before], [after])
    by_name = {change["what"]: (change["aspect"], change["before"], change["after"]) for change in found["differences"]}
    assert by_name["params.loss"] == ("parameters", "0.5", "0.4")
    assert set(by_name) == {"params.loss", "run"}
    results = {result["name"]: result for result in found["results"]}
    assert (results["loss"]["before"], results["loss"]["after"], results["loss"]["verdict"]) == ([0.5], [0.4], "better")
    assert results["best accuracy"]["verdict"] == "better"
    assert results["loss"]["p"] is None
    text = stoker("compare", before, after, code=0).out
    assert "loss" in text and "-20.0 %  better" in text


def test_a_run_compared_with_itself_has_no_differences(stoker, trained):
    (run,) = trained(0.5)
    assert "no differences in data, parameters, code, software and hardware" in stoker("compare", run, run, code=0).out


def test_uncommitted_changes_and_commits_are_differences(stoker, trained, tmp_path):
    import subprocess

    def git(*words: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / ".gitignore").write_text("runs\njob.yaml\n")
    git("init")
    (tmp_path / "p.py").write_text(POINTS)
    git("add", ".")
    git("commit", "-m", "first")
    (first,) = trained(0.5)
    (tmp_path / "p.py").write_text(POINTS + "# changed\n")
    (dirty,) = trained(0.5)
    changes = {c["what"] for c in compared(stoker, first, dirty)["differences"]}
    assert changes == {"uncommitted changes"}
    git("commit", "-am", "second")
    (second,) = trained(0.5)
    changes = {c["what"] for c in compared(stoker, first, second)["differences"]}
    assert changes == {"commit"}


def test_groups_of_seeds_have_a_chance(stoker, trained):
    groups = [",".join(trained(*losses)) for losses in ((0.50, 0.51, 0.49), (0.40, 0.41, 0.39))]
    (loss,) = (r for r in compared(stoker, *groups)["results"] if r["name"] == "loss")
    assert loss["p"] == pytest.approx(0.1)
    low, high = loss["interval"]
    assert low < -0.1 < high < 0
    assert loss["verdict"] == "better"
    (loss,) = (r for r in compared(stoker, groups[0], groups[0])["results"] if r["name"] == "loss")
    assert (loss["p"], loss["verdict"]) == (1.0, "equal")


def test_a_guard_decides_the_exit_code(stoker, trained):
    before, after = trained(0.50, 0.51)
    met = stoker("compare", before, after, "--guard", "loss:5%", code=0)
    assert met.out.splitlines()[-1] == "met      loss: 2.00 % worse, 5.00 % are allowed"
    missed = stoker("compare", before, after, "--guard", "loss:1%", "--guard", "best accuracy:50%", code=1)
    assert missed.out.splitlines()[-2:] == [
        "not met  loss: 2.00 % worse, 1.00 % are allowed",
        "met      best accuracy: 2.00 % worse, 50.0 % are allowed",
    ]
    assert [guard["met"] for guard in compared(stoker, before, after, "--guard", "loss", code=1)["guards"]] == [False]


def test_what_cannot_be_compared_is_refused_or_noted(stoker, trained, tmp_path):
    (run,) = trained(0.5)
    unknown = stoker("compare", run, run, "--guard", "zeta", code=2).err
    assert "no run of one side has the metric 'zeta' (common metrics: loss, best accuracy, running time, s)" in unknown
    assert "the tolerance is no percentage" in stoker("compare", run, run, "--guard", "loss:x%", code=2).err
    assert "run 'nothing': not found" in stoker("compare", run, "nothing", code=1).err
    stoker("compare", run, code=2)
    (Path(tmp_path) / "runs" / run / "attempts/1/job.yaml").write_text("[")
    (Path(tmp_path) / "runs" / run / "capsule/code.json").write_text("{")
    notes = compared(stoker, run, run)["notes"]
    assert f"{run}: its job file cannot be read" in notes
    assert f"{run}: its code is unknown" in notes


def test_a_failed_run_is_named(stoker, trained, tmp_path):
    (done,) = trained(0.5)
    (tmp_path / "job.yaml").write_text("name: toy\nrun: {shell: 'exit 3'}\n")
    failed = json.loads(stoker("run", "job.yaml", "--json", code=3).out)["run"]
    assert f"note: {failed} is failed" in stoker("compare", done, failed, code=0).out


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("width", "theme"), browser.LOOKS)
def test_a_page_shows_the_curves_of_both_groups(stoker, trained, tmp_path, width, theme):
    a, b = trained(0.5, 0.501), trained(0.3, 0.301)
    page = tmp_path / "compare.html"
    done = stoker("compare", ",".join(a), ",".join(b), "--out", page, code=0)
    assert done.out.splitlines()[-1] == f"  {page}"
    browser.assert_legible(page, width, theme)
    seen = browser.look(
        page,
        """
        title: all('h1')[0].textContent,
        groups: all('.lede').map(e => e.textContent),
        tables: all('table').map(e => all('tbody tr', e).length > 1),
        charts: all('figure').map(e => [all('figcaption b', e)[0].textContent, all('.key', e).map(k => k.textContent),
          all('path.line', e).length, all('path.faint', e).length])
        """,
        width=width,
        theme=theme,
    )
    assert seen["title"] == "loss of B: -40.0 %, better"
    assert seen["groups"] == ["A: " + ", ".join(a), "B: " + ", ".join(b)]
    assert seen["tables"] == [True, True]
    assert ["loss", ["A", "B"], 2, 2] in seen["charts"]


def test_a_page_that_cannot_be_written_is_an_error(stoker, trained, tmp_path):
    (run,) = trained(0.5)
    assert "--out: " in stoker("compare", run, run, "--out", tmp_path / "no/such.html", code=1).err
    assert "--out: " in stoker("compare", run, run, "--out", tmp_path, code=2).err


def test_a_page_shows_hostile_values_as_text(stoker, trained, tmp_path):
    (run,) = trained(0.5)
    evil = "</script><script>alert(1)</script>"
    points = next((tmp_path / "runs" / run / "attempts").glob("*/points-0000-toy.csv"))
    with points.open("a") as file:
        file.write(f",1,1,{evil}\n,2,2,{evil}\n")
    page = tmp_path / "compare.html"
    stoker("compare", run, run, "--out", page, code=0)
    assert evil not in page.read_text()
    assert browser.look(page, "title: all('figcaption b').map(e => e.textContent)")["title"].count(evil) == 1
