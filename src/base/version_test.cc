#include "base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Version, describes_the_build_with_its_version_and_commit) {
  EXPECT_THAT(build_description("1a2b3c4d5e6f-dirty"),
              StartsWith(std::string(version()) + " (commit 1a2b3c4d5e6f-dirty, "));
}

TEST(Version, leaves_out_an_unknown_commit) {
  const std::string without = build_description("");
  const std::string start = std::string(version()) + " (";
  ASSERT_THAT(without, StartsWith(start));
  EXPECT_EQ(build_description("c0ffee"), start + "commit c0ffee, " + without.substr(start.size()));
}

TEST(Version, names_the_machine_the_compiler_and_the_libraries) {
  const std::string text = build_description("");
#if defined(__x86_64__)
  EXPECT_THAT(text, HasSubstr("(x86_64, "));
#endif
#if defined(__clang__)
  EXPECT_THAT(text, HasSubstr(", clang " + std::to_string(__clang_major__) + " lib"));
#else
  EXPECT_THAT(text, HasSubstr(", gcc " + std::to_string(__GNUC__) + " libstdc++"));
#endif
#if defined(__GLIBC__)
  EXPECT_THAT(text, EndsWith(", glibc ≥ 2." + std::to_string(__GLIBC_MINOR__) + ")"));
#endif
}

}  // namespace
}  // namespace stoker
