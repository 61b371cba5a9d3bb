#include "diagnose/rank_lines.h"

#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> zeros(const TestLogs& logs, LogLayout layout = LogLayout::log_per_process) {
  std::vector<std::string> found;
  for (const Evidence& each : read_rank_lines(logs.facts.logs, layout).rank_zero)
    found.push_back(each.where + " " + each.text.english());
  return found;
}

bool has_progress(const std::string& line) {
  TestLogs logs;
  logs.add("rank-0000.log", line + "\n", 0);
  return read_rank_lines(logs.facts.logs, LogLayout::log_per_process).has_progress;
}

TEST(RankLines, each_process_with_rank_0_has_a_line) {
  TestLogs logs;
  logs.add("rank-0000.log", "start\nrank 0/4\nrank 1/4\nrank 0/4 ready\n", 0)
      .add("rank-0001.log", "[n2] Rank: 0, world_size: 4\n", 1)
      .add("rank-0002.log", "rank 2/4\n", 2)
      .add("slurm.log", "rank 0/4\n");
  EXPECT_THAT(zeros(logs),
              ElementsAre("rank-0000.log:2 rank 0/4", "rank-0001.log:1 [n2] Rank: 0, world_size: 4"));
}

TEST(RankLines, one_training_has_one_rank_0) {
  TestLogs logs;
  logs.add("rank-0000.log", "rank 0 of 2\n", 0).add("rank-0001.log", "rank 1 of 2, connected to rank 0\n", 1);
  EXPECT_THAT(zeros(logs), ElementsAre("rank-0000.log:1 rank 0 of 2"));
}

TEST(RankLines, a_rank_on_its_node_is_no_rank) {
  TestLogs logs;
  logs.add("rank-0000.log", "local rank 0/4\nnode rank 0/2\nlocal_rank 0/4\nrank 10/16\n", 0);
  EXPECT_THAT(zeros(logs), IsEmpty());
}

TEST(RankLines, equal_lines_of_a_shared_log_count) {
  TestLogs logs;
  logs.add("rank-0000.log", "n1: rank 0/4\nn1: rank 0/4 loads data\nn2: rank 0/4\nn2: rank 1/4\n", 0);
  EXPECT_THAT(zeros(logs, LogLayout::shared_log),
              ElementsAre("rank-0000.log:1 n1: rank 0/4", "rank-0000.log:3 n2: rank 0/4"));
}

TEST(RankLines, progress_is_an_epoch_a_step_or_a_loss_with_a_number) {
  for (const char* line :
       {"Epoch: [0][10/98]", "epoch 1", "step=20 lr=0.1", "loss: 2.301", "98/98 [00:10, 9.5it/s]"})
    EXPECT_TRUE(has_progress(line)) << line;
  for (const char* line : {"epochs: 90", "steps 1000", "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED",
                           "cross entropy loss", "waiting for rank 0"})
    EXPECT_FALSE(has_progress(line)) << line;
}

TEST(RankLines, a_log_longer_than_its_start_counts_as_progress) {
  EXPECT_TRUE(has_progress(std::string((1 << 20) + 1, 'x')));
  EXPECT_FALSE(has_progress(std::string(1000, 'x')));
}

TEST(RankLines, missing_logs_are_empty) {
  const RankLines lines =
      read_rank_lines({{.file = "/nonexistent", .name = "rank-0000.log", .rank = 0}}, LogLayout::shared_log);
  EXPECT_THAT(lines.rank_zero, IsEmpty());
  EXPECT_FALSE(lines.has_progress);
}

}  // namespace
}  // namespace stoker::diagnose
