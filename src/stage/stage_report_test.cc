#include "stage/stage_report.h"

#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

TEST(StageReport, is_read_back_unchanged) {
  const StageReport answer{.node = 1,
                           .host = "n2",
                           .phase = StagePhase::rest,
                           .has_rest = true,
                           .folder = "/l/a",
                           .files = 7,
                           .bytes = 9,
                           .seconds = 1.5,
                           .fingerprint = 0xfedcba9876543210};
  const auto read = parse_stage_report(to_line(answer));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->node, 1);
  EXPECT_EQ(read->host, "n2");
  EXPECT_EQ(read->phase, StagePhase::rest);
  EXPECT_TRUE(read->has_rest);
  EXPECT_EQ(read->files, 7u);
  EXPECT_EQ(read->fingerprint, 0xfedcba9876543210);
  EXPECT_TRUE(read->problem.ok());
}

TEST(StageReport, a_problem_keeps_its_kind_and_cure) {
  StageReport answer{.host = "n1"};
  answer.problem = no_space("a.tar: takes 3 GB").cure("less");
  const auto read = parse_stage_report(to_line(answer));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->problem.code(), Code::no_space);
  EXPECT_EQ(read->problem.to_string(), "a.tar: takes 3 GB\n  try: less");
}

TEST(StageReport, other_lines_are_none) {
  for (const char* line :
       {"", "srun: job 7 queued", "{}", "[1]", "{\"node\":1}", "{\"format\":\"stoker-stage\""})
    EXPECT_FALSE(parse_stage_report(line).has_value()) << line;
}

}  // namespace
}  // namespace stoker::stage
