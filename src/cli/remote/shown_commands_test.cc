#include "cli/remote/shown_commands.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"

namespace stoker::cli {
namespace {

using ::testing::ElementsAreArray;

std::string shown(std::string_view text) { return with_host_options(text, "--host login:exp"); }

TEST(ShownCommands, of_a_host_name_the_host) {
  EXPECT_EQ(shown("stoker wait last"), "stoker wait --host login:exp last");
  EXPECT_EQ(shown("  next  stoker status last, stoker cancel last"),
            "  next  stoker status --host login:exp last, stoker cancel --host login:exp last");
  EXPECT_EQ(shown("leave it out, then `stoker resume r1`"),
            "leave it out, then `stoker resume --host login:exp r1`");
  EXPECT_EQ(shown("see: stoker top"), "see: stoker top --host login:exp");
}

TEST(ShownCommands, other_text_is_unchanged) {
  for (const char* text : {"", "stoker", "stoker ", "stoker check job.yaml", "stoker checkpoint list",
                           "/opt/stoker wait last", "my-stoker logs", "stoker  wait", "stoker waiting"})
    EXPECT_EQ(shown(text), text);
}

TEST(ShownCommands, are_the_commands_with_the_option) {
  std::vector<std::string> with_option;
  for (const manual::CommandText& command : program_text().commands)
    for (const manual::OptionText& option : command.options)
      if (option.names == "--host") with_option.push_back(command.name);
  std::sort(with_option.begin(), with_option.end());
  EXPECT_THAT(commands_with_host(), ElementsAreArray(with_option));
}

}  // namespace
}  // namespace stoker::cli
