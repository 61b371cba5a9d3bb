#include "rank/plan.h"

#include <gmock/gmock.h>

namespace stoker::rank {
namespace {

using testing::ElementsAre;

job::Job job_of(std::uint32_t nodes, std::uint32_t ranks_per_node) {
  job::Job job;
  job.resources.nodes = nodes;
  job.resources.ranks_per_node = ranks_per_node;
  return job;
}

LaunchContext allocation(std::vector<std::string> nodes) {
  slurm::Allocation allocation;
  allocation.job_id = "4711";
  allocation.nodes = std::move(nodes);
  allocation.cpus_per_task = 6;
  return {.host = "n1", .allocation = std::move(allocation), .task = {}};
}

std::string error(const job::Job& job, const LaunchContext& here) {
  return make_plan(job, here).status().to_string();
}

TEST(Plan, without_slurm_the_ranks_are_on_this_machine) {
  const auto plan = make_plan(job_of(1, 4), {.host = "laptop", .allocation = {}, .task = {}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->start, StartMethod::local);
  EXPECT_EQ(plan->world_size(), WorldSize(4));
  EXPECT_THAT(plan->hosts, ElementsAre("laptop"));
}

TEST(Plan, in_an_allocation_srun_starts_the_ranks_on_its_first_nodes) {
  const auto plan = make_plan(job_of(2, 4), allocation({"n1", "n2", "n3"}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->start, StartMethod::srun);
  EXPECT_THAT(plan->hosts, ElementsAre("n1", "n2"));
  EXPECT_EQ(plan->scheduler_job, "4711");
  EXPECT_EQ(plan->cpus_per_rank, 6);
}

TEST(Plan, ranks_that_do_not_divide_evenly_are_spread) {
  job::Job job = job_of(3, 3);
  job.resources.ranks = 7;
  const auto plan = make_plan(job, allocation({"n1", "n2", "n3"}));
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->ranks_of_node, ElementsAre(3, 2, 2));
  EXPECT_FALSE(plan->is_even());
  EXPECT_EQ(plan->world_size(), WorldSize(7));
  EXPECT_EQ(plan->placement_of(Rank(2)), (RankPlacement{Rank(2), WorldSize(7), 2, 3, 0}));
  EXPECT_EQ(plan->placement_of(Rank(6)), (RankPlacement{Rank(6), WorldSize(7), 1, 2, 2}));
}

TEST(Plan, allocation_with_equal_task_count_defines_placement) {
  job::Job job = job_of(2, 3);
  job.resources.ranks = 4;
  LaunchContext here = allocation({"n1", "n2"});
  here.allocation->tasks_per_node = {1, 3};
  EXPECT_THAT(make_plan(job, here)->ranks_of_node, ElementsAre(1, 3));
  here.allocation->tasks_per_node = {3, 3};
  EXPECT_THAT(make_plan(job, here)->ranks_of_node, ElementsAre(2, 2));
}

TEST(Plan, torchrun_is_one_task_on_each_node) {
  job::Job job = job_of(2, 4);
  job.launcher = job::Launcher::torchrun;
  const auto plan = make_plan(job, allocation({"n1", "n2"}));
  EXPECT_TRUE(plan->has_torchrun);
  EXPECT_EQ(plan->start, StartMethod::srun);
  EXPECT_EQ(plan->cpus_per_rank, 0) << "the cores of the task are for all ranks of its node";
  job.resources.nodes = 1;
  EXPECT_EQ(make_plan(job, {.host = "laptop", .allocation = {}, .task = {}})->start, StartMethod::local);
}

TEST(Plan, the_single_launcher_stays_on_one_node) {
  job::Job job = job_of(1, 2);
  job.launcher = job::Launcher::single;
  EXPECT_EQ(make_plan(job, allocation({"n1", "n2"}))->start, StartMethod::local);
  job.resources.nodes = 2;
  EXPECT_EQ(error(job, allocation({"n1", "n2"})),
            "resources.nodes: 2 requested, but launcher: single starts ranks on this node only\n  try: "
            "stoker run --set launcher=srun");
}

TEST(Plan, more_nodes_than_there_are_and_no_rank_at_all_are_refused) {
  EXPECT_EQ(error(job_of(2, 1), {.host = "laptop", .allocation = {}, .task = {}}),
            "resources.nodes: 2 requested, 1 available (no Slurm allocation)\n  try: stoker run --set "
            "resources.nodes=1");
  EXPECT_EQ(error(job_of(3, 1), allocation({"n1", "n2"})),
            "resources.nodes: 3 requested, 2 available (Slurm job 4711)\n  try: stoker run --set "
            "resources.nodes=2");
  EXPECT_EQ(error(job_of(1, 0), {.host = "laptop", .allocation = {}, .task = {}}),
            "resources: 1 node x 0 ranks_per_node gives no ranks");
}

TEST(Plan, a_shell_that_is_itself_a_step_may_run_a_job) {
  LaunchContext here = allocation({"n1"});
  here.task = slurm::Task{Rank(0), WorldSize(1), 0, 1, 0};
  EXPECT_TRUE(make_plan(job_of(1, 2), here).ok());
}

TEST(RankPlacement, round_trips_and_refuses_malformed_text) {
  const RankPlacement place{Rank(5), WorldSize(8), 1, 4, 1};
  EXPECT_EQ(*parse_placement(to_text(place)), place);
  for (std::string_view text : {"", "1/2", "2/2/0/1/0", "0/1/1/1/0", "-1/1/0/1/0", "0/1/0/1/x"}) {
    EXPECT_EQ(parse_placement(text).status().message(),
              format("STOKER_PLACE: '{}' is not rank/size/local rank/local size/node", text));
  }
}

}  // namespace
}  // namespace stoker::rank
