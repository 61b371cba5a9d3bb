#include "base/language/catalogue.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "base/language/translator.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<CatalogueEntry> read(std::string_view po) {
  auto entries = read_catalogue(po);
  EXPECT_TRUE(entries.ok());
  return entries.ok() ? *entries : std::vector<CatalogueEntry>();
}

std::string refusal(std::string_view po) {
  const auto entries = read_catalogue(po);
  return entries.ok() ? "" : std::string(entries.error().message());
}

// Placeholders in a canonical order: a translation may only reorder numbered ones.
std::vector<std::string> comparable(std::string_view pattern) {
  std::vector<std::string> found = placeholders_in(pattern);
  const bool are_counted = std::any_of(found.begin(), found.end(), [](const std::string& each) {
    return each == "{}" || each.starts_with("{:");
  });
  if (!are_counted) {
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
  }
  return found;
}

// "{}" and "{:.1f}" as "{0}" and "{1:.1f}".
std::vector<std::string> numbered(std::vector<std::string> counted) {
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i].insert(1, std::to_string(i));
  return counted;
}

TEST(Catalogue, texts_span_several_lines_and_keep_escapes) {
  const auto entries = read(
      "msgid \"\"\nmsgstr \"Language: fr\\n\"\n\n#: a.cc\nmsgid \"a \"\n\"\\\"b\\\"\\n\"\nmsgstr "
      "\"c\\\\\"\n");
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(entries[0].english, "a \"b\"\n");
  EXPECT_EQ(entries[0].translated, "c\\");
  EXPECT_EQ(entries[0].line, 5u);
}

TEST(Catalogue, fuzzy_or_empty_translations_fall_back_to_english) {
  const Catalogue catalogue(
      read("#, fuzzy\nmsgid \"a\"\nmsgstr \"x\"\n\nmsgid \"b\"\nmsgstr \"\"\n\nmsgid \"c\"\nmsgstr \"z\"\n"));
  EXPECT_EQ(catalogue.find("a").data(), nullptr);
  EXPECT_EQ(catalogue.find("b").data(), nullptr);
  EXPECT_EQ(catalogue.find("c"), "z");
}

TEST(Catalogue, errors_include_the_line) {
  EXPECT_THAT(refusal("msgid \"a\nmsgstr \"b\"\n"), HasSubstr("line 1: expected a string in double quotes"));
  EXPECT_THAT(refusal("msgid \"a\"\nmsgstr \"\\q\"\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("msgid \"a\"\nmsgstr \"\\\"\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("msgid \"a\"b\"\n"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("msgid_plural \"a\"\n"), HasSubstr("line 1: expected msgid, msgstr"));
  EXPECT_THAT(refusal("\"a\"\n"), HasSubstr("line 1"));
}

TEST(Catalogue, translations_have_the_placeholders_of_the_message) {
  EXPECT_THAT(placeholders_in("{} of {:.1f} in {{data: {}}}"), ElementsAre("{}", "{:.1f}", "{}"));
  EXPECT_THAT(placeholders_in("{1}{frame}: chain: {until: done}"), ElementsAre("{1}", "{frame}"));
  EXPECT_THAT(placeholders_in("none {"), IsEmpty());
}

TEST(FrenchCatalogue, is_complete_with_the_same_placeholders) {
  const auto entries = read(french_catalogue());
  EXPECT_GT(entries.size(), 500u);
  for (const CatalogueEntry& entry : entries) {
    SCOPED_TRACE(format("po/fr.po:{}: {}", entry.line, entry.english));
    EXPECT_FALSE(entry.is_fuzzy);
    EXPECT_NE(entry.translated, "");
    const auto english = comparable(entry.english);
    auto french = comparable(entry.translated);
    if (french != english) std::sort(french.begin(), french.end());
    EXPECT_TRUE(french == english || french == numbered(english)) << entry.translated;
  }
}

TEST(FrenchCatalogue, uses_no_break_spaces_before_punctuation_but_not_in_commands) {
  for (const CatalogueEntry& entry : read(french_catalogue())) {
    SCOPED_TRACE(format("po/fr.po:{}", entry.line));
    for (const char* wrong : {" :", " ;", " ?", " !", "« ", " »"})
      EXPECT_EQ(entry.translated.find(wrong), std::string::npos) << entry.translated;
  }
}

TEST(Translator, localizes_or_falls_back_to_english) {
  const Translator french(Language::french);
  EXPECT_EQ(french.localize("try: {}", "x").text(), "à essayer\u00a0: x");
  EXPECT_EQ(french.localize("not translated: {}", 7).text(), "not translated: 7");
  EXPECT_EQ(Translator().localize("try: {}", "x").text(), "try: x");
}

TEST(Translator, language_follows_the_locale) {
  for (const char* name : {"fr", "fr_FR", "fr_CA.UTF-8", "fr.UTF-8", "fr_FR@euro"})
    EXPECT_EQ(language_of_locale(name), Language::french) << name;
  for (const char* name : {"", "C", "C.UTF-8", "POSIX", "de_DE.UTF-8", "frr_DE", "fry"})
    EXPECT_EQ(language_of_locale(name), Language::english) << name;
}

}  // namespace
}  // namespace stoker
