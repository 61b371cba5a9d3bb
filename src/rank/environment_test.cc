#include "rank/environment.h"

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

const RankPlacement kPlace{Rank(5), WorldSize(8), 1, 4, 1};

TEST(RankEnvironment, has_placement_and_rendezvous) {
  const Environment found =
      rank_environment({{"PATH", "/bin"}, {"RANK", "99"}}, kPlace, {"10.0.0.1", 12345}, 6);
  EXPECT_EQ(variable(found, "RANK"), "5");
  EXPECT_EQ(variable(found, "WORLD_SIZE"), "8");
  EXPECT_EQ(variable(found, "LOCAL_RANK"), "1");
  EXPECT_EQ(variable(found, "LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(variable(found, "NODE_RANK"), "1");
  EXPECT_EQ(variable(found, "MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(variable(found, "MASTER_PORT"), "12345");
  EXPECT_EQ(variable(found, "OMP_NUM_THREADS"), "6");
  EXPECT_EQ(variable(found, "PATH"), "/bin");
}

TEST(RankEnvironment, what_is_between_run_and_rank_or_of_an_outer_torchrun_is_left_out) {
  Environment base;
  for (std::string_view name :
       {kWorldVariable, kPlaceVariable, kRanksWorldVariable, kStartVariable, kCpusVariable, kNodesVariable,
        kOwnGpusVariable, kSharedGpuVariable, kPortsVariable, kPortVariable, kErrorsVariable})
    base.emplace_back(name, "x");
  for (std::string_view name : {"TORCHELASTIC_RUN_ID", "GROUP_RANK", "ROLE_NAME", "GROUP_WORLD_SIZE"}) {
    base.emplace_back(name, "x");
  }
  for (const auto& [name, value] : rank_environment(base, kPlace, {}, 1)) EXPECT_NE(value, "x") << name;
}

TEST(RankEnvironment, threads_are_kept_when_they_are_set) {
  EXPECT_EQ(variable(rank_environment({{"OMP_NUM_THREADS", "2"}}, kPlace, {}, 6), "OMP_NUM_THREADS"), "2");
}

TEST(RankEnvironment, thread_counts_are_set_for_every_library) {
  Environment found{{"RAYON_NUM_THREADS", "2"}};
  set_threads(found, 6);
  EXPECT_EQ(variable(found, "OMP_NUM_THREADS"), "6");
  EXPECT_EQ(variable(found, "TF_NUM_INTRAOP_THREADS"), "6");
  EXPECT_EQ(variable(found, "RAYON_NUM_THREADS"), "2");
}

TEST(RankEnvironment, cores_are_shared_out_evenly_and_never_none) {
  EXPECT_EQ(cores_per_rank(3, kPlace, 1), 3);
  EXPECT_GE(cores_per_rank(0, kPlace, std::nullopt), 1);
  EXPECT_EQ(cores_per_rank(0, RankPlacement{Rank(0), WorldSize(100000), 0, 100000, 0}, std::nullopt), 1);
  EXPECT_EQ(cores_per_rank(0, kPlace, 4), 1) << "4 ranks of a node on which the job has 4 cores";
  EXPECT_EQ(cores_per_rank(0, kPlace, 2), 1);
}

TEST(RankEnvironment, ranks_use_the_staged_copy_of_their_virtual_environment) {
  Environment found{{"VIRTUAL_ENV", "/home/me/env"},
                    {"PATH", "/home/me/env/bin:/home/me/env-old/bin:/usr/bin"},
                    {"LD_LIBRARY_PATH", "/opt/cuda/lib:/home/me/env/lib/torch/lib"}};
  std::vector<std::string> command{"/home/me/env/bin/python", "/home/me/env/train.py"};
  use_staged_venv(found, command, "/local/stoker-r/env");
  EXPECT_EQ(variable(found, "VIRTUAL_ENV"), "/local/stoker-r/env");
  EXPECT_EQ(variable(found, "PATH"), "/local/stoker-r/env/bin:/home/me/env-old/bin:/usr/bin");
  EXPECT_EQ(variable(found, "LD_LIBRARY_PATH"), "/opt/cuda/lib:/local/stoker-r/env/lib/torch/lib");
  EXPECT_EQ(command, (std::vector<std::string>{"/local/stoker-r/env/bin/python", "/home/me/env/train.py"}));
  Environment none{{"PATH", "/usr/bin"}};
  use_staged_venv(none, command, "/local/other");
  EXPECT_EQ(none, (Environment{{"PATH", "/usr/bin"}}));
}

TEST(RankEnvironment, slurm_variables_match_the_placement) {
  Environment found{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS_PER_NODE", "1"}};
  set_slurm_variables(found, kPlace, "4,4");
  EXPECT_EQ(variable(found, "SLURM_PROCID"), "0") << "this is no allocation";
  found.emplace_back("SLURM_JOB_ID", "7");
  set_slurm_variables(found, kPlace, "4,4");
  EXPECT_EQ(variable(found, "SLURM_PROCID"), "5");
  EXPECT_EQ(variable(found, "SLURM_LOCALID"), "1");
  EXPECT_EQ(variable(found, "SLURM_NODEID"), "1");
  EXPECT_EQ(variable(found, "SLURM_NTASKS"), "8");
  EXPECT_EQ(variable(found, "SLURM_STEP_TASKS_PER_NODE"), "4,4");
  EXPECT_EQ(variable(found, "SLURM_NTASKS_PER_NODE"), "4");
}

}  // namespace
}  // namespace stoker::rank
