"""script/lib/check_phrases.py: phrases that hide the field's own words."""

from pathlib import Path

import check_phrases
import pytest


@pytest.mark.parametrize(
    "text",
    [
        "the rank is told to stop",
        "nobody knows",
        "bool is_told = true;",
        "a folder of its own",
        "what is written to the disk",
        "The shard lies beside the index.",
    ],
)
def test_a_phrase_is_found_in_prose_and_in_names(text):
    assert len(list(check_phrases.wrong_with(text))) >= 1


@pytest.mark.parametrize(
    "text", ["rank 1 reports the loss", "x is None", "the index is next to the shard", "a metaphor"]
)
def test_plain_words_are_not_refused(text):
    assert list(check_phrases.wrong_with(text)) == []


def test_the_finding_names_what_to_write_instead():
    assert list(check_phrases.wrong_with("one\ntwo is told")) == [
        (2, "'told': report, print, log, show; distinguish for \"tell apart\"")
    ]


def test_the_whole_file_is_checked_line_by_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path("page.md")
    page.write_text("nobody\n\nplain\n\ntold\n")
    assert [finding.line for finding in check_phrases.check([page])] == [1, 5]
