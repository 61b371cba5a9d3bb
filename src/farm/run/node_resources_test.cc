#include "farm/run/node_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::farm {
namespace {

using testing::ElementsAre;

const MachineResources kMachine{.cores = {4, 5, 6, 7}, .gpus = {"3", "GPU-x"}, .memory = 8_GiB};

TEST(NodeResources, running_tasks_share_no_core_gpu_or_memory) {
  NodeResources node(kMachine, 0, {});
  EXPECT_EQ(node.slots(), 4U);
  const auto first = node.take({.cores = 3, .gpus = 1, .memory = 6_GiB});
  ASSERT_TRUE(first);
  EXPECT_THAT(first->cores, ElementsAre(0, 1, 2));
  EXPECT_THAT(first->gpus, ElementsAre(0));
  EXPECT_FALSE(node.take({.cores = 2}));
  EXPECT_FALSE(node.take({.cores = 1, .memory = 3_GiB}));
  const auto second = node.take({.cores = 1, .gpus = 1, .memory = 2_GiB});
  ASSERT_TRUE(second);
  EXPECT_THAT(second->cores, ElementsAre(3));
  EXPECT_THAT(second->gpus, ElementsAre(1));
  node.give_back(*first);
  EXPECT_TRUE(node.take({.cores = 3, .gpus = 1, .memory = 6_GiB}));
}

TEST(NodeResources, at_once_limits_and_shares_cores) {
  NodeResources few(kMachine, 1, {});
  EXPECT_TRUE(few.take({}));
  EXPECT_FALSE(few.take({}));
  NodeResources many(kMachine, 6, {});
  EXPECT_EQ(many.slots(), 6U);
  EXPECT_EQ(NodeResources(kMachine, 0, {.cores = 2}).slots(), 2U);
  EXPECT_EQ(NodeResources(kMachine, 0, {.gpus = 2}).slots(), 1U);
  EXPECT_EQ(NodeResources(kMachine, 0, {.memory = 3_GiB}).slots(), 2U);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(many.take({}));
  EXPECT_FALSE(many.take({}));
}

TEST(CheckNeeds, the_first_thing_that_is_missing_is_named) {
  EXPECT_EQ(check_needs({.cores = 5}, kMachine).message(), "cores: 5 (here: 4)");
  EXPECT_EQ(check_needs({.gpus = 3}, kMachine).message(), "gpus: 3 (here: 2)");
  EXPECT_EQ(check_needs({.memory = 9_GiB}, kMachine).message(), "memory: 9GiB (here: 8.59 GB)");
  EXPECT_TRUE(check_needs({.cores = 4, .gpus = 2, .memory = 8_GiB}, kMachine).ok());
}

TEST(MachineResources, gpus_are_read_from_the_environment) {
  const auto env = [](std::string_view name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES") return "0, MIG-7";
    if (name == "SLURM_MEM_PER_NODE") return "100";
    return std::nullopt;
  };
  const MachineResources machine = machine_resources(env);
  EXPECT_THAT(machine.gpus, ElementsAre("0", "MIG-7"));
  EXPECT_EQ(machine.memory, 100_MiB);
}

}  // namespace
}  // namespace stoker::farm
