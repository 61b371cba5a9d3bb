#include "cli/data/choice.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

constexpr std::array<std::string_view, 2> kChecks = {"scan", "decode"};

TEST(Choice, returns_the_index_of_the_value) {
  EXPECT_EQ(parse_choice("data pack", "--check", "decode", kChecks).value(), 1u);
}

TEST(Choice, suggests_a_value_and_requires_one) {
  EXPECT_EQ(parse_choice("data pack", "--check", "scna", kChecks).error().message(),
            "data pack: --check: unknown value 'scna'; did you mean 'scan'?");
  EXPECT_EQ(parse_choice("data pack", "--check", "", kChecks).error().message(),
            "data pack: --check is required (scan, decode)");
}

TEST(Choice, empty_arguments_are_refused_with_their_option) {
  const auto check = [](std::vector<std::string> words) {
    const Status status = check_no_empty_arguments("data pack", words);
    return status.ok() ? "" : std::string(status.message());
  };
  EXPECT_EQ(check({"in", "out", "--for", "ranks=1"}), "");
  EXPECT_EQ(check({"in", "--for="}), "data pack: --for: is empty");
  EXPECT_EQ(check({"in", "--for", ""}), "data pack: --for: is empty");
  EXPECT_EQ(check({"in", ""}), "data pack: empty argument ('')");
  EXPECT_EQ(check({""}), "data pack: empty argument ('')");
}

}  // namespace
}  // namespace stoker::cli
