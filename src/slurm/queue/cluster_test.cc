#include "slurm/queue/cluster.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(Cluster, configuration_is_read_by_its_keys) {
  ClusterInfo facts;
  ASSERT_TRUE(parse_config("Configuration data as of 2026-11-21T10:00:00\n"
                           "ClusterName             = narval\n"
                           "MaxArraySize            = 10001\n"
                           "SLURM_VERSION           = 22.05.8\n"
                           "\nSlurmctld(primary) at x is UP\n",
                           facts)
                  .ok());
  EXPECT_EQ(facts.name, "narval");
  EXPECT_EQ(facts.version, "22.05.8");
  EXPECT_EQ(facts.max_array_size, 10001u);
  ClusterInfo none;
  EXPECT_EQ(parse_config("Welcome!\n", none).message(), "scontrol: printed no configuration");
}

TEST(Cluster, partitions_are_read_with_their_limits_and_nodes) {
  const auto found = parse_partitions(
      "Welcome to the cluster | mind the step\n"
      "gpu*|7-00:00:00|1:00:00|159|48|510000|3840000|gpu:a100:4(S:0-1)\n"
      "cpu|infinite|n/a|2|64+|256000|0|(null)\n"
      "debug|30:00|30:00|1|2|4000|0|gpu:2\n");
  ASSERT_TRUE(found.ok());
  ASSERT_THAT(*found, SizeIs(3));
  const PartitionNodes& gpu = (*found)[0];
  EXPECT_TRUE(gpu.is_default);
  EXPECT_EQ(gpu.partition, "gpu");
  EXPECT_EQ(gpu.time, Duration(168h));
  EXPECT_EQ(gpu.default_time, Duration(1h));
  EXPECT_EQ(gpu.memory, ByteCount{510000ull << 20});
  EXPECT_EQ(gpu.gpu, "a100");
  EXPECT_EQ(gpu.gpus, 4u);
  EXPECT_EQ((*found)[1].time, std::nullopt);
  EXPECT_EQ((*found)[1].cores, 64u);
  EXPECT_EQ((*found)[2].time, Duration(30min));
  EXPECT_EQ(parse_partitions("Segmentation violation\n").status().message(), "sinfo: printed no partition");
}

TEST(Cluster, gpus_are_read_with_and_without_a_type) {
  EXPECT_THAT(parse_gpus("gpu:a100:4(S:0-1)"), Pair("a100", 4));
  EXPECT_THAT(parse_gpus("lustre:1,gpu:2"), Pair("gpu", 2));
  EXPECT_THAT(parse_gpus("gpu"), Pair("gpu", 1));
  EXPECT_THAT(parse_gpus("gpu:h100_1g.10gb"), Pair("h100_1g.10gb", 1));
  EXPECT_THAT(parse_gpus("(null)"), Pair("", 0));
  EXPECT_THAT(parse_gpus("gpufoo:3"), Pair("", 0));
}

TEST(Cluster, lists_the_accounts_of_the_user) {
  EXPECT_THAT(parse_accounts("root|\n def-pi|\n  def-pi|me\n  def-pi|me\nrrg-pi|me\n"),
              ElementsAre("def-pi", "rrg-pi"));
  EXPECT_THAT(parse_accounts(""), SizeIs(0));
}

}  // namespace
}  // namespace stoker::slurm
