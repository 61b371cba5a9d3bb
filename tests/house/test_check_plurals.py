"""script/lib/check_plurals.py: messages that can read "1 images"."""

from pathlib import Path

import check_plurals
import pytest


@pytest.mark.parametrize(
    ("line", "nouns"),
    [
        ('out.line("{}: {} images in {}", a, b, c);', ["images"]),
        ('format("{:.0f} steps, {} classes", a, b);', ["steps", "classes"]),
        ('format("{0} ranks on {1} nodes", a, b);', ["ranks", "nodes"]),
        ('format("{} of {} images", a, b);', []),
        ('format("all {} ranks, at most {} nodes", a, b);', []),
        ('format("{} samples/s", a);', []),
        ('format("{} imagesque", a);', []),
        ('// "{} images"', []),
        ('n == 1 ? "1 image" : format("{} images", n);', []),
        ('n > 1 ? format("{} images", n) : "";', []),
        ('n > 10 ? format("{} images", n) : "";', ["images"]),
        ('format("{} images", n);  // always several', []),
    ],
)
def test_a_count_with_a_plural_noun_is_found(line, nouns):
    assert [noun for _, noun in check_plurals.plurals(line)] == nouns


def test_a_singular_message_further_away_does_not_excuse_a_plural():
    source = 'return "1 image";' + "\n" * 5 + 'return format("{} images", n);\n'
    assert [number for number, _ in check_plurals.plurals(source)] == [6]


def test_findings_name_the_function_to_use(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("src/a").mkdir(parents=True)
    Path("src/a/b.cc").write_text('f("{} processes", n);\n')
    Path("src/a/b_test.cc").write_text('f("{} files", n);\n')
    files = [Path("src/a/b.cc"), Path("src/a/b_test.cc"), Path("docs/a.md")]
    assert [str(finding) for finding in check_plurals.check(files, budget={})] == [
        "src/a/b.cc:1: can read '1 processes': use counted(n, \"process\")"
    ]


def test_the_budget_of_a_file_only_shrinks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("src/a.cc").write_text('f("{} files", n);\n')
    path = Path("src/a.cc")
    assert list(check_plurals.check([path], budget={"src/a.cc": 1})) == []
    lower = [finding.text for finding in check_plurals.check([path], budget={"src/a.cc": 2})]
    assert lower == ["src/a.cc has 1 plurals now, not 2: lower its line"]
    gone = [finding.text for finding in check_plurals.check([], budget={"src/a.cc": 1})]
    assert gone == ["src/a.cc no longer exists: remove its line"]
