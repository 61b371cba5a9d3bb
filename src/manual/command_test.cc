#include "manual/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manual/test_program.h"

namespace stoker::manual {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HintOf, placeholders_name_files_folders_and_runs) {
  EXPECT_TRUE(hint_of("FILE").files);
  EXPECT_TRUE(hint_of("DIR").folders);
  EXPECT_TRUE(hint_of("RUN").runs);
  const ValueHint either = hint_of("RUN|JOBID|LOG");
  EXPECT_TRUE(either.runs && either.files);
  EXPECT_FALSE(either.folders);
  EXPECT_THAT(either.choices, IsEmpty());
}

TEST(HintOf, words_in_lower_case_between_bars_are_choices) {
  EXPECT_THAT(hint_of("drop|nan|NUMBER").choices, ElementsAre("drop", "nan"));
  EXPECT_THAT(hint_of("2|3").choices, ElementsAre("2", "3"));
}

TEST(HintOf, other_placeholders_complete_nothing) {
  for (const char* placeholder : {"N", "SIZE", "1-100", "KEY=VALUE", "HOST[:DIR]", "NAME,...", ""})
    EXPECT_TRUE(hint_of(placeholder).is_empty()) << placeholder;
}

TEST(CommandText, usage_marks_optional_arguments_lists_and_the_rest) {
  EXPECT_EQ(usage_text(run_command()), "stoker run JOB [options]");
  EXPECT_EQ(usage_text(pack_command()), "stoker data pack SOURCE [OUT[:DIR]] [options]");
  EXPECT_EQ(usage_text(wait_command()), "stoker data wait [RUN|DIR...] [options] -- COMMAND...");
}

TEST(CommandText, help_has_defaults_repetition_and_examples) {
  EXPECT_EQ(help_text(run_command()),
            "Run a job here.\n"
            "\n"
            "Usage: stoker run JOB [options]\n"
            "\n"
            "  JOB              Job file\n"
            "  --json           Print JSON\n"
            "  -j, --jobs N     Use N threads [2]\n"
            "  --set KEY=VALUE  Override a key (may be repeated)\n"
            "\n"
            "Example:\n"
            "  stoker run job.yaml\n");
}

TEST(ProgramText, a_group_appears_once_with_its_commands) {
  const auto words = words_after(test_program(), "");
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].name, "run");
  EXPECT_EQ(words[1].name, "data");
  EXPECT_EQ(words[1].headline, "pack, wait");
  EXPECT_THAT(groups_of(test_program()), ElementsAre("data"));
}

TEST(ProgramText, words_after_a_group_are_its_verbs) {
  const auto words = words_after(test_program(), "data");
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].name, "pack");
  EXPECT_EQ(words[0].headline, kHostileText);
  EXPECT_EQ(words[1].name, "wait");
}

}  // namespace
}  // namespace stoker::manual
