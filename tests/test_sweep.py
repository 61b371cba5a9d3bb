"""`stoker sweep ask|tell|report|show|best|export`: a study asked by many processes, wrong arguments and files, damage."""

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

SWEEP = """
space:
  lr: {min: 1.0e-4, max: 1, log: true}
  width: [16, 32, 64]
objectives: {val_acc: maximize}
"""


@pytest.fixture
def sweep(stoker):
    """`stoker sweep` in a folder with lr.yaml."""
    (stoker.folder / "lr.yaml").write_text(SWEEP)

    def command(*words, **options):
        return stoker("sweep", *words, **options)

    command.folder = stoker.folder
    command.start = lambda *words: stoker.start("sweep", *words)
    return command


def ask(sweep):
    return json.loads(sweep("ask", "lr.yaml", "--json", code=0).out)


def test_trials_are_started_ended_and_shown(sweep):
    for trial in range(3):
        assert ask(sweep)["trial"] == trial
        assert sweep("tell", "lr.yaml", trial, 0.5 + trial / 10).out == f"trial {trial}: complete\n"
    assert ask(sweep)["trial"] == 3
    shown = sweep("show", "lr.yaml").out.splitlines()
    assert shown[0] == "lr: maximize val_acc, sampler auto, 3 complete, 1 running"
    assert [line.split()[0] for line in shown[2:]] == ["2", "1", "0", "3"]
    best = json.loads(sweep("best", "lr.yaml", "--json").out)
    assert [trial["number"] for trial in best] == [2]
    assert set(best[0]["params"]) == {"lr", "width"}
    table = sweep("export", "lr.study").out.splitlines()
    assert table[0] == "trial,state,val_acc,lr,width,seconds"
    assert len(table) == 5


def test_processes_get_different_trials(sweep):
    ask(sweep)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(sweep), range(40)))
    assert sorted(answer["trial"] for answer in answers) == list(range(1, 41))
    points = {json.dumps(answer["values"]) for answer in answers}
    assert len(points) == 40
    assert len(list((sweep.folder / "lr.study/journal").iterdir())) <= 9


def test_a_cap_holds_for_processes_side_by_side(sweep):
    (sweep.folder / "lr.yaml").write_text(SWEEP + "trials: 10\n")
    ask(sweep)
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: sweep("ask", "lr.yaml"), range(20)))
    assert sum(one.code == 0 for one in done) == 9
    assert {one.err for one in done if one.code} == {"lr: no trial is left (trials: 10)\n"}


def test_a_killed_ask_leaves_a_readable_study(sweep):
    ask(sweep)
    for kill in range(10):
        process = sweep.start("ask", "lr.yaml")
        time.sleep(0.002 * kill)
        process.kill()
        process.wait()
    before = len(json.loads(sweep("show", "lr.yaml", "--top", "0", "--json").out))
    ask(sweep)
    shown = sweep("show", "lr.yaml", "--top", "0", "--json")
    assert shown.err == ""
    assert len(json.loads(shown.out)) == before + 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["tell", "lr.yaml", "7", "0.5"], "lr: no trial 7"),
        (["tell", "lr.yaml", "x", "0.5"], "'x' is no number of a trial"),
        (["tell", "lr.yaml", "0", "good"], "value 'good': is not a number"),
        (["tell", "lr.yaml", "0"], "trial 0: no value\n  try: stoker sweep tell lr.yaml 0 --failed"),
        (["tell", "lr.yaml", "0", "1", "2"], "lr: 2 values for trial 0 (the study has 1 objective)"),
        (["tell", "lr.yaml", "0", "--pruned", "--failed"], "--pruned and --failed exclude each other"),
        (["tell", "lr.yaml", "0", "1", "--failed"], "trial 0: a value of a trial without a result (--failed)"),
        (["report", "lr.yaml", "0", "1.5", "0.5"], "step '1.5': is not a whole number"),
        (["report", "lr.yaml", "0", "1", "good"], "value 'good': is not a number"),
        (["ask", "lr.yaml", "--retry", "0"], "lr: trial 0 did not fail (running)"),
        (["export", "lr.yaml", "--format", "xlsx"], "--format 'xlsx': is unknown (one of: csv, json, markdown)"),
        (["best", "lr.yaml"], "lr: no trial is complete"),
        (["show", "other.yaml"], "other.yaml: no such file or directory"),
        (["show", "."], ".: no study (study.json)"),
    ],
)
def test_wrong_arguments_are_refused(sweep, words, error):
    ask(sweep)
    done = sweep(*words)
    assert done.code in (1, 2)
    assert done.err == f"{error}\n"


def test_a_changed_file_does_not_continue_its_study(sweep):
    ask(sweep)
    (sweep.folder / "lr.yaml").write_text(SWEEP.replace("max: 1", "max: 2"))
    done = sweep("ask", "lr.yaml")
    assert done.code == 2
    assert done.err == (
        "lr.yaml: differs from its study lr.study, whose trials have the earlier definition\n  try: name: lr-2\n"
    )
    (sweep.folder / "lr.yaml").write_text("name: lr-2\n" + SWEEP.replace("max: 1", "max: 2"))
    assert ask(sweep)["trial"] == 0


def test_damage_is_counted_and_left_out(sweep):
    for _ in range(3):
        ask(sweep)
    journal = next((sweep.folder / "lr.study/journal").iterdir())
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + lines[1].replace(b"start 1", b"start 5") + lines[2] + b"start 9 0 1")
    done = sweep("show", "lr.yaml", "--json")
    assert done.err == f"lr.study/journal/{journal.name}: 1 line damaged, left out\n"
    assert [trial["number"] for trial in json.loads(done.out)] == [0, 2]


def test_a_damaged_definition_is_an_error(sweep):
    ask(sweep)
    definition = sweep.folder / "lr.study/study.json"
    definition.write_text(definition.read_text()[:-40])
    done = sweep("show", "lr.study")
    assert (done.code, done.err) == (1, "lr.study/study.json: is not a JSON object\n")


def test_a_read_only_study_can_be_shown(sweep):
    ask(sweep)
    folder = sweep.folder / "lr.study"
    for path in [folder / "journal", folder / "claims", folder]:
        path.chmod(0o555)
    try:
        assert sweep("show", "lr.study").code == 0
    finally:
        for path in [folder, folder / "journal", folder / "claims"]:
            path.chmod(0o755)


@pytest.mark.needs("mount")
def test_a_full_disk_damages_no_study(sweep, tmpfs):
    disk = tmpfs("256k")
    (disk / "lr.yaml").write_text(SWEEP)
    started = 0
    for _ in range(3):
        sweep("ask", "lr.yaml", cwd=disk, code=0)
        started += 1
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    # The journal's last page takes some more records.
    for _ in range(100):
        done = sweep("ask", "lr.yaml", cwd=disk)
        if done.code:
            break
        started += 1
    assert done.code == 1
    assert "no space left" in done.err
    filler.unlink()
    sweep("ask", "lr.yaml", cwd=disk, code=0)
    shown = sweep("show", "lr.yaml", "--top", "0", "--json", cwd=disk, code=0)
    assert shown.err == ""
    assert len(json.loads(shown.out)) == started + 1


def test_files_of_wandb_are_asked(sweep):
    (sweep.folder / "lr.yaml").write_text(
        "program: train.py\nmethod: grid\nmetric: {name: loss, goal: minimize}\n"
        "parameters: {batch: {values: [16, 32]}, epochs: {value: 5}}\n"
    )
    done = sweep("ask", "lr.yaml")
    assert done.out == "trial 0: batch=16 epochs=5\n"
    assert done.err == "lr.yaml: program: has no effect\nlr.study: new study\n"
