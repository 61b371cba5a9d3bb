#include "manual/zsh_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manual/test_program.h"

namespace stoker::manual {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ZshCompletion, each_command_has_specifications_of_its_options_and_arguments) {
  const std::string script = zsh_completion(test_program());
  EXPECT_THAT(script,
              StartsWith("#compdef stoker\n# Completion of stoker 1.2 for zsh: stoker completion zsh\n"));
  EXPECT_THAT(script, HasSubstr("_stoker__run() {\n"
                                "  _arguments -S : \\\n"
                                "    '--json[Print JSON]' \\\n"
                                "    '(-j --jobs)-j[Use N threads]:N: ' \\\n"
                                "    '(-j --jobs)--jobs=[Use N threads]:N: ' \\\n"
                                "    '*--set=[Override a key]:KEY=VALUE: ' \\\n"
                                "    :JOB:_files\n"
                                "}\n"));
  EXPECT_THAT(script, HasSubstr("_stoker__data_wait() {\n"
                                "  _arguments -S : \\\n"
                                "    '--runs=[Folder with the runs]:DIR:_files -/' \\\n"
                                "    '*:RUN|DIR:_stoker_runs_folders'\n"
                                "}\n"));
}

TEST(ZshCompletion, hostile_texts_are_quoted_for_the_shell_and_for_arguments) {
  const std::string script = zsh_completion(test_program());
  EXPECT_THAT(
      script,
      HasSubstr(R"(    '--format=[It'\''s "$HOME" `id` \\ \[x\]\: y]:KIND:(tar o\'\''dd\ \$\(id\))' \)"));
  EXPECT_THAT(script, HasSubstr(R"(    '::OUT[\:DIR]:_files -/')"));
  EXPECT_THAT(script, HasSubstr(R"(          'pack:It'\''s "$HOME" `id` \\ [x]\: y')"));
}

}  // namespace
}  // namespace stoker::manual
