#include "base/exit_code.h"

#include <gtest/gtest.h>

namespace stoker::exit_code {
namespace {

TEST(ExitCode, maps_each_kind_of_error) {
  EXPECT_EQ(from_status(Status()), kOk);
  EXPECT_EQ(from_status(invalid("a")), kUsage);
  EXPECT_EQ(from_status(unavailable("a")), kUnavailable);
  EXPECT_EQ(from_status(internal("a")), kBug);
  EXPECT_EQ(from_status(cancelled("a")), kInterrupted);
  EXPECT_EQ(from_status(not_found("a")), kFailed);
  EXPECT_EQ(from_status(timeout("a")), kFailed);
}

// Scripts and docs/exit-codes.md depend on the numbers.
TEST(ExitCode, has_the_documented_numbers) {
  EXPECT_EQ(kUsage, 2);
  EXPECT_EQ(kUnavailable, 3);
  EXPECT_EQ(kBug, 70);
  EXPECT_EQ(kStoppedAfterCheckpoint, 75);
  EXPECT_EQ(kTimeout, 124);
  EXPECT_EQ(kInterrupted, 130);
  EXPECT_EQ(kOutOfMemory, 137);
}

TEST(ExitCode, texts_are_in_ascending_order_without_duplicates) {
  const auto all = texts();
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(all.front().code, kOk);
  EXPECT_EQ(all.back().code, kOutOfMemory);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].code, all[i].code);
}

}  // namespace
}  // namespace stoker::exit_code
