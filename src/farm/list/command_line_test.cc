#include "farm/list/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::farm {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(PlainWords, a_line_of_words_and_quotes_needs_no_shell) {
  EXPECT_THAT(plain_words("python sim.py --x=3 'a b' \"c d\" e\\ f"),
              Optional(ElementsAre("python", "sim.py", "--x=3", "a b", "c d", "e f")));
  EXPECT_THAT(plain_words("  /bin/echo\t'' "), Optional(ElementsAre("/bin/echo", "")));
  EXPECT_THAT(plain_words("echo 'it'\\''s $HOME'"), Optional(ElementsAre("echo", "it's $HOME")));
}

class ShellLine : public testing::TestWithParam<const char*> {};
TEST_P(ShellLine, is_left_to_a_shell) { EXPECT_EQ(plain_words(GetParam()), std::nullopt) << GetParam(); }
INSTANTIATE_TEST_SUITE_P(PlainWords, ShellLine,
                         testing::Values("a | b", "a > b", "a; b", "a &", "echo $X", "echo \"$X\"",
                                         "echo `x`", "X=1 a", "cd x", "exit 3", "ls *.txt", "ls ?", "ls [a]",
                                         "ls ~", "echo a{1,2}", "a #b", "'open", "", "  ", "echo a\nb",
                                         "time a", "'' a", "echo !x", "a\\"));

TEST(PortableLine, has_only_pipes_lists_and_redirections) {
  for (const char* line : {"sim 3 > out.3 2>&1", "a 'b c' | sort >> log; c && d || e < in", "X=1 sim \"a b\"",
                           "sleep 1; echo 3 'a b' >> log", "echo a -n > log"})
    EXPECT_TRUE(is_portable_line(line)) << line;
  for (const char* line : {"a &> log", "a |& b", "a <<< b", "a << b", "a >& log", "a & b", "echo -e x",
                           "a; echo   '-n' x", "a; cd b", "a $X", "a 'b\\n'", "a {1,2}", "(a)", "a <(b)",
                           "a *", "'open", "a 2>&1 &", "a &", "if a; then b; fi"})
    EXPECT_FALSE(is_portable_line(line)) << line;
}

TEST(CommandPattern, values_are_quoted_in_a_line_for_the_shell) {
  const auto value = [](std::string_view name) -> std::optional<std::string> {
    return name == "x" ? std::optional<std::string>("a b") : std::nullopt;
  };
  const auto line = CommandPattern::parse({"sim {x} > {x}.out"});
  EXPECT_EQ(line->fill(value), "sim 'a b' > 'a b'.out");
  const auto words = CommandPattern::parse({"sim", "--x={x}", "{{}}", "{y}"});
  EXPECT_EQ(words->fill(value), "sim '--x=a b' '{}' ''");
  EXPECT_THAT(words->names(), ElementsAre("x", "y"));
}

TEST(CommandPattern, a_brace_without_its_partner_is_refused) {
  EXPECT_EQ(CommandPattern::parse({"a", "{x"}).error().to_string(),
            "command: '{x' has a '{' without its '}'\n  try: {{ for a brace");
}

}  // namespace
}  // namespace stoker::farm
