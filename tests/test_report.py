"""`stoker report`: the formats agree, are self-contained, and tolerate damaged run folders."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import browser
import pytest
import run_folders

ID = "2025-11-21T10-03-11_3f2c1aa_resnet20_k7q2"
TEXT = Path(__file__).parent / "golden/report_resumed.txt"


def test_text_form_of_a_run_that_was_killed_and_resumed(stoker):
    run_folders.killed_and_resumed(stoker.folder / "runs")
    text = stoker("report", "last", "--format", "text", code=0).out
    assert text.replace(str(stoker.folder), "/home/ana/project") == TEXT.read_text()


def test_page_goes_to_the_run_folder_and_the_result_to_the_terminal(stoker):
    run_folders.killed_and_resumed(stoker.folder / "runs")
    out = stoker("report", code=0).out
    assert out == (
        "resnet20 on cifar10: 61.2 % top-1 after 3 epochs, 1 min 09 s, 2 ranks, resumed once\n"
        f"  runs/{ID}/report.html\n"
    )
    assert (stoker.folder / "runs" / ID / "report.html").read_text().startswith("<!doctype html>")


RUN_FIELDS = {
    "id": str, "name": str, "folder": str, "result": str, "state": str, "exit_code": int, "first_rank": (int, type(None)),
    "reason": str, "cause": (dict, type(None)), "started": float, "ended": float, "running_s": float, "world_size": int, "resumes": int,
    "redone_steps": int, "resumed_at": list, "samples_per_s": float, "command": list, "facts": list, "tasks": list, "attempts": list,
    "epochs": list, "steps": dict, "metrics": list, "summary": dict, "images": list, "histograms": list, "time": dict, "traced_step": (dict, type(None)), "speed": list, "system": list, "nodes": list, "efficiency": (dict, type(None)), "staging": list, "gpus": list, "checkpoints": list, "logs": list,
    "notes": list, "rerun_commands": list,
}  # fmt: skip


def test_json_form_has_the_documented_fields(stoker):
    run_folders.killed_and_resumed(stoker.folder / "runs")
    report = json.loads(stoker("report", "--format", "json", code=0).out)
    assert (report["format"], report["version"]) == ("stoker-report", 2)
    (run,) = report["runs"]
    assert list(run) == list(RUN_FIELDS)
    for name, kind in RUN_FIELDS.items():
        assert isinstance(run[name], kind), name
    assert list(run["time"]["whole"]["seconds"]) == [
        "data", "forward", "backward", "communication", "optimizer", "checkpoint", "other", "validation", "outside"
    ]  # fmt: skip
    assert run["attempts"][0]["ranks_ended"][0] == {
        "rank": 1, "host": "node1", "exit_code": None, "signal": 9, "stopped_by_us": False, "phase": "backward",
        "epoch": 1, "step": 131, "reason": "killed by signal 9",
    }  # fmt: skip
    assert json.loads(stoker("report", "--json", code=0).out) == report


def test_a_page_of_two_runs_begins_with_both(stoker):
    run_folders.killed_and_resumed(stoker.folder / "runs")
    run_folders.killed_and_resumed(stoker.folder / "other")
    stoker("report", f"runs/{ID}", f"other/{ID}", "--out", "both.html", code=0)
    page = (stoker.folder / "both.html").read_text()
    assert page.count("<main>") == 3
    assert "<h1>2 runs: 2 done</h1>" in page
    text = stoker("report", f"runs/{ID}", f"other/{ID}", "--format", "text", code=0).out
    assert text.startswith("2 runs: 2 done\n\nruns (the run folders; best validation top-1 first)\n")
    assert "61.2 %" in text


def test_a_failed_run_starts_with_its_cause(stoker):
    (stoker.folder / "job.yaml").write_text("name: bad\nrun: 'python3 -c \"import not_a_module\"'\n")
    stoker("run", "job.yaml", code=1)
    (run,) = json.loads(stoker("report", "last", "--format", "json", code=0).out)["runs"]
    assert "not_a_module" in run["cause"]["cause"]
    assert run["cause"]["certainty"] == "known"
    assert "not_a_module" in run["cause"]["evidence"][0]["text"]
    text = stoker("report", "last", "--format", "text", code=0).out
    assert text.splitlines()[1].startswith("  cause: rank 0: ")
    stoker("report", "last", "--out", "page.html", code=0)
    page = (stoker.folder / "page.html").read_text()
    assert page.index("Cause: ") < page.index("<section>")


def test_numbers_equal_the_values_in_the_files(stoker):
    folder = run_folders.killed_and_resumed(stoker.folder / "runs")
    (run,) = json.loads(stoker("report", "--format", "json", code=0).out)["runs"]
    page = stoker("report", code=0) and (folder.path / "report.html").read_text()
    for rank in (0, 1):
        rows = [row for (_, r), rows in folder.rows.items() if r == rank for row in rows]
        seconds = run["time"]["ranks"][rank]["seconds"]
        for part in run_folders.PARTS:
            total = sum(row[part] for row in rows)
            assert seconds[part.removesuffix("_s")] == pytest.approx(total, rel=1e-9)
            assert f">{total:.2f}<" in page
        assert run["time"]["ranks"][rank]["steps"] == len(rows)
    # Of steps 101 to 131, which were done twice, the second counts.
    assert run["steps"]["recorded"] == 294
    assert run["redone_steps"] == 31
    first, second = folder.rows[2, 0][0], folder.rows[2, 1][0]
    assert run["steps"]["loss"][100] == pytest.approx((first["loss"] + second["loss"]) / 2)
    assert [epoch["val_top1"] for epoch in run["epochs"]] == [0.4412, 0.5833, 0.6124]
    assert [point["step"] for point in run["checkpoints"]] == [98, 100, 196, 200, 294]


class _Page(HTMLParser):
    """Collects what a page would load or run."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.references: list[tuple[str, str]] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
                self.references.append((tag, value))
            if name.startswith("on") or name == "style":
                self.handlers.append(f"{tag} {name}")


def test_page_needs_no_other_file_and_runs_nothing_but_its_one_script(stoker):
    folder = run_folders.killed_and_resumed(stoker.folder / "runs")
    stoker("report", code=0)
    text = (folder.path / "report.html").read_text()
    page = _Page(text)
    assert page.references == []
    assert page.handlers == []
    assert page.tags.count("script") == 1
    assert page.tags.count("style") == 1
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text)
    assert "default-src 'none'; style-src 'sha256-" in text
    assert len(text) < 1_000_000


HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def hostile_run(runs: Path) -> run_folders.RunFolder:
    """Everything a person or a program can name holds HTML."""
    run = run_folders.RunFolder.create(
        runs, HOSTILE, command=[HOSTILE], params={HOSTILE: HOSTILE}, user=HOSTILE, hosts=[HOSTILE],
        working_directory=HOSTILE, job_file=HOSTILE, git=HOSTILE, scheduler_job=HOSTILE, stoker_version=HOSTILE,
    )  # fmt: skip
    run.capsule(
        code={"commit": HOSTILE, "branch": HOSTILE, "dirty": True},
        data={"datasets": [{"name": HOSTILE, "source": "/" + HOSTILE, "split": HOSTILE, "version": HOSTILE}]},
        environment={"programs": {HOSTILE: HOSTILE}, "variables": {}},
        execution={"nodes": [{"host": HOSTILE, "cpu": HOSTILE, "gpus": [HOSTILE]}]},
    )
    run.started(1, run_folders.BEGIN)
    run.steps(1, 0, 1, 50, run_folders.BEGIN)
    run.event(1, run_folders.BEGIN + 9, "checkpoint_saved", "rank-0000", step=9, folder=HOSTILE)
    run.event(1, run_folders.BEGIN + 10, "rank_ended", rank=0, host=HOSTILE, exit_code=1, phase=HOSTILE, reason=HOSTILE)
    run.ended(1, run_folders.BEGIN + 10, "failed", 1, first_rank=0, reason=HOSTILE)
    run.log(1, 0, HOSTILE + "\n\x1b]0;title\x07\xff")
    (run.attempt(1) / "system-0000.csv").write_text(f"time,{HOSTILE}\n1,2\n")
    (run.attempt(1) / "metrics-0007.csv").write_text(HOSTILE)
    return run


def test_names_from_outside_are_text_in_every_form(stoker):
    folder = hostile_run(stoker.folder / "runs")
    stoker("report", code=0)
    page = _Page((folder.path / "report.html").read_text())
    assert page.tags.count("script") == 1
    assert page.references == []
    assert page.handlers == []
    assert "img" not in page.tags
    assert "\x1b" not in stoker("report", "--format", "text", code=0).out
    json.loads(stoker("report", "--format", "json", code=0).out)


def test_a_script_that_records_nothing_and_fails_early_shows_its_log_and_the_machine(stoker):
    folder = run_folders.script_that_fails(stoker.folder / "runs")
    assert stoker("report", code=0).out.startswith("mine: failed, 13 s, 2 ranks\n")
    text = (folder.path / "report.html").read_text()
    assert "ModuleNotFoundError: No module named &#39;torhc&#39;" in text
    assert "Memory of ranks" in text
    assert "<h2>Learning</h2>" not in text
    assert "<h2>Where the time went</h2>" not in text


def test_a_running_run_is_reported_as_running(stoker):
    run = run_folders.RunFolder.create(stoker.folder / "runs")
    run.started(1, run_folders.BEGIN)  # on another host, and its files are fresh
    run.steps(1, 0, 1, 50, run_folders.BEGIN)
    with (run.attempt(1) / "metrics-0000.csv").open("a") as file:
        file.write("1763719400.5,0,51,64,2.")  # being written
    out = stoker("report", code=0).out
    assert re.match(r"resnet20: running, loss \d\.\d\d after 50 steps, ", out)
    assert "The run was still running" in (run.path / "report.html").read_text()
    (facts,) = json.loads(stoker("report", "--json", code=0).out)["runs"]
    assert (facts["started"], facts["ended"]) == (run_folders.BEGIN, None)
    assert (facts["attempts"][0]["started"], facts["attempts"][0]["ended"]) == (run_folders.BEGIN, None)


@pytest.mark.parametrize("name", ["run.json", "attempts/1/metrics-0000.csv", "attempts/1/events-node-0000.jsonl"])
def test_a_damaged_file_is_named_and_no_crash(stoker, name):
    folder = run_folders.killed_and_resumed(stoker.folder / "runs").path
    whole = (folder / name).read_bytes()
    for damage in (b"", b"\0" * 100, whole[: len(whole) // 2], whole.replace(b",", b"\xff")):
        (folder / name).write_bytes(damage)
        result = stoker("report", "--format", "text")
        assert result.code in (0, 1)
        if result.code == 1:
            assert result.err.startswith(f"runs/{ID}/run.json: not a JSON object")


def test_bad_words_have_clear_errors(stoker):
    run_folders.killed_and_resumed(stoker.folder / "runs")
    assert (
        stoker("report", "last", "--format", "htm", code=2).err
        == "report: unknown format 'htm'; did you mean 'html'? (--format)\n"
    )
    assert stoker("report", "x", code=1).err == f"run 'x': not found in runs (newest: {ID})\n"
    assert stoker("report", "last", "last", code=2).err == (
        "report: a page of 2 runs needs --out\n  try: stoker report last last --out report.html\n"
    )


def test_an_unwritable_output_file_is_named_as_typed(stoker):
    run_folders.killed_and_resumed(stoker.folder / "runs")
    assert stoker("report", "--out", "no/such/page.html", code=1).err == (
        "report: no/such: no such folder (--out)\n  try: mkdir -p no/such\n"
    )
    assert stoker("report", "--out", ".", code=2).err == (
        "report: .: is a folder (--out)\n  try: stoker report last --out ./report.html\n"
    )
    assert stoker("report", "last", "--runs", "./runs", "--format", "text", "--out", "runs", code=2).err == (
        "report: runs: is a folder (--out)\n"
        "  try: stoker report last --runs ./runs --format text --out runs/report.txt\n"
    )
    refused = stoker("report", "--json", "--out", "/proc/report.json")
    error = json.loads(refused.out)["error"]
    assert re.fullmatch(r"report: /proc/report\.json: [a-z ]+ \(--out\)", error["message"])
    assert [path.name for path in stoker.folder.iterdir()] == ["runs"]


def test_a_page_is_printed_on_request(stoker):
    folder = run_folders.killed_and_resumed(stoker.folder / "runs")
    stoker("report", code=0)
    printed = stoker("report", "--out", "-", code=0)

    def without_moment(page):
        return re.sub(r"\d\d:\d\d:\d\dZ from", "Z from", page)

    assert without_moment(printed.out) == without_moment((folder.path / "report.html").read_text())
    assert printed.err == "resnet20 on cifar10: 61.2 % top-1 after 3 epochs, 1 min 09 s, 2 ranks, resumed once\n"
    text = stoker("report", "--format", "text", code=0).out
    assert stoker("report", "--format", "text", "--out", "-", code=0).out == text
    assert [path.name for path in stoker.folder.iterdir()] == ["runs"]


def test_files_for_a_run_of_a_host_are_checked_before_the_connection(stoker):
    assert stoker("report", "a", "b", "--host", "login:x", code=2).err == (
        "report: a page of 2 runs needs --out\n  try: stoker report a b --host login:x --out report.html\n"
    )
    assert stoker("report", "--host", "login", "--out", "no/page.html", code=1).err == (
        "report: no: no such folder (--out)\n  try: mkdir -p no\n"
    )
    assert stoker("report", "--host", "login", "--out", ".", code=2).err == (
        "report: .: is a folder (--out)\n  try: stoker report last --host login --out ./report.html\n"
    )
    error = json.loads(stoker("report", "--host", "login", "--json", "--format", "html", code=2).out)["error"]
    assert error["message"] == "report: --json with --host writes no file (--out, --format html)"
    assert error["cure"] == "stoker report last --host login --out report.html"
    assert list(stoker.folder.iterdir()) == []


def test_several_runs_make_one_page(stoker):
    run_folders.killed_and_resumed(stoker.folder / "runs")
    stoker("report", "last", f"runs/{ID}", "--out", "both.html", code=0)
    text = (stoker.folder / "both.html").read_text()
    assert text.count("<h1>") == 3


HOVER = """
charts: all('figure').length,
endings: all('.tall td.own').map(e => r(e).right),
hover: (() => {const s = d.querySelector('figure svg.plot'), b = r(s);
s.dispatchEvent(new w.PointerEvent('pointermove', {clientX: b.left + b.width / 2}));
return d.querySelector('figure output').textContent})()
"""


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("make", [run_folders.killed_and_resumed, hostile_run])
def test_in_a_browser_it_has_no_error_and_fits_a_phone(stoker, make):
    folder = make(stoker.folder / "runs").path
    stoker("report", code=0)
    seen = browser.look(folder / "report.html", HOVER)
    assert seen["charts"] > 1
    assert seen["endings"]
    assert max(seen["endings"]) <= 390  # no scrolling to read how it ended
    assert re.match(r"step \d+ +training", seen["hover"])


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("width", "theme"), browser.LOOKS)
@pytest.mark.parametrize("make", [run_folders.killed_and_resumed, hostile_run])
def test_in_a_browser_everything_can_be_read(stoker, make, width, theme):
    folder = make(stoker.folder / "runs").path
    stoker("report", code=0)
    browser.assert_legible(folder / "report.html", width, theme)


@pytest.mark.needs("chromium")
def test_in_a_browser_the_page_of_twelve_runs_can_be_read(stoker):
    script = """
import os, sys
with open(os.environ["STOKER_ATTEMPT_DIR"] + "/points-0000-toy.csv", "w") as out:
    out.write("time,step,value,metric\\n")
    out.writelines(f",{i * 1000},{float(sys.argv[1]) * 1e6 / i},validation loss\\n" for i in range(1, 40))
"""
    (stoker.folder / "toy.py").write_text(script)
    (stoker.folder / "job.yaml").write_text(
        "name: toy\nrun: python3 toy.py ${params.learning_rate_of_the_warmup}\n"
        "params: {learning_rate_of_the_warmup: 1, batch: 1}\n"
    )
    runs = [
        json.loads(
            stoker("run", "job.yaml", "--set", f"params.learning_rate_of_the_warmup={10.0**-i}", "--json", code=0).out
        )["run"]
        for i in range(12)
    ]
    stoker("report", *runs, "--out", "all.html", code=0)
    for width, theme in browser.LOOKS:
        browser.assert_legible(stoker.folder / "all.html", width, theme)
    assert browser.look(stoker.folder / "all.html", "axes: all('.parallel line.axis').length")["axes"] == 2
