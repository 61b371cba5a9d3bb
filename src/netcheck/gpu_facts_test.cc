#include "netcheck/gpu_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/fake_nvml.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankFacts facts_of(const observe::FakeNvml& nvml, int local_rank, std::optional<std::string> visible,
                   int gpus_per_rank = 0) {
  RankFacts facts;
  facts.local_rank = local_rank;
  facts.visible_gpus = std::move(visible);
  add_gpu_facts(observe::GpuReader::open(nvml.library()), gpus_per_rank, &facts);
  return facts;
}

TEST(GpuFacts, a_rank_uses_its_first_visible_gpu) {
  const observe::FakeNvml nvml("gpus 4\n");
  EXPECT_EQ(facts_of(nvml, 1, std::nullopt).gpu_uuid, "GPU-1");
  EXPECT_EQ(facts_of(nvml, 1, std::nullopt, 2).gpu_uuid, "GPU-2");
  EXPECT_EQ(facts_of(nvml, 1, "3,0").gpu_uuid, "GPU-0");
  EXPECT_EQ(facts_of(nvml, 1, "2").gpu_uuid, "GPU-2") << "Slurm has bound one to each task";
  EXPECT_EQ(facts_of(nvml, 0, "GPU-3").gpu, 3);
  EXPECT_EQ(facts_of(nvml, 5, std::nullopt).gpu_uuid, "GPU-1") << "more ranks than GPUs";
  EXPECT_THAT(facts_of(nvml, 0, std::nullopt).gpus,
              ElementsAre("Test GPU", "Test GPU", "Test GPU", "Test GPU"));
}

TEST(GpuFacts, mig_devices_are_different_gpus) {
  const observe::FakeNvml nvml("gpus 1\n0.mig 2\n");
  EXPECT_EQ(facts_of(nvml, 0, std::nullopt).gpu_uuid, "MIG-0-0");
  EXPECT_EQ(facts_of(nvml, 1, std::nullopt).gpu_uuid, "MIG-0-1");
  EXPECT_EQ(facts_of(nvml, 0, "MIG-0-1").gpu, 0);
}

TEST(GpuFacts, a_rank_without_a_gpu_has_none) {
  const observe::FakeNvml nvml("gpus 2\n");
  for (const char* visible : {"", "-1", "7"}) {
    EXPECT_EQ(facts_of(nvml, 0, visible).gpu, -1) << visible;
    EXPECT_EQ(facts_of(nvml, 0, visible).gpu_uuid, "") << visible;
  }
  EXPECT_EQ(facts_of(nvml, 0, "GPU-0,GPU-9").unknown_gpu, "GPU-9");
  EXPECT_EQ(facts_of(nvml, 0, "MIG-9").unknown_gpu, "MIG-9");
  EXPECT_EQ(facts_of(nvml, 0, "0,1").unknown_gpu, "");
  RankFacts facts;
  add_gpu_facts(observe::GpuReader::open("no-such-library.so"), 0, &facts);
  EXPECT_EQ(facts, RankFacts());
}

TEST(GpuFacts, links_and_their_limit_are_reported_once_per_node) {
  const observe::FakeNvml nvml("gpus 2\n0.nvlinks 18\n1.nvlinks 12\nnvlink.0.1 0\npath.0.1 40\n");
  const RankFacts first = facts_of(nvml, 0, std::nullopt);
  EXPECT_THAT(first.gpu_links, ElementsAre(GpuLink{.first = 0,
                                                   .second = 1,
                                                   .nvlinks = 12,
                                                   .path = observe::GpuPath::numa_node,
                                                   .has_peer_access = true}));
  EXPECT_NEAR(first.gpu_bytes_per_s, 478e9, 1e9);
  EXPECT_THAT(facts_of(nvml, 1, std::nullopt).gpu_links, IsEmpty());
  EXPECT_NEAR(facts_of(observe::FakeNvml("gpus 1\n0.pcie 4\n"), 0, std::nullopt).gpu_bytes_per_s, 31.5e9,
              1e8);
}

}  // namespace
}  // namespace stoker::netcheck
