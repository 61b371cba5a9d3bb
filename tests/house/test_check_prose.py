"""script/lib/check_prose.py: what a sentence is, and which are too long."""

from pathlib import Path

import check_prose


def words(markdown: str) -> list[int]:
    return [sentence.words for sentence in check_prose.sentences(markdown)]


def test_sentences_end_at_full_stops_and_paragraphs():
    assert words("One two three. Four five?\n\nSix seven") == [3, 2, 2]
    assert words("A list:\n\n- one item\n- another longer item\n") == [2, 2, 3]


def test_numbers_and_abbreviations_do_not_end_a_sentence():
    assert words("Takes 3.5 ms, e.g. on a laptop.") == [7]


def test_code_tables_headings_and_comments_are_no_prose():
    page = "# A heading of five words\n\n```sh\nls -l a b c\n```\n\n| a | b |\n|---|---|\n\n<!-- setup: x -->\n\n    code here\n"
    assert words(page) == []


def test_inline_code_and_links_count_by_their_visible_text():
    assert words("Run `stoker run job.yaml --set a=b` [in a folder](docs/x.md) now.") == [6]


def test_long_sentences_and_pages_are_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path("README.md")
    page.write_text("word " * 36 + ".\n")
    assert [str(finding) for finding in check_prose.check([page])] == [
        f"README.md:1: sentence of 36 words: {('word ' * 36)[:60]} ...",
        "README.md:1: sentences have 36.0 words on average (at most 20)",
    ]
    page.write_text(("Word " * 19 + "word. ") * 3)
    assert list(check_prose.check([page])) == []
