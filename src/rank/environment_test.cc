#include "rank/environment.h"

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

const Place kPlace{Rank(5), WorldSize(8), 1, 4, 1};

TEST(RankEnvironment, says_the_place_and_where_ranks_meet) {
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
  for (std::string_view name : {kWorldVariable, kPlaceVariable, kStartVariable, kCpusVariable})
    base.emplace_back(name, "x");
  for (std::string_view name : {"TORCHELASTIC_RUN_ID", "GROUP_RANK", "ROLE_NAME", "GROUP_WORLD_SIZE"}) {
    base.emplace_back(name, "x");
  }
  for (const auto& [name, value] : rank_environment(base, kPlace, {}, 1)) EXPECT_NE(value, "x") << name;
}

TEST(RankEnvironment, threads_are_kept_when_they_are_set) {
  EXPECT_EQ(variable(rank_environment({{"OMP_NUM_THREADS", "2"}}, kPlace, {}, 6), "OMP_NUM_THREADS"), "2");
}

TEST(RankEnvironment, cores_are_shared_out_evenly_and_never_none) {
  EXPECT_EQ(cores_per_rank(3, kPlace), 3);
  EXPECT_GE(cores_per_rank(0, kPlace), 1);
  EXPECT_EQ(cores_per_rank(0, Place{Rank(0), WorldSize(100000), 0, 100000, 0}), 1);
}

}  // namespace
}  // namespace stoker::rank
