#include "stoker/status.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace stoker {
namespace {

Result<int> half(int n) {
  if (n % 2) return invalid("{}: not even", n).cure("use {}", n + 1);
  return n / 2;
}

Result<int> quarter(int n) {
  STOKER_ASSIGN_OR_RETURN(first, half(n));
  return half(first);
}

TEST(Status, carries_code_message_and_cure) {
  const Status status = half(3).status();
  EXPECT_EQ(status.code(), Code::invalid);
  EXPECT_EQ(status.to_string(), "3: not even\n  try: use 4");
}

TEST(Status, context_precedes_the_message_and_keeps_the_cure) {
  EXPECT_EQ(half(3).status().with_context("run 12").to_string(), "run 12: 3: not even\n  try: use 4");
  EXPECT_TRUE(Status().with_context("run 12").ok());
}

TEST(Status, errors_pass_through_ok_or_return) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).status().message(), "3: not even");
}

TEST(Status, errno_maps_to_the_code_that_determines_the_exit) {
  EXPECT_EQ(posix_error("a", ENOENT).to_string(), "a: no such file or directory");
  EXPECT_EQ(posix_error("a", ENOENT).code(), Code::not_found);
  EXPECT_EQ(posix_error("a", EDQUOT).code(), Code::no_space);
  EXPECT_EQ(posix_error("a", EACCES).code(), Code::invalid);
  EXPECT_EQ(posix_error("a", EIO).code(), Code::unavailable);
}

}  // namespace
}  // namespace stoker
