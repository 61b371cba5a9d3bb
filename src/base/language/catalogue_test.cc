#include "base/language/catalogue.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "base/language/words.h"

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

// What a translation may change: with all of them numbered, their order.
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

TEST(Catalogue, texts_go_over_several_lines_and_keep_their_escapes) {
  const auto entries = read(
      "msgid \"\"\nmsgstr \"Language: fr\\n\"\n\n#: a.cc\nmsgid \"a \"\n\"\\\"b\\\"\\n\"\nmsgstr "
      "\"c\\\\\"\n");
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(entries[0].english, "a \"b\"\n");
  EXPECT_EQ(entries[0].translated, "c\\");
  EXPECT_EQ(entries[0].line, 5u);
}

TEST(Catalogue, what_is_fuzzy_or_empty_is_said_in_english) {
  const Catalogue catalogue(
      read("#, fuzzy\nmsgid \"a\"\nmsgstr \"x\"\n\nmsgid \"b\"\nmsgstr \"\"\n\nmsgid \"c\"\nmsgstr \"z\"\n"));
  EXPECT_EQ(catalogue.find("a").data(), nullptr);
  EXPECT_EQ(catalogue.find("b").data(), nullptr);
  EXPECT_EQ(catalogue.find("c"), "z");
}

TEST(Catalogue, damage_is_told_with_its_line) {
  EXPECT_THAT(refusal("msgid \"a\nmsgstr \"b\"\n"), HasSubstr("line 1: a text in double quotes"));
  EXPECT_THAT(refusal("msgid \"a\"\nmsgstr \"\\q\"\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("msgid \"a\"\nmsgstr \"\\\"\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("msgid \"a\"b\"\n"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("msgid_plural \"a\"\n"), HasSubstr("line 1: msgid, msgstr"));
  EXPECT_THAT(refusal("\"a\"\n"), HasSubstr("line 1"));
}

TEST(Catalogue, placeholders_are_those_that_are_filled) {
  EXPECT_THAT(placeholders_in("{} of {:.1f} in {{data: {}}}"), ElementsAre("{}", "{:.1f}", "{}"));
  EXPECT_THAT(placeholders_in("{1}{frame}: chain: {until: done}"), ElementsAre("{1}", "{frame}"));
  EXPECT_THAT(placeholders_in("none {"), IsEmpty());
}

TEST(FrenchCatalogue, is_whole_and_fills_in_what_the_english_does) {
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

TEST(FrenchCatalogue, stands_off_punctuation_by_a_hard_blank_and_leaves_commands_alone) {
  for (const CatalogueEntry& entry : read(french_catalogue())) {
    SCOPED_TRACE(format("po/fr.po:{}", entry.line));
    for (const char* wrong : {" :", " ;", " ?", " !", "« ", " »"})
      EXPECT_EQ(entry.translated.find(wrong), std::string::npos) << entry.translated;
  }
}

TEST(Words, say_a_text_in_their_language_or_in_english) {
  const Words french(Language::french);
  EXPECT_EQ(french.say("try: {}", "x").text(), "à essayer\u00a0: x");
  EXPECT_EQ(french.say("nobody has translated {}", 7).text(), "nobody has translated 7");
  EXPECT_EQ(Words().say("try: {}", "x").text(), "try: x");
}

TEST(Words, the_language_is_that_of_the_locale) {
  for (const char* name : {"fr", "fr_FR", "fr_CA.UTF-8", "fr.UTF-8", "fr_FR@euro"})
    EXPECT_EQ(language_of_locale(name), Language::french) << name;
  for (const char* name : {"", "C", "C.UTF-8", "POSIX", "de_DE.UTF-8", "frr_DE", "fry"})
    EXPECT_EQ(language_of_locale(name), Language::english) << name;
}

}  // namespace
}  // namespace stoker
