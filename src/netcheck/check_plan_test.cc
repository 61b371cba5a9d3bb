#include "netcheck/check_plan.h"

#include <gmock/gmock.h>

#include "netcheck/worker_set.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;

const rank::LaunchContext kLaptop{.host = "laptop", .allocation = {}, .task = {}};

rank::LaunchContext allocation(std::vector<std::string> nodes) {
  slurm::Allocation allocation;
  allocation.job_id = "4711";
  allocation.nodes = std::move(nodes);
  return {.host = "n1", .allocation = std::move(allocation), .task = {}};
}

job::Job job_of(std::uint32_t nodes, std::uint32_t ranks_per_node) {
  job::Job job;
  job.resources.nodes = nodes;
  job.resources.ranks_per_node = ranks_per_node;
  return job;
}

TEST(NetworkCheckPlan, one_machine_without_a_job_has_two_ranks) {
  const auto options = plan_network_check({}, kLaptop, false);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->plan.start, rank::StartMethod::local);
  EXPECT_EQ(options->plan.world_size(), WorldSize(2));
}

TEST(NetworkCheckPlan, an_allocation_without_a_job_has_a_rank_on_each_node) {
  const auto options = plan_network_check({}, allocation({"n1", "n2", "n3"}), true);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->plan.start, rank::StartMethod::srun);
  EXPECT_FALSE(options->allocates);
  EXPECT_THAT(options->plan.hosts, ElementsAre("n1", "n2", "n3"));
  EXPECT_EQ(options->plan.world_size(), WorldSize(3));
}

TEST(NetworkCheckPlan, a_job_decides_and_the_command_line_over_it) {
  const job::Job job = job_of(2, 4);
  const auto by_job =
      plan_network_check({.job = &job, .nodes = {}, .ranks_per_node = {}}, allocation({"n1", "n2"}), true);
  ASSERT_TRUE(by_job.ok());
  EXPECT_EQ(by_job->plan.world_size(), WorldSize(8));
  const auto by_words =
      plan_network_check({.job = &job, .nodes = 1, .ranks_per_node = 2}, allocation({"n1", "n2"}), true);
  ASSERT_TRUE(by_words.ok());
  EXPECT_THAT(by_words->plan.hosts, ElementsAre("n1"));
  EXPECT_EQ(by_words->plan.world_size(), WorldSize(2));
}

TEST(NetworkCheckPlan, on_a_login_node_srun_asks_for_the_nodes_in_the_job_s_words) {
  job::Job job = job_of(2, 4);
  job.slurm.partition = "gpu";
  job.slurm.account = "def-lab";
  job.slurm.extra = {"--constraint=a100"};
  job.resources.gpus_per_rank = 1;
  const auto options = plan_network_check({.job = &job, .nodes = {}, .ranks_per_node = {}}, kLaptop, true);
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->allocates);
  const auto argv = srun_command({.plan = options->plan,
                                  .srun_options = options->srun_options,
                                  .environment = {},
                                  .stoker = "/opt/stoker",
                                  .invitation = {}});
  EXPECT_EQ(
      ::stoker::join(argv, " "),
      "srun --job-name=stoker-hello --time=10 --partition=gpu --account=def-lab --constraint=a100 "
      "--gpus-per-node=4 --label --no-kill --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block "
      "--kill-on-bad-exit=0 --wait=0 --unbuffered --input=none --export=ALL /opt/stoker rank --hello");
}

TEST(NetworkCheckPlan, several_nodes_without_slurm_are_refused) {
  EXPECT_EQ(plan_network_check({.nodes = 3, .ranks_per_node = {}}, kLaptop, false).status().to_string(),
            "hello: 3 nodes requested, but there is no Slurm allocation and no srun\n  try: stoker hello "
            "--nodes 1      (or: stoker lab up)");
  EXPECT_EQ(plan_network_check({.nodes = 0, .ranks_per_node = {}}, kLaptop, true).status().message(),
            "hello: --nodes: 0 (1 to 65536)");
  EXPECT_EQ(plan_network_check({.nodes = {}, .ranks_per_node = 70000}, kLaptop, true).status().message(),
            "hello: --ranks-per-node: 70000 (1 to 65536)");
}

TEST(NetworkCheckPlan, one_node_named_where_there_is_no_slurm_is_this_machine) {
  const auto options = plan_network_check({.nodes = 1, .ranks_per_node = 3}, kLaptop, false);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->plan.start, rank::StartMethod::local);
  EXPECT_EQ(options->plan.world_size(), WorldSize(3));
}

TEST(IsInPath, looks_in_path) {
  EXPECT_TRUE(is_in_path("sh", {{"PATH", "/nowhere:/bin"}}));
  EXPECT_FALSE(is_in_path("sh", {{"PATH", "/nowhere"}}));
  EXPECT_FALSE(is_in_path("sh", {}));
}

TEST(ParseLabel, srun_label_gives_the_rank) {
  EXPECT_EQ(parse_label("2: rank: gone").rank, Rank(2));
  EXPECT_EQ(parse_label("2: rank: gone").text, "rank: gone");
  EXPECT_EQ(parse_label(" 12: x").rank, Rank(12));
  EXPECT_EQ(parse_label("srun: error: n3: unreachable").rank, std::nullopt);
  EXPECT_EQ(parse_label("srun: error: n3: unreachable").text, "srun: error: n3: unreachable");
  EXPECT_EQ(parse_label("99999999999: x").rank, std::nullopt);
}

}  // namespace
}  // namespace stoker::netcheck
