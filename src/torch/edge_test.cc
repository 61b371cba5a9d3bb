#include "torch/edge.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace stoker::torch {
namespace {

TEST(Edge, keeps_the_first_line_of_what_was_thrown) {
  EXPECT_EQ(brief(std::runtime_error("Target 12 is out of bounds.\nException raised from nll_loss at ...")),
            "Target 12 is out of bounds.");
}

TEST(Edge, drops_positions_in_others_sources_and_their_advice) {
  EXPECT_EQ(
      brief(std::runtime_error("[../third_party/gloo/pair.cc:534] Read error [127.0.0.1]:44750: Connection "
                               "reset by peer. This is typically caused by a remote worker hanging")),
      "Read error [127.0.0.1]:44750: Connection reset by peer");
}

TEST(Edge, turns_an_exception_into_an_error_of_the_given_code) {
  const Status status = caught(Code::internal, "model", [] { throw std::runtime_error("bad\x01thing"); });
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_EQ(status.message(), "model: bad\\x01thing");
}

TEST(Edge, keeps_the_code_of_a_status_that_was_thrown) {
  const Status status = caught(Code::internal, "step",
                               [] { throw StatusError(timeout("rank 1 gave no answer").cure("wait")); });
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_EQ(status.to_string(), "step: rank 1 gave no answer\n  try: wait");
}

TEST(Edge, passes_values_and_errors_through) {
  EXPECT_EQ(*caught(Code::internal, "x", []() -> Result<int> { return 3; }), 3);
  EXPECT_EQ(caught(Code::internal, "x", [] { return invalid("own words"); }).message(), "own words");
}

}  // namespace
}  // namespace stoker::torch
