#include "cli/arguments.h"

#include <gtest/gtest.h>

#include "cli/output.h"

namespace stoker::cli {
namespace {

// Runs a parse with both streams captured.
class ArgumentsTest : public testing::Test {
 protected:
  std::optional<int> parse(std::vector<std::string> words) {
    std::FILE* file = std::tmpfile();
    Output out(OutputMode::text, file, file);
    const auto code = arguments.parse(words, out);
    printed.assign(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    EXPECT_EQ(std::fread(printed.data(), 1, printed.size(), file), printed.size());
    std::fclose(file);
    return code;
  }

  ArgumentsTest() {
    arguments.positional("SOURCE", &source, "the folder");
    arguments.optional_positional("OUT", &target, "where to");
    arguments.flag("--strict", &strict, "be strict");
    arguments.option("-j,--jobs", &jobs, "N", "threads");
    arguments.option("--size", &size, "SIZE", "how large");
    arguments.option("--set", &sets, "KEY=VALUE", "override");
    arguments.rest("COMMAND", &command, "what to run");
    arguments.example("stoker test x");
  }

  std::string source, target;
  bool strict = false;
  std::int64_t jobs = 2;
  std::optional<ByteCount> size;
  std::vector<std::string> sets, command;
  std::string printed;
  Arguments arguments{"test", "Tests."};
};

TEST_F(ArgumentsTest, fills_every_kind_of_target) {
  EXPECT_EQ(parse({"in", "--strict", "-j", "4", "--size=64MB", "--set", "a=1", "--set", "b=2", "--", "cmd",
                   "--flag"}),
            std::nullopt);
  EXPECT_EQ(source, "in");
  EXPECT_TRUE(strict);
  EXPECT_EQ(jobs, 4);
  EXPECT_EQ(size->value, 64'000'000u);
  EXPECT_EQ(sets, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(command, (std::vector<std::string>{"cmd", "--flag"}));
}

TEST_F(ArgumentsTest, option_before_a_word_takes_one_value_only) {
  EXPECT_EQ(parse({"-j", "4", "in", "--set", "a=1", "out"}), std::nullopt) << printed;
  EXPECT_EQ(jobs, 4);
  EXPECT_EQ(source, "in");
  EXPECT_EQ(target, "out");
  EXPECT_EQ(sets, (std::vector<std::string>{"a=1"}));
}

TEST_F(ArgumentsTest, unknown_option_is_refused_with_a_suggestion) {
  EXPECT_EQ(parse({"in", "--strct"}), 2);
  EXPECT_EQ(printed, "test: unknown option '--strct'; did you mean '--strict'?\n  try: stoker test --help\n");
}

TEST_F(ArgumentsTest, missing_and_extra_words_are_refused) {
  EXPECT_EQ(parse({}), 2);
  EXPECT_EQ(printed, "test: SOURCE is missing\n  try: stoker test --help\n");
  EXPECT_EQ(parse({"a", "b", "c"}), 2);
  EXPECT_EQ(printed, "test: unexpected 'c'\n  try: stoker test --help\n");
}

TEST_F(ArgumentsTest, bad_value_names_option_and_value) {
  EXPECT_EQ(parse({"a", "--size", "64"}), 2);
  EXPECT_EQ(printed, "test: --size: '64' has no unit (write 64GB, 64MiB, ...)\n");
  EXPECT_EQ(parse({"a", "-j", "two"}), 2);
  EXPECT_EQ(printed, "test: -j,--jobs: 'two' is not a whole number\n");
}

TEST_F(ArgumentsTest, an_output_that_receives_the_description_ends_the_command) {
  manual::CommandText received;
  Output receiver(&received);
  EXPECT_EQ(arguments.parse(std::vector<std::string>{"unused", "--strct"}, receiver), 0);
  EXPECT_EQ(received.name, "test");
  EXPECT_TRUE(source.empty());
  ASSERT_EQ(received.arguments.size(), 2u);
  EXPECT_TRUE(received.arguments[0].is_required);
  EXPECT_TRUE(received.arguments[0].value.files);
  EXPECT_FALSE(received.arguments[1].is_required);
  ASSERT_EQ(received.options.size(), 6u);  // --json first, --help last
  EXPECT_EQ(received.options[2].names, "-j,--jobs");
  EXPECT_EQ(received.options[2].shown_default, "2");
  EXPECT_TRUE(received.options[4].is_repeatable);
}

TEST_F(ArgumentsTest, choices_belong_to_the_declaration_before) {
  std::string form = "tar";
  constexpr std::string_view kForms[] = {"tar", "zarr"};
  arguments.option("--format", &form, "KIND", "which");
  arguments.choices(kForms);
  const manual::OptionText option = arguments.description().options[5];
  EXPECT_EQ(option.names, "--format");
  EXPECT_EQ(option.value.choices, (std::vector<std::string>{"tar", "zarr"}));
}

TEST_F(ArgumentsTest, help_shows_defaults_and_example) {
  EXPECT_EQ(parse({"--help"}), 0);
  EXPECT_NE(printed.find("Usage: stoker test SOURCE [OUT] [options] -- COMMAND...\n"), std::string::npos)
      << printed;
  EXPECT_NE(printed.find("  -j, --jobs N     threads [2]\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("Example:\n  stoker test x\n"), std::string::npos) << printed;
}

}  // namespace
}  // namespace stoker::cli
