#include "manual/fish_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manual/test_program.h"

namespace stoker::manual {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(FishCompletion, words_and_options_have_the_condition_of_their_command) {
  const std::string script = fish_completion(test_program());
  EXPECT_THAT(script, HasSubstr("    if contains -- \"$typed[1]\" data\n"));
  EXPECT_THAT(script, HasSubstr("complete -c stoker -n '__stoker_is' -a 'run' -d 'Run a job'\n"
                                "complete -c stoker -n '__stoker_is' -a 'data' -d 'pack, wait'\n"));
  EXPECT_THAT(script,
              HasSubstr("complete -c stoker -n '__stoker_is run' -l json -d 'Print JSON'\n"
                        "complete -c stoker -n '__stoker_is run' -s j -l jobs -r -f -d 'Use N threads'\n"
                        "complete -c stoker -n '__stoker_is run' -l set -r -f -d 'Override a key'\n"
                        "complete -c stoker -n '__stoker_is run' -F\n"));
  EXPECT_THAT(
      script,
      EndsWith("complete -c stoker -n '__stoker_is data wait' -f -a '(__stoker_runs) "
               "(__fish_complete_directories (commandline -ct))'\n"
               "complete -c stoker -n '__stoker_is data wait; and contains -- -- (commandline -opc)' -F\n"));
}

TEST(FishCompletion, hostile_texts_are_quoted_and_choices_twice) {
  EXPECT_THAT(fish_completion(test_program()),
              HasSubstr(R"(complete -c stoker -n '__stoker_is data pack' -l format -r -f )"
                        R"(-a 'tar \'o\\\'dd $(id)\'' -d 'It\'s "$HOME" `id` \\ [x]: y')"));
}

}  // namespace
}  // namespace stoker::manual
