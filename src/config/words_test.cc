#include "config/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::config {
namespace {

using testing::ElementsAre;

std::string mistake(std::string_view text) { return split_words(text).status().to_string(); }

TEST(Words, split_as_a_shell_quotes) {
  EXPECT_THAT(*split_words("  python  'my train.py'\t--x=\"a \\\"b\\\" \\n\" c\\ d '' \n"),
              ElementsAre("python", "my train.py", "--x=a \"b\" \\n", "c d", ""));
  EXPECT_THAT(*split_words("a'b'\"c\"d"), ElementsAre("abcd"));
  EXPECT_TRUE(split_words("").value().empty());
}

TEST(Words, references_are_kept_for_later) {
  EXPECT_THAT(*split_words("--lr ${params.lr} x${a b}y '${c}' $${d} cost$ 5$."),
              ElementsAre("--lr", "${params.lr}", "x${a b}y", "${c}", "$${d}", "cost$", "5$."));
}

TEST(Words, what_only_a_shell_can_do_is_refused_unless_quoted) {
  EXPECT_EQ(mistake("a | b"), "'|' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("a > b"), "'>' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("cd x && y"), "'&' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("a $HOME/b c"), "'$HOME/b' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("a $(date)"), "'$(date)' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_THAT(*split_words("'a | b' \"c > d\" \\| '$HOME'"), ElementsAre("a | b", "c > d", "|", "$HOME"));
}

TEST(Words, open_quotes_are_refused) {
  EXPECT_EQ(mistake("a 'b"), "a ' is never closed");
  EXPECT_EQ(mistake("a \"b"), "a \" is never closed");
  EXPECT_EQ(mistake("a \\"), "a backslash at the end quotes nothing");
}

TEST(Words, joined_words_split_into_the_same) {
  const std::vector<std::string> words = {"a", "", "b c", "d'e", "\"", "$x", "\\", "*", "\n", "é"};
  EXPECT_EQ(*split_words(join_words(words)), words);
}

}  // namespace
}  // namespace stoker::config
