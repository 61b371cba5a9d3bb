#include "config/shell_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::config {
namespace {

using testing::ElementsAre;

std::string mistake(std::string_view text) { return split_words(text).status().to_string(); }
std::string mistake_of_command(std::string_view text) { return split_command(text).status().to_string(); }

TEST(ShellWords, split_like_a_shell) {
  EXPECT_THAT(*split_words("  python  'my train.py'\t--x=\"a \\\"b\\\" \\n\" c\\ d '' \n"),
              ElementsAre("python", "my train.py", "--x=a \"b\" \\n", "c d", ""));
  EXPECT_THAT(*split_words("a'b'\"c\"d"), ElementsAre("abcd"));
  EXPECT_TRUE(split_words("").value().empty());
}

TEST(ShellWords, references_are_kept_for_later) {
  EXPECT_THAT(*split_words("--lr ${params.lr} x${a b}y '${c}' $${d} cost$ 5$."),
              ElementsAre("--lr", "${params.lr}", "x${a b}y", "${c}", "$${d}", "cost$", "5$."));
}

TEST(ShellWords, refuses_shell_syntax_unless_quoted) {
  EXPECT_EQ(mistake("a | b"), "'|' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("a > b"), "'>' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("cd x && y"), "'&' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("a $HOME/b c"), "'$HOME/b' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake("a $(date)"), "'$(date)' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_THAT(*split_words("'a | b' \"c > d\" \\| '$HOME'"), ElementsAre("a | b", "c > d", "|", "$HOME"));
}

TEST(ShellWords, a_second_line_of_a_command_is_refused_unless_joined_or_quoted) {
  EXPECT_EQ(mistake_of_command("echo one\necho two\n"),
            "the line 'echo two' needs a shell: write {shell: \"...\"}, or end the one before with '\\'");
  EXPECT_EQ(mistake_of_command("a\n\n  | b"),
            "the line '| b' needs a shell: write {shell: \"...\"}, or end the one before with '\\'");
  EXPECT_THAT(*split_command("\n  echo one\n\n"), ElementsAre("echo", "one"));
  EXPECT_THAT(*split_command("python x.py \\\n  --lr 1 'a\nb' \"c\\\nd\" e\\\nf\n"),
              ElementsAre("python", "x.py", "--lr", "1", "a\nb", "cd", "ef"));
  EXPECT_THAT(*split_words("one\ntwo\n"), ElementsAre("one", "two")) << "a list is no command";
}

TEST(ShellWords, refuses_globs_in_a_command_unless_quoted) {
  EXPECT_EQ(mistake_of_command("ls *.py x"), "'*.py' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake_of_command("ls a'b c'?"), "'a'b c'?' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_THAT(
      *split_command("ls '*.py' \"a?\" \\* key=[1,2] --glob=*.csv x=? a[0] ${params.x}"),
      ElementsAre("ls", "*.py", "a?", "*", "key=[1,2]", "--glob=*.csv", "x=?", "a[0]", "${params.x}"));
  EXPECT_THAT(*split_words("data/*.csv"), ElementsAre("data/*.csv")) << "a list is no command";
}

TEST(ShellWords, a_home_folder_is_refused_in_a_command_unless_quoted) {
  EXPECT_EQ(mistake_of_command("ls ~"), "'~' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake_of_command("~/bin/x a"), "'~/bin/x' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_EQ(mistake_of_command("ls ~ada/x"), "'~ada/x' needs a shell: write {shell: \"...\"}, or quote it");
  EXPECT_THAT(*split_command("x '~' \\~/a a~ b/~/c ~optimizer --d=~/e"),
              ElementsAre("x", "~", "~/a", "a~", "b/~/c", "~optimizer", "--d=~/e"));
}

TEST(ShellWords, open_quotes_are_refused) {
  EXPECT_EQ(mistake("a 'b"), "a ' is not closed");
  EXPECT_EQ(mistake("a \"b"), "a \" is not closed");
  EXPECT_EQ(mistake("a \\"), "a backslash at the end escapes nothing");
}

TEST(ShellWords, joined_words_split_into_the_same) {
  const std::vector<std::string> words = {"a",  "",  "b c", "d'e", "\"",  "$x",
                                          "\\", "*", "\n",  "é",   "~/x", "\\\n"};
  EXPECT_EQ(*split_words(join_words(words)), words);
  EXPECT_EQ(*split_command(join_words(words)), words);
}

}  // namespace
}  // namespace stoker::config
