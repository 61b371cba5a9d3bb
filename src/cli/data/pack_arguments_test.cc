#include "cli/data/pack_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

using ::testing::HasSubstr;

TEST(PackArguments, percentages_need_a_percent_sign_and_a_range) {
  EXPECT_EQ(parse_percent("12.5%"), 12.5);
  EXPECT_EQ(parse_percent("0%"), 0);
  EXPECT_EQ(parse_percent("100 %"), 100);
  for (const char* text : {"", "%", "5", "-1%", "101%", "nan%", "a%"})
    EXPECT_EQ(parse_percent(text), std::nullopt) << text;
}

TEST(PackArguments, an_invalid_limit_of_left_out_files_names_the_option) {
  EXPECT_EQ(parse_max_left_out("0.5%").value(), 0.5);
  EXPECT_EQ(parse_max_left_out("5").error().message(),
            "data pack: --max-left-out: '5' is not a percentage (as in 1% or 0.5%)");
}

TEST(PackArguments, split_shares_are_percentages_or_fractions_that_add_up) {
  EXPECT_TRUE(parse_split_shares("").value().empty());
  const auto shares = parse_split_shares("train=90%, val=0.1").value();
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].name, "train");
  EXPECT_DOUBLE_EQ(shares[0].share, 0.9);
  EXPECT_EQ(shares[1].name, "val");
  EXPECT_DOUBLE_EQ(shares[1].share, 0.1);
  for (const char* text : {"train", "=90%", "a b=50%", "train=2", "train=-1%", "train=x"})
    EXPECT_THAT(parse_split_shares(text).error().message(), HasSubstr("is not NAME=SHARE")) << text;
  EXPECT_THAT(parse_split_shares("a=50%,a=50%").error().message(), HasSubstr("appears twice"));
  EXPECT_THAT(parse_split_shares("a=50%,b=49%").error().message(), HasSubstr("add up to 99 %"));
}

TEST(PackArguments, a_part_is_a_number_out_of_a_count) {
  EXPECT_FALSE(parse_part("").value().has_value());
  const auto part = parse_part("2/8").value();
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->number, 2u);
  EXPECT_EQ(part->count, 8u);
  for (const char* text : {"2", "0/8", "9/8", "1/10000", "a/8", "2/", "/8", "-1/8"})
    EXPECT_THAT(parse_part(text).error().message(), HasSubstr("is not I/N")) << text;
}

}  // namespace
}  // namespace stoker::cli
