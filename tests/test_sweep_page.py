"""`stoker sweep page STUDY`, `stoker sweep status` and `stoker sweep show --importance`: the page in a browser, its facts as
JSON, large and hostile studies."""

import json
import re

import browser
import pytest
from studies import Journal, fill

SWEEP = """
space:
  lr: {min: 1.0e-4, max: 1, log: true}
  width: [16, 32, 64]
  kind: [sgd, adam]
  momentum: {min: 0.5, max: 0.99, when: {kind: sgd}}
objectives: {val_loss: minimize}
trials: 200
"""


@pytest.fixture
def sweep(stoker):
    """`stoker sweep` in a folder with lr.yaml, whose study lr.study has no trial yet."""

    def command(*words, **options):
        return stoker("sweep", *words, **options)

    def create(text=SWEEP):
        (stoker.folder / "lr.yaml").write_text(text)
        # A constraint-free study is created by its first ask, whose own journal is then removed.
        command("ask", "lr.yaml", code=0)
        for kind in ("journal", "claims"):
            for path in (stoker.folder / "lr.study" / kind).iterdir():
                path.unlink()
        return stoker.folder / "lr.study"

    command.create = create
    command.folder = stoker.folder
    return command


def facts(sweep):
    return json.loads(sweep("page", "lr.yaml", "--json", code=0).out)


def test_the_page_has_every_section(sweep):
    study = sweep.create()
    fill(study, 120)
    done = sweep("page", "lr.yaml", code=0)
    assert re.match(
        r"lr: best val_loss 0\.3\d+ in trial \d+, of 10\d complete trials\n  lr.study/page.html\n", done.out
    )
    page = (study / "page.html").read_text()
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings == [
        "Best trials",
        "History",
        "Importance of the parameters",
        "Slices",
        "Contours",
        "Curves",
        "Parameters together",
        "Failed trials",
        "Trials",
    ]
    assert "<script>alert" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<figure") == 1 + 4 + 2 + 1 + 1
    assert "smallest val_loss" in page
    assert "4</dd>" in page  # skipped points
    assert "dotted: pruned, failed and running ones" in page
    sweep("page", "lr.yaml", "--out", "page.html", code=0)
    assert (sweep.folder / "page.html").read_text()[:300] == page[:300]
    assert sweep("page", "lr.yaml", "-o", "-", code=0).out.startswith("<!doctype html>")


def test_facts_are_the_same_as_json(sweep):
    study = sweep.create()
    fill(study, 120)
    report = facts(sweep)
    assert not (study / "page.html").exists()
    assert report["counts"] == {"complete": 101, "pruned": 12, "running": 2, "failed": 5}
    assert report["skipped"] == 4
    assert report["objectives"] == {"val_loss": "minimize"}
    shares = report["importances"]["val_loss"]
    assert set(shares) == {"lr", "width", "kind", "momentum"}
    assert max(shares, key=shares.get) == "lr"
    assert sum(shares.values()) == pytest.approx(1)
    assert sum(len(each["trials"]) for each in report["failures"]) == 5
    assert json.loads(sweep("show", "lr.yaml", "--importance", "--json", code=0).out) == report["importances"]
    best = json.loads(sweep("best", "lr.yaml", "--json", code=0).out)
    assert report["best"] == best
    table = sweep("show", "lr.yaml", "--importance", code=0).out.splitlines()
    assert table[0].endswith("4 points skipped")
    assert table[1].split() == ["PARAMETER", "val_loss"]
    assert table[2].split()[0] == "lr"


def test_a_front_has_its_own_plot(sweep):
    study = sweep.create(SWEEP.replace("{val_loss: minimize}", "{val_loss: minimize, images_per_s: maximize}"))
    journal = Journal(study)
    for number in range(60):
        a = number * 0.618 % 1
        journal.trial(number, (10 ** (-4 * a), 0.0, 1.0, float("nan")), [a, 100 * a * (1 + number % 2)])
    journal.write()
    done = sweep("page", "lr.yaml", code=0)
    assert re.match(r"lr: a Pareto front of \d+ trials among 60 complete trials\n", done.out)
    page = (study / "page.html").read_text()
    assert "<h2>Pareto front</h2>" in page
    assert "val_loss and images_per_s" in page
    assert page.count("<h3>images_per_s</h3>") >= 2
    assert set(facts(sweep)["importances"]) == {"val_loss", "images_per_s"}


@pytest.mark.parametrize("trials", ["none", "running", "failed", "equal", "infinite"])
def test_a_study_with_little_in_it_has_a_page(sweep, trials):
    study = sweep.create()
    journal = Journal(study)
    point = (0.1, 0.0, 1.0, float("nan"))
    for number in range({"none": 0, "equal": 30, "infinite": 30}.get(trials, 2)):
        state = trials if trials in ("running", "failed") else "complete"
        value = float("inf") if trials == "infinite" and number % 2 else 0.5
        reports = [(1, float("nan")), (2, float("inf"))]
        journal.trial(number, point, [value] if state == "complete" else [], state=state, reports=reports)
    journal.write()
    sweep("page", "lr.yaml", code=0)
    page = (study / "page.html").read_text()
    assert "nan" not in re.sub("<title>.*?</title>", "", page).replace("nance", "")
    assert facts(sweep)["importances"] == {"val_loss": {}}
    assert sweep("status", "lr.yaml", code=0).out.startswith("lr: minimize val_loss")


def test_ten_thousand_trials_make_a_small_page(sweep):
    study = sweep.create(SWEEP.replace("trials: 200", "trials: 20000"))
    fill(study, 10_000)
    sweep("page", "lr.yaml", code=0)
    page = (study / "page.html").read_text()
    assert len(page) < 1_500_000
    assert "Drawn: 1 000 of 8" in page
    assert "Drawn: 100 of 9 " in page
    assert "500 of 10 000 trials" in page


def test_a_report_is_of_a_trial_and_the_page_is_another_command(sweep):
    sweep.create()
    fill(sweep.folder / "lr.study", 10)
    missing = "sweep report: {} is missing\n  try: stoker sweep report --help\n"
    assert sweep("report", "lr.yaml", code=2).err == missing.format("TRIAL")
    assert sweep("report", "lr.yaml", "8", "3", code=2).err == missing.format("VALUE")
    assert not list((sweep.folder / "lr.study").glob("*.html"))
    assert "no such file or directory" in sweep("page", "lr.yaml", "--out", "no/page.html", code=1).err


def test_the_status_has_best_pace_failures_and_running_trials(sweep):
    study = sweep.create()
    fill(study, 120)
    lines = sweep("status", "lr.yaml", code=0).out.splitlines()
    assert lines[0] == (
        "lr: minimize val_loss, sampler auto, 101 complete of 200, 2 running, 12 pruned, 5 failed, 4 points skipped"
    )
    assert re.match(r"best     val_loss 0\.3\d+ in trial \d+, .* ago: lr=0\.0\d+ width=16 ", lines[1])
    assert re.match(r"pace     [\d.e-]+ trials/h, the last one expected in .+", lines[2])
    assert sorted(lines[3:5]) == [
        "failed   2 trials: exit code 1",
        "failed   3 trials: loss is nan <script>alert(1)</script>",
    ]
    assert lines[5].split() == ["TRIAL", "RUNNING", "STEP", "val_loss", "PARAMETERS"]
    assert [line.split()[0] for line in lines[6:]] == ["118", "119"]
    status = json.loads(sweep("status", "lr.yaml", "--json", code=0).out)
    assert status["counts"] == {"complete": 101, "pruned": 12, "running": 2, "failed": 5}
    assert status["most_trials"] == 200
    assert status["skipped"] == 4
    assert len(status["running"]) == 2
    assert status["running"][0]["step"] == 2
    assert status["best"][0]["metric"] == "val_loss"
    assert status["seconds_left"] > 0


def test_the_status_of_all_runs_lists_studies_of_the_folder(sweep, stoker):
    fill(sweep.create(), 30)
    (stoker.folder / "broken.study").mkdir()
    (stoker.folder / "broken.study/study.json").write_text("{")
    lines = stoker("status", code=0).out.splitlines()
    assert lines[0].startswith("no runs in runs/")
    assert lines[1].startswith("broken.study  broken.study/study.json: ")
    assert lines[2].startswith("lr.study  lr: minimize val_loss, sampler auto, ")
    studies = json.loads(stoker("status", "--json", code=0).out)["studies"]
    assert [study["folder"] for study in studies] == ["broken.study", "lr.study"]
    assert "; best val_loss 0.3" in lines[2]
    assert re.search(r" trial \d+, \S+ trials/h, .* left$", lines[2])
    assert studies[0]["status"] is None
    alone = json.loads(sweep("status", "lr.yaml", "--json", code=0).out)
    assert studies[1]["status"].keys() == alone.keys()
    assert studies[1]["status"]["counts"] == alone["counts"]
    assert studies[1]["status"]["best"] == alone["best"]


PLOTS = """
wide: d.documentElement.scrollWidth,
charts: all('figure').length,
outside: all('main svg.plot').filter(e => r(e).right > 391).length,
hover: (() => {const s = d.querySelector('figure[data-points] svg.plot'), b = r(s),
p = JSON.parse(d.querySelector('figure[data-points]').dataset.points)[0];
s.dispatchEvent(new w.PointerEvent('pointermove', {clientX: b.left + b.width * p[0] / 1000, clientY: b.top + p[1]}));
return d.querySelector('figure output').textContent})()
"""


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("width", "theme"), browser.LOOKS)
def test_in_a_browser_everything_can_be_read(sweep, width, theme):
    fill(sweep.create(), 120)
    sweep("page", "lr.yaml", code=0)
    browser.assert_legible(sweep.folder / "lr.study/page.html", width, theme)


@pytest.mark.needs("chromium")
def test_in_a_browser_it_has_no_error_and_fits_a_phone(sweep):
    fill(sweep.create(), 120)
    sweep("page", "lr.yaml", code=0)
    seen = browser.look(sweep.folder / "lr.study/page.html", PLOTS)
    assert seen["wide"] == 390
    assert seen["charts"] == 9
    assert seen["outside"] == 0
    assert re.match(r"trial \d+: 0\.\d+", seen["hover"])
