#include "observe/progress.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

TEST(Progress, comes_from_the_last_lines_of_a_long_file) {
  TempDirectory box;
  const record::Attempt attempt(box.path(), 1);
  std::string text = "time,epoch,step,samples,loss\n";
  for (int step = 1; step <= 5000; ++step)
    text += format("{},{},{},64,{}\n", 100 + step * 0.5, step / 100, step, 2.5);
  ASSERT_TRUE(write_file(attempt.metrics(0), text + "2600.5,50,50").ok());
  const RunProgress progress = read_progress(attempt, 2);
  EXPECT_EQ(progress.epoch, 50);
  EXPECT_EQ(progress.step, 5000);
  EXPECT_EQ(progress.loss, 2.5);
  EXPECT_NEAR(*progress.samples_per_s, 256, 1e-6);
}

TEST(Progress, is_empty_for_a_command_that_records_nothing) {
  TempDirectory box;
  const RunProgress progress = read_progress(record::Attempt(box.path(), 1), 2);
  EXPECT_FALSE(progress.step || progress.samples_per_s || progress.validation_top1);
}

TEST(Progress, damaged_files_are_empty_values) {
  TempDirectory box;
  const record::Attempt attempt(box.path(), 1);
  ASSERT_TRUE(write_file(attempt.metrics(0), std::string(100000, '\xff')).ok());
  ASSERT_TRUE(write_file(attempt.epochs(), "epoch,val_top1\n").ok());
  const RunProgress progress = read_progress(attempt, 2);
  EXPECT_FALSE(progress.step || progress.validation_top1);
}

}  // namespace
}  // namespace stoker::observe
