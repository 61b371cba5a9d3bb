#include "stoker/text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Text, formats_every_kind_of_argument) {
  const std::string owned = "owned";
  EXPECT_EQ(format("{} {} {} {} {:.2f} {} {}", true, 'c', -1, 2u, 0.125, owned, Path("/a")),
            "true c -1 2 0.12 owned /a");
}

TEST(Text, split_keeps_empty_pieces) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Text, numbers_must_match_completely) {
  std::int64_t n = 0;
  EXPECT_TRUE(parse_number("-12", &n));
  EXPECT_EQ(n, -12);
  EXPECT_FALSE(parse_number("12x", &n));
  EXPECT_FALSE(parse_number("", &n));
  EXPECT_FALSE(parse_number("99999999999999999999", &n));
  double d = 0;
  EXPECT_TRUE(parse_number("1e-3", &d));
  EXPECT_FALSE(parse_number(" 1", &d));
}

TEST(Text, suggests_the_closest_word_or_lists_few_choices) {
  const std::string_view words[] = {"resources", "record", "run"};
  EXPECT_EQ(suggestion("resorces", words), "; did you mean 'resources'?");
  EXPECT_EQ(suggestion("xyzzy", words), " (one of: resources, record, run)");
}

TEST(Text, printable_escapes_control_bytes_and_broken_utf8) {
  EXPECT_EQ(printable("a\x1b[31m\xff\xc3\xa9"), "a\\x1b[31m\\xff\xc3\xa9");
  // The same escape sequence as one character, and bidirectional controls.
  EXPECT_EQ(printable("a\u009b31m \u00a0\u202eb\u2066"),
            "a\\xc2\\x9b31m \u00a0\\xe2\\x80\\xaeb\\xe2\\x81\\xa6");
}

TEST(Text, shell_quote_survives_quotes_and_newlines) {
  EXPECT_EQ(shell_quote("plain/path-1"), "plain/path-1");
  EXPECT_EQ(shell_quote("it's $(x)\n"), "'it'\\''s $(x)\n'");
  EXPECT_EQ(shell_quote(""), "''");
}

TEST(Text, counts_have_thousands_separators) {
  EXPECT_EQ(grouped(7), "7");
  EXPECT_EQ(grouped(1234567), "1 234 567");
}

TEST(Text, utf8_length_accepts_only_valid_sequences) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\xc3\xa9t"), 2u);
  EXPECT_EQ(utf8_length("\xe2\x82\xac"), 3u);
  EXPECT_EQ(utf8_length("\xf0\x9f\x94\xa5"), 4u);
  EXPECT_EQ(utf8_length("\xc0\xaf"), 0u) << "overlong";
  EXPECT_EQ(utf8_length("\xed\xa0\x80"), 0u) << "surrogate";
  EXPECT_EQ(utf8_length("\xf4\x90\x80\x80"), 0u) << "beyond U+10FFFF";
  EXPECT_EQ(utf8_length("\xe2\x82"), 0u) << "cut off";
  EXPECT_EQ(utf8_length("\xff"), 0u);
}

TEST(Text, a_very_long_word_has_no_suggestion) {
  const std::string_view candidates[] = {"epochs"};
  EXPECT_EQ(closest(std::string(1 << 20, 'e'), candidates), "");
  EXPECT_EQ(closest("epochs", candidates), "epochs");
}

TEST(Text, swapped_letters_count_as_one_error) {
  const std::string_view candidates[] = {"name", "model", "run"};
  EXPECT_EQ(closest("nmae", candidates), "name");
  EXPECT_EQ(closest("modle", candidates), "model");
  EXPECT_EQ(closest("abcd", candidates), "");
}

}  // namespace
}  // namespace stoker
