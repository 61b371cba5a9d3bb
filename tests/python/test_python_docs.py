"""Runs the examples of docs/python.md in a folder with the files of the page's setup."""

import doctest
import re
import shutil

import docs_examples
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs/python.md"


def test_the_page_examples_have_the_shown_output(example_dataset, tmp_path, monkeypatch):
    page = PAGE.read_text()
    assert docs_examples.setups(page) == ["dataset"]
    shutil.copytree(example_dataset, tmp_path / "cifar10-6000")
    monkeypatch.chdir(tmp_path)
    examples = "".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    parser = doctest.DocTestParser()
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    found = runner.run(parser.get_doctest(examples, {}, PAGE.name, str(PAGE), 0), out=output.append)
    assert found.attempted > 10
    assert found.failed == 0, "".join(output)
