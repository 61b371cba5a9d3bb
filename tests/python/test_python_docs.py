"""Runs the examples of the pages about Python in a folder with the files that they read."""

import doctest
import re
import shutil
from pathlib import Path

import docs_examples
from conftest import REPOSITORY
from course_logs import HEAD, shown, times

__all__ = ["shown"]
DOCS = REPOSITORY / "docs"
COURSE = f"""\
>>> Training on  1  nodes and  4  processes
{HEAD}DATALOADER 8 True True True 2 False
>>> Training complete in: 1:02:13.5
>>> Training performance time: min 0.18 avg 0.19 seconds (+/- 0.01)
>>> Loading performance time: min 0.03 avg 0.04 seconds (+/- 0.002)
>>> Forward performance time: 0.07 seconds (+/- 0.003)
>>> Backward performance time: 0.12 seconds (+/- 0.004)
>>> Peak Power during training: 312.5 W)
>>> Validation time: 0:02:12.346
>>> First step loading time: 2.5
{times([9.0, 0.19, 0.18, 0.23], [2.5, 0.04, 0.04, 0.04])}>>> Number of batch per epoch: 1252
VmPeak: 9000000 kB VmHWM: 4194304 kB
"""


def run_examples(page: Path) -> int:
    """Fails unless the examples have the shown output; their number."""
    examples = "".join(re.findall(r"^```pycon\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
    parser = doctest.DocTestParser()
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    found = runner.run(parser.get_doctest(examples, {}, page.name, str(page), 0), out=output.append)
    assert found.failed == 0, "".join(output)
    return found.attempted


def test_the_page_examples_have_the_shown_output(example_dataset, tmp_path, monkeypatch):
    page = DOCS / "python.md"
    assert docs_examples.setups(page.read_text()) == ["dataset"]
    shutil.copytree(example_dataset, tmp_path / "cifar10-6000")
    monkeypatch.chdir(tmp_path)
    assert run_examples(page) > 10


def test_the_examples_for_notebooks_have_the_shown_output(shown):
    log = Path("slurm/log/pseudo@JZ_123_1nodes_4tasks_2026-01-31_10.00.00.out")
    log.parent.mkdir(parents=True)
    log.write_text(COURSE)
    assert run_examples(DOCS / "python-notebook.md") == 5
    assert len(shown) == 2


def test_the_examples_of_a_search_have_the_shown_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_examples(DOCS / "python-study.md") == 7
