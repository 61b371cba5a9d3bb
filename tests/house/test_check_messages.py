"""The check that every text has its place in the catalogues."""

from pathlib import Path

import check_messages
import pytest

SOURCE = """
constexpr Rule kRules[] = {
    {"name", Level::job, "why it "
     "hurts", "#!/bin/bash\\n", "good", "origin", find},
    {"{1}", Level::job, "{1}: {2}", "", "", "", find},
};
constexpr Other kOthers[] = {{"a", "b", "c"}};
// words.localize("in a comment")
void f() {
  report.localize("{} of {}", 1, 2);
  words_.localize(
      R"(raw "text")");
  format("not translated");
}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("po").mkdir()
    Path("src/a.cc").write_text(SOURCE)
    Path("src/a_test.cc").write_text('words.localize("of a test");')
    return [Path("src/a.cc"), Path("src/a_test.cc"), Path("po/fr.po")]


def test_texts_of_calls_and_tables_are_collected(files: list[Path]):
    assert list(check_messages.texts_of(files)) == ["why it hurts", "{} of {}", 'raw "text"']


def test_a_catalogue_is_complete_without_unused_texts(files: list[Path]):
    Path("po/fr.po").write_text(
        'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "why it hurts"\nmsgstr "pourquoi"\n\n'
        '#, fuzzy\nmsgid "{} of {}"\nmsgstr "{} sur {}"\n\nmsgid "gone"\nmsgstr "parti"\n'
    )
    output = [str(finding) for finding in check_messages.check(files)]
    assert [text.split(":")[1] for text in output] == ["8", "1", "11"]
    assert "{} of {}" in output[0] and 'raw \\"text\\"' in output[1] and "is no longer used" in output[2]


def test_commands_options_and_variables_are_not_translated(files: list[Path]):
    Path("src/a.cc").write_text('words.localize("RANK_ID of `sinfo -s`, or --nodes");')
    catalogue = Path("po/fr.po")
    catalogue.write_text('msgid "RANK_ID of `sinfo -s`, or --nodes"\nmsgstr "RANG de `sinfo -s`, ou --noeuds"\n')
    output = [finding.text for finding in check_messages.check(files)]
    assert [text.split()[0] for text in output] == ["RANK_ID", "--nodes"]
    catalogue.write_text('msgid "RANK_ID of `sinfo -s`, or --nodes"\nmsgstr "RANK_ID de `sinfo -s`, ou --nodes"\n')
    assert list(check_messages.check(files)) == []


def test_an_update_keeps_what_is_translated_and_the_notes_of_translators(files: list[Path]):
    catalogue = Path("po/fr.po")
    catalogue.write_text(
        '# header\nmsgid ""\nmsgstr ""\n"Language: fr\\n"\n\n# a note\n#: src/old.cc\n'
        'msgid "why it hurts"\nmsgstr "pourquoi"\n\nmsgid "gone"\nmsgstr "parti"\n'
    )
    check_messages.update(catalogue, check_messages.texts_of(files))
    text = catalogue.read_text()
    assert text.startswith(
        '# header\nmsgid ""\nmsgstr ""\n"Language: fr\\n"\n\n# a note\n#: src/a.cc\nmsgid "why it hurts"\nmsgstr "pourquoi"\n'
    )
    assert "gone" not in text
    assert len(list(check_messages.check(files))) == 2
    check_messages.update(catalogue, check_messages.texts_of(files))
    assert catalogue.read_text() == text
