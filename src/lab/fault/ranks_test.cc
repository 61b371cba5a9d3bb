#include "lab/fault/ranks.h"

#include <gtest/gtest.h>

namespace stoker::lab::fault {
namespace {

Place place(std::initializer_list<const char*> variables) {
  std::string environ;
  for (const char* variable : variables) environ += std::string(variable) + '\0';
  return place_of(environ);
}

TEST(Place, of_a_task_is_its_number_in_a_numbered_step) {
  const Place task = place({"HOME=/root", "SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_PROCID=3"});
  EXPECT_EQ(task.job, "12");
  EXPECT_EQ(task.task, 3);
  EXPECT_EQ(task.rank, std::nullopt);
}

TEST(Place, of_a_batch_script_is_no_task_though_slurm_gives_it_a_number) {
  EXPECT_EQ(place({"SLURM_JOB_ID=12", "SLURM_PROCID=0"}).task, std::nullopt);
}

TEST(Place, of_an_interactive_step_is_no_task) {
  EXPECT_EQ(place({"SLURM_JOB_ID=12", "SLURM_STEP_ID=4294967290", "SLURM_PROCID=0"}).task, std::nullopt);
}

TEST(Place, of_a_rank_is_what_its_launcher_says) {
  const Place rank = place({"RANK=5", "SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_PROCID=1"});
  EXPECT_EQ(rank.rank, 5);
  EXPECT_EQ(rank.task, 1);
}

TEST(Place, of_what_is_no_number_is_none) {
  EXPECT_EQ(place({"RANK=x"}).rank, std::nullopt);
  EXPECT_EQ(place({"RANK=-1"}).rank, std::nullopt);
  EXPECT_EQ(place({"RANK="}).rank, std::nullopt);
  EXPECT_EQ(place({"RANK"}).rank, std::nullopt);
  EXPECT_EQ(place_of("").job, "");
}

}  // namespace
}  // namespace stoker::lab::fault
