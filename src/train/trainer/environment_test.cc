#include "train/trainer/environment.h"

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

std::string error_of(const Variables& variables) {
  const auto environment = read_environment(variables);
  return environment.ok() ? "no error" : environment.status().to_string();
}

TEST(RankEnvironment, without_variables_is_a_single_rank_outside_a_run) {
  const auto environment = read_environment({});
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->rank, Rank(0));
  EXPECT_EQ(environment->world_size, WorldSize(1));
  EXPECT_TRUE(environment->attempt.empty());
  EXPECT_EQ(environment->attempt_name(), "0");
  EXPECT_FALSE(environment->deadline.has_value());
  EXPECT_EQ(environment->gpus_per_rank, 1);
}

TEST(RankEnvironment, reads_all_variables) {
  const auto environment = read_environment({{"RANK", "1"},
                                             {"WORLD_SIZE", "2"},
                                             {"MASTER_ADDR", "10.0.0.1"},
                                             {"MASTER_PORT", "29500"},
                                             {"LOCAL_RANK", "1"},
                                             {"STOKER_GPUS_PER_RANK", "2"},
                                             {"STOKER_ATTEMPT_DIR", "/runs/x/attempts/3"},
                                             {"STOKER_DATA_TRAIN", "/data/a"},
                                             {"STOKER_DEADLINE", "1800000000.5"}});
  ASSERT_TRUE(environment.ok()) << environment.status().to_string();
  EXPECT_EQ(environment->rank, Rank(1));
  EXPECT_EQ(environment->port, 29500);
  EXPECT_EQ(environment->local_rank, 1);
  EXPECT_EQ(environment->gpus_per_rank, 2);
  EXPECT_EQ(environment->attempt_name(), "3");
  EXPECT_DOUBLE_EQ(unix_seconds(*environment->deadline), 1800000000.5);
  EXPECT_EQ(dataset_folder(*environment, "train", "/elsewhere"), "/data/a");
  EXPECT_EQ(dataset_folder(*environment, "val", "/elsewhere"), "/elsewhere");
}

TEST(RankEnvironment, ranks_of_one_host_rendezvous_on_loopback) {
  const auto address = [](const std::string& local, const std::string& world) {
    return read_environment({{"WORLD_SIZE", world},
                             {"LOCAL_WORLD_SIZE", local},
                             {"MASTER_ADDR", "node3"},
                             {"MASTER_PORT", "29500"}})
        ->address;
  };
  EXPECT_EQ(address("4", "4"), "127.0.0.1");
  EXPECT_EQ(address("2", "4"), "node3");
  EXPECT_EQ(address("", "4"), "node3");
  EXPECT_EQ(error_of({{"LOCAL_WORLD_SIZE", "all"}}),
            "LOCAL_WORLD_SIZE: 'all' is not a number from 0 to 2147483647");
}

TEST(RankEnvironment, errors_name_the_variable) {
  EXPECT_EQ(error_of({{"RANK", "one"}}), "RANK: 'one' is not a number from 0 to 2147483647");
  EXPECT_EQ(error_of({{"STOKER_GPUS_PER_RANK", "65"}}),
            "STOKER_GPUS_PER_RANK: '65' is not a number from 1 to 64");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "0"}}), "WORLD_SIZE: '0' is not a number from 1 to 2147483647");
  EXPECT_EQ(error_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
            "RANK: 2 is not below WORLD_SIZE 2");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "2"}}),
            "MASTER_PORT: not set, but WORLD_SIZE is 2\n  try: stoker run JOB sets it");
  EXPECT_EQ(error_of({{"MASTER_PORT", "70000"}}), "MASTER_PORT: '70000' is not a number from 1 to 65535");
  EXPECT_EQ(error_of({{"STOKER_DEADLINE", "soon"}}), "STOKER_DEADLINE: 'soon' is not a time in Unix seconds");
}

}  // namespace
}  // namespace stoker::train
