#include "track/run/point_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::track {
namespace {

/// A run folder whose files a test writes.
class ReadRun : public ::testing::Test {
 protected:
  ReadRun() : run_(make_run(box_.path())) {}

  static record::RunFolder make_run(const Path& runs) {
    record::RunDescription what;
    what.name = "test";
    what.created = 1000;
    auto run = record::RunFolder::create(runs, what, "name: test\n");
    EXPECT_TRUE(run.ok());
    EXPECT_TRUE(run->start_attempt("name: test\n").ok());
    return *run;
  }
  void append(const std::string& name, const std::string& text) {
    auto file = File::open_append(run_.folder() / "attempts/1" / name);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(text).ok());
  }
  // Reads to the end in batches; returns "name step value" of each point.
  std::vector<std::string> read_all(std::size_t limit) {
    std::vector<std::string> lines;
    reader_.begin_pass(done_);
    for (;;) {
      const PointBatch batch = reader_.read(done_, limit);
      if (batch.is_empty()) return lines;
      for (const TrackedPoint& point : batch.points) lines.push_back(text_of(point));
      damaged_ += batch.damaged;
      for (const auto& [key, at] : batch.ends) done_.insert_or_assign(key, at);
    }
  }
  static std::string text_of(const TrackedPoint& point) {
    return format("{} {} {}", name_with_rank(point), point.step ? format("{}", *point.step) : "-",
                  point.value);
  }

  TempDirectory box_;
  record::RunFolder run_;
  PointReader reader_{run_};
  Positions done_;
  std::size_t damaged_ = 0;
};

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(ReadRun, points_of_all_ranks_have_their_rank_in_the_name) {
  append("points-0000.csv", "time,step,value,metric\n1001.5,3,0.5,val/loss, top\n,,7,best\n");
  append("points-0012.csv", ",3,0.25,loss\n");
  EXPECT_THAT(read_all(100), ElementsAre("val/loss, top 3 0.5", "best - 7", "rank12/loss 3 0.25"));
}

TEST_F(ReadRun, an_incomplete_line_is_read_when_it_is_complete) {
  append("points-0000.csv", ",1,1,loss\n,2,");
  EXPECT_THAT(read_all(100), ElementsAre("loss 1 1"));
  append("points-0000.csv", "2,loss\n");
  EXPECT_THAT(read_all(100), ElementsAre("loss 2 2"));
  EXPECT_THAT(read_all(100), IsEmpty());
}

TEST_F(ReadRun, damaged_lines_are_counted) {
  append("points-0000.csv", ",1,1,loss\nnonsense\n" + std::string(3 << 20, 'x') + "\n,2,2,loss\n");
  EXPECT_THAT(read_all(1), ElementsAre("loss 1 1", "loss 2 2"));
  EXPECT_GE(damaged_, 2u);
}

TEST_F(ReadRun, rows_of_the_trainer_have_a_point_for_each_recorded_column) {
  append("metrics-0000.csv", "time,epoch,step,loss,top1\n1002,0,1,nan,nan\n");
  append("metrics-0001.csv", "time,epoch,step,loss,top1\n1002,0,1,3,0.5\n");
  append("epochs.csv", "epoch,step,train_loss,val_loss\n0,1,2.5,nan\n");
  EXPECT_THAT(read_all(100),
              testing::UnorderedElementsAre("epoch 1 0", "loss 1 nan", "rank1/epoch 1 0", "rank1/loss 1 3",
                                            "rank1/top1 1 0.5", "train_loss 1 2.5"));
}

TEST_F(ReadRun, samples_of_a_node_are_thinned_to_one_in_ten_seconds) {
  std::string rows = "time,host_cpu_percent,gpu0.power_w\n";
  for (int i = 0; i < 25; ++i) rows += format("{},{},nan\n", 1000 + i, i);
  append("system-0003.csv", rows);
  const auto expected =
      ElementsAre("system/node3/host_cpu_percent 0 0", "system/node3/host_cpu_percent 10 10",
                  "system/node3/host_cpu_percent 20 20");
  EXPECT_THAT(read_all(1), expected);
}

TEST_F(ReadRun, metrics_of_the_program_replace_the_same_metrics_of_its_log) {
  append("points-0000-log.csv", ",1,1,loss\n,1,5,lr\n");
  append("points-0000.csv", ",1,2,loss\n");
  EXPECT_THAT(read_all(100), ElementsAre("loss 1 2", "lr 1 5"));
  // Known again after a restart.
  append("points-0000-log.csv", ",2,1,loss\n,2,6,lr\n");
  reader_ = PointReader(run_);
  EXPECT_THAT(read_all(100), ElementsAre("lr 2 6"));
}

TEST_F(ReadRun, a_batch_is_read_again_between_its_positions) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += format("{},{},{},loss\n", 1000 + i, i, i / 7.0);
  append("points-0000.csv", lines);
  append("system-0000.csv", "time,a,b\n1000,1,2\n1001,3,4\n1011,5,6\n");
  reader_.begin_pass(done_);
  for (;;) {
    const PointBatch batch = reader_.read(done_, 999);
    if (batch.is_empty()) break;
    PointReader other(run_);
    other.begin_pass(done_);
    const PointBatch again = other.read_again(done_, batch.ends);
    std::vector<std::string> first, second;
    for (const auto& point : batch.points) first.push_back(text_of(point));
    for (const auto& point : again.points) second.push_back(text_of(point));
    ASSERT_EQ(first, second);
    for (const auto& [key, at] : batch.ends) done_.insert_or_assign(key, at);
  }
  EXPECT_EQ(done_.at("attempts/1/points-0000.csv").offset, lines.size());
}

}  // namespace
}  // namespace stoker::track
