#include "slurm/script/requested_resources.h"

#include <map>

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using ::testing::ElementsAre;

using Options = std::map<std::string, std::string, std::less<>>;

RequestedResources asked(const Options& options) {
  return RequestedResources([options](std::string_view name) -> std::optional<std::string> {
    const auto found = options.find(name);
    return found == options.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(RequestedResources, derives_tasks_from_every_form_of_request) {
  EXPECT_EQ(asked({}).nodes(), 1u);
  EXPECT_EQ(asked({}).tasks(), 1u);
  EXPECT_EQ(asked({}).tasks_per_node(), std::nullopt);
  EXPECT_EQ(asked({{"--nodes", "2-4"}}).nodes(), 2u);
  EXPECT_EQ(asked({{"--nodes", "2"}}).tasks_per_node(), 1u);
  EXPECT_EQ(asked({{"--nodes", "2"}, {"--ntasks", "8"}}).tasks_per_node(), 4u);
  EXPECT_EQ(asked({{"--nodes", "2"}, {"--ntasks", "7"}}).tasks_per_node(), std::nullopt);
  EXPECT_EQ(asked({{"--nodes", "2"}, {"--ntasks-per-node", "3"}}).tasks(), 6u);
  EXPECT_EQ(asked({{"--array", "1-9%3"}}).array_tasks(), 9u);
}

TEST(RequestedResources, derives_gpus_per_node_from_any_of_four_options) {
  EXPECT_EQ(asked({}).gpus_per_node(), std::nullopt);
  EXPECT_EQ(asked({{"--gres", "gpu:a100:4,tmp:1"}}).gpus_per_node(), 4u);
  EXPECT_EQ(asked({{"--gres", "gpu:a100:2,gpu:v100:1"}}).gpus_per_node(), 3u);
  EXPECT_EQ(asked({{"--gres", "gpu"}}).gpus_per_node(), 1u);
  EXPECT_EQ(asked({{"--gpus", "8"}, {"--nodes", "2"}}).gpus_per_node(), 4u);
  EXPECT_EQ(asked({{"--gpus", "7"}, {"--nodes", "2"}}).gpus_per_node(), std::nullopt);
  EXPECT_EQ(asked({{"--gpus-per-task", "h100:1"}, {"--ntasks-per-node", "4"}}).gpus_per_node(), 4u);
  EXPECT_EQ(asked({{"--gres", "gpu:kepler:N"}}).gpus_per_node(), std::nullopt);
}

TEST(RequestedResources, memory_of_zero_is_the_whole_node) {
  EXPECT_EQ(asked({{"--mem", "0"}}).memory_per_node(), std::nullopt);
  EXPECT_EQ(asked({{"--mem", "4G"}}).memory_per_node(), 4_GiB);
  EXPECT_EQ(asked({{"--mem", "much"}}).memory_per_node(), std::nullopt);
}

TEST(RequestedResources, counts_array_tasks_of_ranges_steps_and_lists) {
  EXPECT_THAT(array_indices("1-3,7,10-20:5%4"), ElementsAre(1, 2, 3, 7, 10, 15, 20));
  EXPECT_THAT(array_indices("x,4-2"), ElementsAre());
  EXPECT_EQ(array_indices("0-4294967295").size(), 1'000'000U);
  EXPECT_EQ(max_array_index("1-8,12%4"), 12U);
  EXPECT_EQ(max_array_index("0-4294967295"), 4294967295U);
  EXPECT_EQ(max_array_index("1-3,x"), std::nullopt);
  EXPECT_EQ(max_array_index("4294967296"), std::nullopt);
}

}  // namespace
}  // namespace stoker::slurm
