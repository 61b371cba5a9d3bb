#include "diagnose/automaton.h"

#include <random>
#include <string>

#include <gmock/gmock.h>

namespace stoker::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint16_t> all(std::span<const std::string_view> words, std::string_view text) {
  std::vector<std::uint16_t> found;
  Automaton(words).find_all(text, found);
  return found;
}

TEST(Automaton, overlapping_words_and_false_starts_are_matched) {
  const std::array<std::string_view, 4> words = {"he", "she", "his", "hers"};
  EXPECT_THAT(all(words, "ushers"), ElementsAre(1, 0, 3));
  EXPECT_THAT(all(words, "hhis"), ElementsAre(2));
  EXPECT_THAT(all(words, "hi sh e"), IsEmpty());
}

TEST(Automaton, the_end_of_the_first_match_is_returned) {
  const std::array<std::string_view, 2> words = {"error", "rro"};
  const Automaton automaton(words);
  EXPECT_EQ(automaton.find_end("an error"), 7u);
  EXPECT_EQ(automaton.find_end("an erro"), 7u);
  EXPECT_EQ(automaton.find_end("err or"), std::string_view::npos);
  EXPECT_EQ(automaton.find_end(""), std::string_view::npos);
}

TEST(Automaton, every_byte_may_be_in_a_word) {
  std::string alphabet;
  for (int c = 0; c < 256; ++c) alphabet.push_back(static_cast<char>(c));
  const std::array<std::string_view, 2> words = {alphabet, "\xFF\xFE"};
  EXPECT_THAT(all(words, "x" + alphabet), ElementsAre(0));
}

TEST(Automaton, matches_equal_a_plain_search) {
  std::mt19937 random(7);
  const auto text_of = [&](std::size_t length) {
    std::string text(length, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> owned;
    for (int i = 0; i < 6; ++i) owned.push_back(text_of(1 + random() % 5));
    const std::vector<std::string_view> words(owned.begin(), owned.end());
    const std::string text = text_of(20);
    std::vector<std::uint16_t> found = all(words, text);
    std::sort(found.begin(), found.end());
    std::vector<std::uint16_t> expected;
    for (std::uint16_t i = 0; i < words.size(); ++i)
      if (text.find(words[i]) != std::string::npos) expected.push_back(i);
    EXPECT_EQ(found, expected);
  }
}

TEST(Automaton, each_matching_line_is_found_once_for_any_split_of_the_text) {
  std::mt19937 random(11);
  const std::array<std::string_view, 3> words = {"ab", "bcb", "ccc"};
  const Automaton automaton(words);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (unsigned i = random() % 200; i > 0; --i) text += "abc\n\n"[random() % 5];
    std::vector<std::size_t> expected;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::size_t hit = automaton.find_end(std::string_view(text).substr(at, end - at));
      if (hit != std::string_view::npos) expected.push_back(at + hit);
      at = end + 1;
    }
    std::vector<std::size_t> found;
    automaton.find_lines(text, found);
    EXPECT_EQ(found, expected) << text;
  }
}

}  // namespace
}  // namespace stoker::diagnose
