#include "cli/explain/language.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

TEST(LanguageOption, selects_a_language_by_its_code) {
  EXPECT_TRUE(parse_language("en").ok());
  EXPECT_TRUE(parse_language("fr").ok());
  EXPECT_TRUE(parse_language("de").error().message().starts_with("--lang: unknown language 'de'"));
}

TEST(LanguageOption, auto_accepts_every_locale) {
  for (const char* locale : {"C", "fr_FR.UTF-8", "de_DE", ""}) {
    ::setenv("LC_ALL", locale, 1);
    EXPECT_TRUE(parse_language(kLocaleLanguage).ok()) << locale;
  }
  ::unsetenv("LC_ALL");
}

TEST(LanguageOption, auto_is_the_language_of_the_locale) {
  ::setenv("LC_ALL", "fr_CA.UTF-8", 1);
  EXPECT_EQ(resolve_language_code(kLocaleLanguage), "fr");
  EXPECT_EQ(resolve_language_code("en"), "en");
  ::setenv("LC_ALL", "C", 1);
  EXPECT_EQ(resolve_language_code(kLocaleLanguage), "en");
  ::unsetenv("LC_ALL");
}

}  // namespace
}  // namespace stoker::cli
