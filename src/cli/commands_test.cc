#include "cli/commands.h"

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/output.h"

namespace stoker::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Printed {
  int code = 0;
  std::string text;
};

Printed run(std::vector<std::string> words) {
  std::FILE* file = std::tmpfile();
  Output out(OutputMode::text, file, file);
  Printed printed{.code = dispatch(words, out), .text = ""};
  printed.text.assign(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(printed.text.data(), 1, printed.text.size(), file), printed.text.size());
  std::fclose(file);
  return printed;
}

TEST(Commands, names_are_unique_and_summaries_start_with_a_verb) {
  std::set<std::string_view> names;
  for (const CommandEntry& entry : commands()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(entry.summary[0] >= 'A' && entry.summary[0] <= 'Z') << entry.summary;
    EXPECT_NE(entry.summary.back(), '.') << entry.summary;
  }
}

TEST(Commands, help_is_an_argument_or_a_command) {
  const Printed help = run({"data", "info", "--help"});
  EXPECT_EQ(help.code, exit_code::kOk);
  EXPECT_THAT(help.text, HasSubstr("Usage: stoker data info"));
  EXPECT_EQ(run({"help", "data", "info"}).text, help.text);
  EXPECT_EQ(run({"--help"}).code, exit_code::kOk);
  EXPECT_EQ(run({}).code, exit_code::kUsage);
}

TEST(Commands, a_group_lists_its_commands) {
  const Printed group = run({"data"});
  EXPECT_EQ(group.code, exit_code::kUsage);
  EXPECT_THAT(group.text, HasSubstr("data pack"));
  EXPECT_THAT(group.text, ::testing::Not(HasSubstr("lab up")));
  EXPECT_EQ(run({"data", "--help"}).text, group.text);
}

TEST(Commands, an_unknown_command_gets_a_suggestion) {
  EXPECT_EQ(run({"statsu"}).text, "unknown command 'statsu'; did you mean 'status'?\n  try: stoker --help\n");
  EXPECT_EQ(run({"data", "pakc"}).text,
            "data: unknown command 'pakc'; did you mean 'pack'?\n  try: stoker data --help\n");
  EXPECT_EQ(run({"statsu"}).code, exit_code::kUsage);
}

TEST(Commands, every_command_describes_itself_without_running) {
  const manual::ProgramText program = program_text();
  ASSERT_EQ(program.commands.size(), commands().size());
  for (std::size_t i = 0; i < commands().size(); ++i) {
    const manual::CommandText& command = program.commands[i];
    EXPECT_EQ(command.name, commands()[i].name);
    EXPECT_EQ(command.headline, commands()[i].summary);
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_FALSE(command.examples.empty()) << command.name;
    ASSERT_FALSE(command.options.empty()) << command.name;
    EXPECT_EQ(command.options.front().names, "--json");
    EXPECT_EQ(command.options.back().names, "--help");
  }
}

TEST(Commands, descriptions_render_the_help) {
  for (const manual::CommandText& command : program_text().commands) {
    std::vector<std::string> words = {"help"};
    for (const std::string_view word : split(command.name, ' ')) words.emplace_back(word);
    // A group that is a command itself also lists its commands.
    EXPECT_THAT(run(words).text, StartsWith(manual::help_text(command))) << command.name;
  }
}

TEST(Commands, json_is_an_option_only_before_a_double_dash) {
  EXPECT_TRUE(wants_json(std::vector<std::string>{"status", "--json"}));
  EXPECT_FALSE(wants_json(std::vector<std::string>{"rank", "--", "--json"}));
}

}  // namespace
}  // namespace stoker::cli
