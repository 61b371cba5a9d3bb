#include "report/next_request.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stoker::report {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

RunFacts done_run() {
  RunFacts facts;
  facts.state_word = "done";
  facts.job.emplace();
  facts.job->resources.cpus_per_rank = 8;
  facts.efficiency = Efficiency{.cpu_used_s = 100,
                                .cpu_reserved_s = 800,
                                .memory_peak = 3 * kGiB,
                                .memory_node = "n1",
                                .memory_asked = 16 * kGiB,
                                .seconds = 1800,
                                .time_limit = 7200};
  return facts;
}

TEST(NextRequest, is_what_was_used_and_a_quarter_more) {
  const RunFacts facts = done_run();
  EXPECT_EQ(next_time(facts).setting, "resources.time: 40m");
  EXPECT_EQ(next_time(facts).option, "#SBATCH --time=00:40:00");
  EXPECT_EQ(next_memory(facts).setting, "resources.memory_per_node: 4GiB");
  EXPECT_EQ(next_memory(facts).option, "#SBATCH --mem=4G");
  EXPECT_EQ(next_cpus(facts).setting, "resources.cpus_per_rank: 2");
  EXPECT_EQ(next_cpus(facts).option, "#SBATCH --cpus-per-task=2");
}

TEST(NextRequest, nothing_is_advised_where_most_was_used) {
  RunFacts facts = done_run();
  facts.efficiency->seconds = 3600;
  facts.efficiency->memory_peak = 8 * kGiB;
  facts.efficiency->cpu_used_s = 400;
  EXPECT_TRUE(next_time(facts).is_empty());
  EXPECT_TRUE(next_memory(facts).is_empty());
  EXPECT_TRUE(next_cpus(facts).is_empty());
}

TEST(NextRequest, memory_that_was_nearly_full_grows) {
  RunFacts facts = done_run();
  facts.efficiency->memory_peak = 15.5 * kGiB;
  EXPECT_EQ(next_memory(facts).option, "#SBATCH --mem=20G");
}

TEST(NextRequest, a_failed_run_gives_no_advice_about_time_and_memory) {
  RunFacts facts = done_run();
  facts.state_word = "failed";
  EXPECT_TRUE(next_time(facts).is_empty());
  EXPECT_TRUE(next_memory(facts).is_empty());
}

TEST(NextRequest, unknown_values_and_default_limits_give_no_advice) {
  RunFacts facts = done_run();
  facts.efficiency->is_memory_limit = true;
  facts.efficiency->time_limit = NAN;
  facts.efficiency->cpu_used_s = NAN;
  EXPECT_TRUE(next_time(facts).is_empty());
  EXPECT_TRUE(next_memory(facts).is_empty());
  EXPECT_TRUE(next_cpus(facts).is_empty());
  facts.efficiency.reset();
  EXPECT_TRUE(next_cpus(facts).is_empty());
}

TEST(NextRequest, a_short_limit_is_left_alone) {
  RunFacts facts = done_run();
  facts.efficiency->seconds = 10;
  facts.efficiency->time_limit = 300;
  EXPECT_TRUE(next_time(facts).is_empty());
}

}  // namespace
}  // namespace stoker::report
