"""The examples of docs/python.md are run, in a folder with what the page's setup names."""

import doctest
import re
import shutil

import docs_examples
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs/python.md"


def test_the_pages_examples_say_what_the_page_says(example_dataset, tmp_path, monkeypatch):
    page = PAGE.read_text()
    assert docs_examples.setups(page) == ["dataset"]
    shutil.copytree(example_dataset, tmp_path / "cifar10-6000")
    monkeypatch.chdir(tmp_path)
    examples = "".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    parser = doctest.DocTestParser()
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    found = runner.run(parser.get_doctest(examples, {}, PAGE.name, str(PAGE), 0), out=told.append)
    assert found.attempted > 10
    assert found.failed == 0, "".join(told)
