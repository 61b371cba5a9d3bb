#include "observe/idle_gpus.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

class GpuSamples {
 public:
  GpuSamples() : attempt(folder_.path(), 1) {}
  /// One row a second from 1, with the values of each GPU.
  void node(int number, std::vector<std::string> busy) {
    std::string text = "time,gpu0.busy_percent,gpu1.busy_percent\n";
    for (std::size_t i = 0; i < busy.size(); ++i) text += format("{},{}\n", i + 1, busy[i]);
    STOKER_CHECK(write_file(attempt.system(number), text).ok());
  }

 private:
  TempDirectory folder_;

 public:
  record::Attempt attempt;
};

TEST(IdleGpus, counts_from_the_last_use_of_any_gpu) {
  GpuSamples samples;
  samples.node(0, {"90,0", "0,0", "4.9,0", "0,0"});
  const auto idle = idle_gpus(samples.attempt, 10);
  ASSERT_TRUE(idle);
  EXPECT_EQ(idle->gpus, 2u);
  EXPECT_EQ(idle->seconds, 9);
  samples.node(1, {"0,0", "0,0", "0,60", "0,0"});
  EXPECT_EQ(idle_gpus(samples.attempt, 10)->seconds, 7);
  EXPECT_EQ(idle_gpus(samples.attempt, 10)->gpus, 4u);
}

TEST(IdleGpus, gpus_that_were_never_used_are_idle_since_the_first_sample) {
  GpuSamples samples;
  samples.node(0, {"0,0", "0,0"});
  EXPECT_EQ(idle_gpus(samples.attempt, 61)->seconds, 60);
}

TEST(IdleGpus, unknown_use_is_not_idleness) {
  GpuSamples samples;
  EXPECT_FALSE(idle_gpus(samples.attempt, 10));  // no samples
  samples.node(0, {"0,nan", "0,nan"});
  EXPECT_FALSE(idle_gpus(samples.attempt, 10));
  samples.node(0, {"0,0", "nan,0", "0,0"});
  EXPECT_EQ(idle_gpus(samples.attempt, 10)->seconds, 8);  // since the row without a value
  samples.node(0, {"0,0", "0,0"});
  EXPECT_FALSE(idle_gpus(samples.attempt, 100));  // its samples have stopped
  STOKER_CHECK(write_file(samples.attempt.system(0), "time,job_cpu_percent\n1,5\n").ok());
  EXPECT_FALSE(idle_gpus(samples.attempt, 2));  // no GPUs
  STOKER_CHECK(write_file(samples.attempt.system(0), "\0\0garbage").ok());
  EXPECT_FALSE(idle_gpus(samples.attempt, 2));
}

}  // namespace
}  // namespace stoker::observe
