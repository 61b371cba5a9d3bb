#include "stoker/exceptions.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

TEST(Exceptions, keeps_the_first_line_of_the_exception) {
  EXPECT_EQ(
      first_line(std::runtime_error("Target 12 is out of bounds.\nException raised from nll_loss at ...")),
      "Target 12 is out of bounds.");
}

TEST(Exceptions, drops_source_positions_and_advice_of_libraries) {
  EXPECT_EQ(first_line(std::runtime_error(
                "[../third_party/gloo/pair.cc:534] Read error [127.0.0.1]:44750: Connection "
                "reset by peer. This is typically caused by a remote worker hanging")),
            "Read error [127.0.0.1]:44750: Connection reset by peer");
}

TEST(Exceptions, turns_an_exception_into_an_error_of_the_given_code) {
  const Status status =
      catch_exceptions(Code::internal, "model", [] { throw std::runtime_error("bad\x01thing"); });
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_EQ(status.message(), "model: bad\\x01thing");
}

TEST(Exceptions, keeps_the_code_of_a_status_that_was_thrown) {
  const Status status = catch_exceptions(
      Code::internal, "step", [] { throw StatusError(timeout("rank 1 did not respond").cure("wait")); });
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(status.to_string(), "step: rank 1 did not respond\n  try: wait");
}

TEST(Exceptions, passes_values_and_errors_through) {
  EXPECT_EQ(*catch_exceptions(Code::internal, "x", []() -> Result<int> { return 3; }), 3);
  EXPECT_EQ(catch_exceptions(Code::internal, "x", [] { return invalid("own words"); }).message(),
            "own words");
}

}  // namespace
}  // namespace stoker::train
