#include "manual/bash_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "manual/test_program.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::manual {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The candidates of bash for the last word, one per line.
std::string complete_in_bash(const std::string& words) {
  const std::string script = bash_completion(test_program()) + "\nCOMP_WORDS=(stoker " + words +
                             ") COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_stoker\n"
                             "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const Command command{
      .argv = {"bash", "--norc", "-c", script}, .environment = current_environment(), .directory = "/"};
  const auto ran = run_program(command, Deadline::after(std::chrono::seconds(30)));
  EXPECT_TRUE(ran.ok()) << ran.status().to_string();
  if (!ran.ok()) return "";
  EXPECT_EQ(ran->err, "");
  return ran->out;
}

TEST(BashCompletion, each_command_has_a_function_with_its_options_and_values) {
  const std::string script = bash_completion(test_program());
  EXPECT_THAT(script, StartsWith("# Completion of stoker 1.2 for bash: stoker completion bash\n"
                                 "\n"
                                 "_stoker__run() {\n"
                                 "  options=(--json -j --jobs --set)\n"
                                 "  case $1 in\n"
                                 "    -j | --jobs) ;;\n"
                                 "    --set) ;;\n"
                                 "    1) files=1 ;;\n"
                                 "    *) return 1 ;;\n"
                                 "  esac\n"
                                 "}\n"));
  EXPECT_THAT(script, HasSubstr("_stoker__data_wait() {\n"
                                "  options=(--runs)\n"
                                "  case $1 in\n"
                                "    --runs) folders=1 ;;\n"
                                "    [0-9]*) folders=1 runs=1 ;;\n"
                                "    rest) files=1 ;;\n"
                                "    *) return 1 ;;\n"
                                "  esac\n"
                                "}\n"));
}

TEST(BashCompletion, bash_lists_commands_groups_and_options) {
  EXPECT_EQ(complete_in_bash("''"), "run\ndata\n--help\n--version\n");
  EXPECT_EQ(complete_in_bash("data ''"), "pack\nwait\n--help\n");
  EXPECT_EQ(complete_in_bash("run --"), "--json\n--jobs\n--set\n");
  EXPECT_EQ(complete_in_bash("nope ''"), "\n");
}

TEST(BashCompletion, the_value_of_an_option_is_no_argument) {
  EXPECT_EQ(complete_in_bash("run -j ''"), "\n");
  EXPECT_EQ(complete_in_bash("run -j 4 et"), "etc\n");
  EXPECT_EQ(complete_in_bash("run --set = a=b et"), "etc\n");
}

TEST(BashCompletion, hostile_choices_are_words_and_never_run) {
  EXPECT_EQ(complete_in_bash("data pack --format ''"), "tar\no'dd $(id)\n");
  EXPECT_EQ(complete_in_bash("data pack --format = o"), "o'dd $(id)\n");
}

}  // namespace
}  // namespace stoker::manual
