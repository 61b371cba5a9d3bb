"""`warm_start:` of a sweep file and `stoker sweep ask --warm-start`: trials of other studies and of tables."""

import json

import pytest

OLD = "space: {lr: [0.1, 0.01, 0.001]}\nobjectives: {loss: minimize}\nsampler: grid\n"
NEW = "space: {lr: [0.1, 0.01, 0.3]}\nobjectives: {loss: minimize}\nsampler: grid\n"


@pytest.fixture
def sweep(stoker):
    """`stoker sweep` in a folder with old.study, whose trials are complete, and old.csv."""
    (stoker.folder / "old.yaml").write_text(OLD)
    for trial in range(3):
        stoker("sweep", "ask", "old.yaml", code=0)
        stoker("sweep", "tell", "old.yaml", trial, trial, code=0)
    stoker("sweep", "export", "old.yaml", "--to", "old.csv", code=0)

    def command(*words, **options):
        return stoker("sweep", *words, **options)

    command.folder = stoker.folder
    return command


@pytest.mark.parametrize("source", ["old.study", "old.csv", "old.yaml"])
def test_a_file_names_its_sources(sweep, source):
    (sweep.folder / "new.yaml").write_text(f"{NEW}warm_start: {source}\n")
    done = sweep("ask", "new.yaml", code=0)
    assert done.err == f"{source}: 2 trials for the sampler, 1 outside the space left out\nnew.study: new study\n"
    assert done.out == "trial 0: lr=0.3\n"
    assert sweep("show", "new.yaml", code=0).err == ""
    assert len(json.loads(sweep("show", "new.yaml", "--json").out)) == 1
    assert sweep("ask", "new.yaml").err == "new: no trial is left (every point was tried)\n"


def test_sources_are_found_beside_the_file(sweep):
    folder = sweep.folder / "sweeps"
    folder.mkdir()
    (folder / "new.yaml").write_text(f"{NEW}warm_start: [../old.study, ../old.csv]\n")
    done = sweep("ask", "sweeps/new.yaml", code=0)
    assert done.err.count("2 trials for the sampler") == 2


def test_an_option_adds_a_source_to_a_new_study(sweep):
    (sweep.folder / "new.yaml").write_text(NEW)
    done = sweep("ask", "new.yaml", "--warm-start", "old.csv", code=0)
    assert done.out == "trial 0: lr=0.3\n"
    assert sweep("show", "new.yaml").code == 0
    again = sweep("ask", "new.yaml", "--warm-start", "old.csv")
    assert (again.code, again.err) == (
        1,
        "new.study: is not new (--warm-start, --param and --objective are for a new study)\n",
    )


def test_a_study_has_the_trials_of_its_creation(sweep):
    (sweep.folder / "new.yaml").write_text(f"{NEW}warm_start: old.csv\n")
    sweep("ask", "new.yaml", code=0)
    (sweep.folder / "old.csv").unlink()
    assert sweep("show", "new.yaml").code == 0
    (sweep.folder / "new.yaml").write_text(f"{NEW}warm_start: old.study\n")
    done = sweep("show", "new.yaml")
    assert done.code == 2
    assert done.err.startswith("new.yaml: differs from its study new.study")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("none.csv", "none.csv: no such file or directory"),
        ("none.study", "none.study: no such file or directory"),
        (".", ".: no study (study.json)"),
        ("bad.csv", "bad.csv: has no loss (objectives)"),
    ],
)
def test_wrong_sources_create_no_study(sweep, source, error):
    (sweep.folder / "bad.csv").write_text("a,b\n1,2\n")
    (sweep.folder / "new.yaml").write_text(f"{NEW}warm_start: {source}\n")
    done = sweep("ask", "new.yaml")
    assert done.code in (1, 2)
    assert done.err == f"{error}\n"
    assert not (sweep.folder / "new.study").exists()
