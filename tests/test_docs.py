"""The docs match the commands: the examples of every page are run, every command has a page."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import docs_examples
import h5py
import numpy
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from conftest import BIN, REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
PAGES_WITH_EXAMPLES = [
    page
    for page in PAGES
    if any(isinstance(e, docs_examples.Command) for e in docs_examples.examples(page.read_text()))
    and not docs_examples.session(page.read_text())  # those run in tests/lab/test_lab_page.py
]


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def write_grid(folder: Path) -> None:
    folder.mkdir()
    chance = numpy.random.default_rng(1)
    with h5py.File(folder / "train.h5", "w") as file:
        file["hours"] = numpy.arange(96)
        for name in ("t2m", "u10"):
            grid = chance.normal(size=(96, 16, 24)).astype("f4")
            file.create_dataset(name, data=grid, chunks=(24, 16, 12), compression="gzip")


def write_table(folder: Path) -> None:
    folder.mkdir()
    chance = numpy.random.default_rng(1)
    names = ("petal_length", "petal_width", "sepal_length", "sepal_width")
    columns = {name: chance.normal(size=600) for name in names}
    species = [("setosa", "versicolor", "virginica")[i % 3] for i in range(600)]
    spectrum = chance.normal(size=(600, 8)).tolist()
    years = [2017 + i // 100 for i in range(600)]
    table = pyarrow.table({"id": range(600)} | columns | {"species": species, "year": years, "spectrum": spectrum})
    pyarrow.parquet.write_table(table, folder / "train.parquet", row_group_size=100)


def write_partitions(folder: Path) -> None:
    table = pyarrow.table(
        {
            "year": pyarrow.array([2022 + i // 200 for i in range(600)], pyarrow.int32()),
            "country": [("DE", "FR", "IT", "PL")[i % 4] for i in range(600)],
            "price": numpy.random.default_rng(2).uniform(1, 9, 600),
            "sold": range(600),
        }
    )
    parts = pyarrow.dataset.partitioning(table.select(["year", "country"]).schema, flavor="hive")
    pyarrow.dataset.write_dataset(table, folder, format="parquet", partitioning=parts)


@pytest.fixture
def folder_with(tmp_path, request):
    """folder_with(["images"]) -> a folder with what a page's setup names."""

    def copy(fixture: str, name: str) -> None:
        shutil.copytree(request.getfixturevalue(fixture), tmp_path / name, symlinks=True)

    prepare = {
        "images": lambda: copy("example_images", "cifar10"),  # cifar10/train/<class>/*.jpg, cifar10/test/...
        "dataset": lambda: copy("example_dataset", "cifar10-6000"),  # those packed
        "job": lambda: shutil.copy(REPOSITORY / "examples/cifar10/job.yaml", tmp_path),
        "examples": lambda: shutil.copytree(REPOSITORY / "examples", tmp_path / "examples"),
        "grid": lambda: write_grid(tmp_path / "era5"),  # train.h5: hours, t2m and u10 of 96 x 16 x 24
        "table": lambda: write_table(tmp_path / "flowers"),  # train.parquet: 600 rows, 100 of each year from 2017 on
        "partitions": lambda: write_partitions(tmp_path / "sales"),  # sales/year=2022/country=DE/part-0.parquet, ...
        "run": lambda: copy("finished_run", "runs"),  # one finished run of two ranks, in runs/
    }

    def make(names: list[str]) -> Path:
        for name in names:
            prepare[name]()
        return tmp_path

    return make


def run_in_shell(command: str, folder: Path, last_code: int) -> tuple[str, int]:
    """Output and exit code of a shell command in a folder; `$?` is the previous exit code."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("STOKER_", "SLURM_"))}
    environment["PATH"] = f"{BIN}:{environment['PATH']}"
    environment["STOKER_SLURM_RELEASE"] = "22.05"  # whatever is installed here
    script = f"(exit {last_code}); {command}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
    )
    return done.stdout, done.returncode


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=name_of)
def test_examples_print_the_output_on_the_page(page, folder_with):
    text = blessed = page.read_text()
    folder = folder_with(docs_examples.setups(text))
    code, wrong = 0, []
    for example in docs_examples.examples(text):
        if isinstance(example, docs_examples.File):
            (folder / example.name).write_text(example.text)
            continue
        actual, code = run_in_shell(example.command, folder, code)
        if not docs_examples.matches(example.expected, actual):
            wrong.append(
                f"{name_of(page)}:{example.line}: $ {example.command}\nthe page shows:\n{example.expected}\nthe command prints:\n{actual}"
            )
            if "…" not in example.expected:
                blessed = docs_examples.with_output(blessed, example, actual)
    if os.environ.get("STOKER_BLESS") and blessed != text:
        page.write_text(blessed)
    assert not wrong, "\n\n".join(wrong)


def test_every_command_has_its_page_and_every_page_its_command(stoker):
    overview = stoker("--help").out
    commands = {
        name.strip().replace(" ", "-") for name in re.findall(r"^  ([a-z-]+(?: [a-z]+)?)  ", overview, re.MULTILINE)
    }
    commands |= {program.name.removeprefix("stoker-") for program in BIN.glob("stoker-*") if not program.suffix}
    pages = {page.stem for page in (REPOSITORY / "docs/commands").glob("*.md")} - {"README"}
    assert commands
    assert pages == commands


def test_commands_that_run_on_a_host_are_listed_and_their_pages_show_it(stoker):
    names = re.findall(r"^  ([a-z-]+(?: [a-z]+)?)  ", stoker("--help").out, re.MULTILINE)
    with_host = {name for name in names if "--host HOST" in stoker(*name.split(), "--help").out}
    pages = {path.stem.replace("-", " ", 1): path for path in (REPOSITORY / "docs/commands").glob("*.md")}
    shown = {name for name, path in pages.items() if "--host HOST" in path.read_text()}
    page = (REPOSITORY / "docs/host.md").read_text()
    (listed,) = re.findall(r"^Add `--host login.cluster` to (.+?)\.", page, re.DOTALL | re.MULTILINE)
    assert with_host
    assert set(re.findall(r"`(?:stoker )?([a-z ]+)`", listed)) == with_host
    assert shown == with_host


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    broken = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not broken


def test_the_map_of_the_sources_is_complete():
    rooms = {path.name for path in (REPOSITORY / "src").iterdir() if any(path.rglob("*.cc"))}
    page = (REPOSITORY / "docs/rooms/README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*?\| `([^`]+)` \|", page, re.MULTILINE)
    assert {name for name, _ in rows} == rooms
    first = {REPOSITORY / (file if file.startswith("include/") else f"src/{name}/{file}") for name, file in rows}
    named = {REPOSITORY / file for file in re.findall(r"`((?:src|include)/[\w./]+)`", page)}
    assert sorted(path for path in first | named if not path.exists()) == []
