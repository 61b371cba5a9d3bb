#include "slurm/allocation.h"

#include <map>

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using ::testing::ElementsAre;

Lookup environment(std::map<std::string, std::string, std::less<>> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

TEST(Allocation, does_not_exist_outside_slurm) {
  const auto allocation = current_allocation(environment({}));
  ASSERT_TRUE(allocation.ok());
  EXPECT_FALSE(allocation->has_value());
}

TEST(Allocation, reads_the_variables_of_slurm) {
  const auto allocation = current_allocation(environment({{"SLURM_JOB_ID", "812345"},
                                                          {"SLURM_JOB_NODELIST", "gpu[01-02]"},
                                                          {"SLURM_TASKS_PER_NODE", "4(x2)"},
                                                          {"SLURM_CPUS_PER_TASK", "8"},
                                                          {"SLURM_RESTART_COUNT", "2"},
                                                          {"SLURM_JOB_END_TIME", "1800000000"}}));
  ASSERT_TRUE(allocation.ok()) << allocation.status().to_string();
  EXPECT_EQ((*allocation)->job_id, "812345");
  EXPECT_THAT((*allocation)->nodes, ElementsAre("gpu01", "gpu02"));
  EXPECT_THAT((*allocation)->tasks_per_node, ElementsAre(4, 4));
  EXPECT_EQ((*allocation)->cpus_per_task, 8);
  EXPECT_EQ((*allocation)->restart_count, 2);
  EXPECT_EQ((*allocation)->end_time, 1800000000.0);
}

TEST(Allocation, an_array_task_is_named_by_array_and_index) {
  const auto allocation = current_allocation(environment({{"SLURM_JOB_ID", "9"},
                                                          {"SLURM_JOB_NODELIST", "n1"},
                                                          {"SLURM_ARRAY_JOB_ID", "5"},
                                                          {"SLURM_ARRAY_TASK_ID", "3"}}));
  EXPECT_EQ((*allocation)->job_id, "5_3");
}

TEST(Allocation, refuses_values_that_slurm_never_writes) {
  EXPECT_EQ(current_allocation(environment({{"SLURM_JOB_ID", "x"}})).status().message(),
            "SLURM_JOB_ID: 'x' is not a number of at least 1 (set by Slurm?)");
  EXPECT_EQ(current_allocation(environment({{"SLURM_JOB_ID", "1"}})).status().message(),
            "SLURM_JOB_NODELIST: no nodes (job 1)");
  EXPECT_EQ(
      current_allocation(
          environment({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n1"}, {"SLURM_JOB_END_TIME", "soon"}}))
          .status()
          .message(),
      "SLURM_JOB_END_TIME: 'soon' is not a time");
}

TEST(Task, uneven_tasks_per_node_give_each_node_its_own_count) {
  const auto task = current_task(environment({{"SLURM_PROCID", "5"},
                                              {"SLURM_LOCALID", "1"},
                                              {"SLURM_NODEID", "2"},
                                              {"SLURM_STEP_NUM_TASKS", "6"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "3,1,2"}}));
  ASSERT_TRUE(task.ok()) << task.status().to_string();
  EXPECT_EQ((*task)->rank, Rank(5));
  EXPECT_EQ((*task)->world_size, WorldSize(6));
  EXPECT_EQ((*task)->local_rank, 1);
  EXPECT_EQ((*task)->local_world_size, 2);
  EXPECT_EQ((*task)->node, 2);
}

TEST(Task, the_step_overrides_the_job) {
  const auto task = current_task(
      environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}}));
  EXPECT_EQ((*task)->world_size, WorldSize(2));
}

TEST(Task, a_batch_script_is_not_a_task) {
  const auto task = current_task(environment({{"SLURM_PROCID", "0"},
                                              {"SLURM_LOCALID", "0"},
                                              {"SLURM_NODEID", "0"},
                                              {"SLURM_NTASKS", "4"},
                                              {"SLURM_NTASKS_PER_NODE", "2"},
                                              {"SLURM_TASKS_PER_NODE", "2(x2)"}}));
  ASSERT_TRUE(task.ok());
  EXPECT_FALSE(task->has_value());
}

TEST(Task, contradictions_are_refused) {
  EXPECT_EQ(current_task(environment({{"SLURM_PROCID", "4"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}}))
                .status()
                .message(),
            "SLURM_PROCID: 4 is not below 4 (SLURM_NTASKS)");
  EXPECT_EQ(current_task(environment({{"SLURM_PROCID", "0"},
                                      {"SLURM_NODEID", "1"},
                                      {"SLURM_NTASKS", "1"},
                                      {"SLURM_STEP_ID", "0"},
                                      {"SLURM_STEP_TASKS_PER_NODE", "1"}}))
                .status()
                .message(),
            "SLURM_NODEID: 1 is not below 1 (SLURM_STEP_TASKS_PER_NODE)");
}

TEST(Srun, every_count_is_given_explicitly) {
  EXPECT_THAT(srun_arguments({WorldSize(8), 2, 4, 6, {"stoker", "rank", "--", "true"}}),
              ElementsAre("srun", "--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=6",
                          "--distribution=block", "--kill-on-bad-exit=0", "--wait=0", "--unbuffered",
                          "--input=none", "--export=ALL", "stoker", "rank", "--", "true"));
}

TEST(Srun, places_tasks_according_to_the_hosts_file) {
  EXPECT_THAT(
      srun_arguments({WorldSize(3), 2, 0, 0, {"true"}}),
      ElementsAre("srun", "--nodes=2", "--ntasks=3", "--distribution=arbitrary", "--kill-on-bad-exit=0",
                  "--wait=0", "--unbuffered", "--input=none", "--export=ALL", "true"));
}

TEST(Srun, one_task_may_use_its_whole_node) {
  EXPECT_THAT(srun_arguments({WorldSize(2), 2, 1, 0, {"true"}, true}),
              ::testing::Contains("--cpu-bind=none"));
}

TEST(Srun, a_step_shares_nodes_with_other_steps_and_shows_srun_messages) {
  StepRequest request{WorldSize(2), 2, 1, 1, {"true"}};
  request.overlaps = true;
  EXPECT_THAT(
      srun_arguments(request),
      ElementsAre("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=1",
                  "--cpu-bind=none", "--overlap", "--mem=0", "--gres=none", "--quiet", "--distribution=block",
                  "--kill-on-bad-exit=0", "--wait=0", "--unbuffered", "--export=ALL", "true"));
}

TEST(Srun, a_step_on_chosen_nodes_gets_only_what_it_asks_for) {
  StepRequest request{WorldSize(2), 2, 1, 4, {"true"}};
  request.node_list = "n3,n4";
  const auto arguments = srun_arguments(request);
  EXPECT_THAT(arguments, ::testing::Contains("--nodelist=n3,n4"));
  EXPECT_THAT(arguments, ::testing::Contains("--exact"));
  request.overlaps = true;
  EXPECT_THAT(srun_arguments(request), ::testing::Not(::testing::Contains("--exact")));
}

TEST(Allocation, a_run_that_shares_it_has_a_part_of_its_nodes) {
  const auto of = [](const std::string& nodes) {
    return current_allocation(environment({{"SLURM_JOB_ID", "7"},
                                           {"SLURM_JOB_NODELIST", "n[1-4]"},
                                           {"SLURM_TASKS_PER_NODE", "2(x4)"},
                                           {"SLURM_CPUS_PER_TASK", "3"},
                                           {"STOKER_STEP_NODES", nodes}}));
  };
  const auto allocation = of("n3,n4");
  ASSERT_TRUE(allocation.ok());
  EXPECT_THAT((*allocation)->nodes, ElementsAre("n3", "n4"));
  EXPECT_TRUE((*allocation)->is_part);
  EXPECT_TRUE((*allocation)->tasks_per_node.empty());
  EXPECT_EQ((*allocation)->cpus_per_task, 0);
  EXPECT_FALSE((*of(""))->is_part);
  EXPECT_EQ(of("n3,n9").status().message(), "STOKER_STEP_NODES: 'n9' is no node of job 7");
}

TEST(CpusOnNode, count_only_within_a_job) {
  EXPECT_EQ(cpus_on_node(environment({{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "6"}})), 6);
  EXPECT_EQ(cpus_on_node(environment({{"SLURM_CPUS_ON_NODE", "6"}})), std::nullopt);
  EXPECT_EQ(cpus_on_node(environment({{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "many"}})), std::nullopt);
}

}  // namespace
}  // namespace stoker::slurm
