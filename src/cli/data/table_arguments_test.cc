#include "cli/data/table_arguments.h"

#include <cstdio>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/output.h"

namespace stoker::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<sources::TableOptions> table_options(std::vector<std::string> words) {
  TableArguments table;
  Arguments arguments("test", "Tests.");
  table.declare(arguments);
  std::FILE* file = std::tmpfile();
  Output out(OutputMode::text, file, file);
  EXPECT_EQ(arguments.parse(words, out), std::nullopt);
  std::fclose(file);
  return table.options("data pack");
}

TEST(TableArguments, are_unset_by_default) { EXPECT_FALSE(table_options({}).value().is_set()); }

TEST(TableArguments, columns_are_separated_by_commas_and_options) {
  EXPECT_THAT(table_options({"--columns", "a, b", "--columns=x_*"}).value().columns,
              ElementsAre("a", "b", "x_*"));
  EXPECT_EQ(table_options({"--columns", "a,,b"}).error().message(),
            "data pack: --columns: 'a,,b': empty column name");
}

TEST(TableArguments, missing_values_are_dropped_filled_or_refused) {
  using sources::MissingValues;
  EXPECT_EQ(table_options({}).value().missing, MissingValues::refuse);
  EXPECT_EQ(table_options({"--missing", "drop"}).value().missing, MissingValues::drop);
  EXPECT_EQ(table_options({"--missing", "nan"}).value().missing, MissingValues::fill);
  EXPECT_EQ(table_options({"--missing", "-1"}).value().missing, MissingValues::fill);
  EXPECT_THAT(table_options({"--missing", "none"}).error().message(),
              HasSubstr("--missing: 'none' is neither drop, nan nor a number"));
}

TEST(TableArguments, invalid_tensors_and_conditions_name_the_command) {
  EXPECT_THAT(table_options({"--tensor", "x"}).error().message(), HasSubstr("data pack: "));
  EXPECT_THAT(table_options({"--where", "width >="}).error().message(), HasSubstr("data pack: "));
  EXPECT_EQ(table_options({"--where", "width >= 224"}).value().where, "width >= 224");
}

}  // namespace
}  // namespace stoker::cli
