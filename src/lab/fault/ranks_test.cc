#include "lab/fault/ranks.h"

#include <gtest/gtest.h>

namespace stoker::lab::fault {
namespace {

RankIdentity identity(std::initializer_list<const char*> variables) {
  std::string environ;
  for (const char* variable : variables) environ += std::string(variable) + '\0';
  return parse_rank_identity(environ);
}

TEST(RankIdentity, task_of_a_numbered_step) {
  const RankIdentity task = identity({"HOME=/root", "SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_PROCID=3"});
  EXPECT_EQ(task.job, "12");
  EXPECT_EQ(task.task, 3);
  EXPECT_EQ(task.rank, std::nullopt);
}

TEST(RankIdentity, batch_script_has_no_task) {
  EXPECT_EQ(identity({"SLURM_JOB_ID=12", "SLURM_PROCID=0"}).task, std::nullopt);
}

TEST(RankIdentity, interactive_step_has_no_task) {
  EXPECT_EQ(identity({"SLURM_JOB_ID=12", "SLURM_STEP_ID=4294967290", "SLURM_PROCID=0"}).task, std::nullopt);
}

TEST(RankIdentity, rank_comes_from_the_launcher) {
  const RankIdentity rank = identity({"RANK=5", "SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_PROCID=1"});
  EXPECT_EQ(rank.rank, 5);
  EXPECT_EQ(rank.task, 1);
}

TEST(RankIdentity, non_numeric_values_are_ignored) {
  EXPECT_EQ(identity({"RANK=x"}).rank, std::nullopt);
  EXPECT_EQ(identity({"RANK=-1"}).rank, std::nullopt);
  EXPECT_EQ(identity({"RANK="}).rank, std::nullopt);
  EXPECT_EQ(identity({"RANK"}).rank, std::nullopt);
  EXPECT_EQ(parse_rank_identity("").job, "");
}

}  // namespace
}  // namespace stoker::lab::fault
