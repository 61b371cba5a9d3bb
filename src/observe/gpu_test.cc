#include "observe/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/fake_nvml.h"
#include "observe/gpu_health.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> texts_of(const std::vector<GpuXid>& xids) {
  std::vector<std::string> texts;
  for (const GpuXid& xid : xids) texts.push_back(format("{}: {}", xid.gpu, xid.code));
  return texts;
}

TEST(GpuReader, reads_the_available_values_of_each_gpu) {
  const FakeNvml nvml("gpus 3\n1.power -\n1.sm -\n1.throttle -\n2.denied 1\n");
  const GpuReader reader = GpuReader::open(nvml.library());
  const std::vector<GpuUsage> uses = reader.read();
  ASSERT_EQ(uses.size(), 2u) << "GPU 2 is not accessible to this job";
  EXPECT_EQ(uses[0].busy_percent, 93);
  EXPECT_EQ(uses[0].memory_bytes, 5000u);
  EXPECT_EQ(uses[0].memory_total_bytes, 8000u);
  EXPECT_EQ(uses[0].power_w, 345.6);
  EXPECT_EQ(uses[0].sm_clock_mhz, 1980);
  EXPECT_EQ(uses[0].memory_clock_mhz, 2619);
  EXPECT_EQ(uses[0].temperature_c, 65);
  EXPECT_EQ(uses[0].throttle_reasons, 0u);
  EXPECT_EQ(uses[0].ecc_errors, 0u);
  EXPECT_EQ(uses[1].power_w, std::nullopt) << "not supported, like on some laptops";
  EXPECT_EQ(uses[1].sm_clock_mhz, std::nullopt);
  EXPECT_EQ(uses[1].throttle_reasons, std::nullopt);
  EXPECT_EQ(uses[1].busy_percent, 93);
}

TEST(GpuReader, identifies_each_gpu_and_its_mig_devices) {
  const FakeNvml nvml("gpus 2\n1.mig 2\n");
  const GpuReader reader = GpuReader::open(nvml.library());
  ASSERT_EQ(reader.devices().size(), 2u);
  const GpuDevice& whole = reader.devices()[0];
  EXPECT_EQ(whole.name, "Test GPU");
  EXPECT_EQ(whole.uuid, "GPU-0");
  EXPECT_EQ(whole.pci_bus_id, "00000000:3B:00.0");
  EXPECT_EQ(whole.has_mig, false);
  EXPECT_THAT(whole.mig_uuids, IsEmpty());
  EXPECT_EQ(reader.devices()[1].has_mig, true);
  EXPECT_THAT(reader.devices()[1].mig_uuids, ElementsAre("MIG-1-0", "MIG-1-1"));
}

TEST(GpuReader, reports_how_gpus_are_connected) {
  const FakeNvml nvml(
      "gpus 3\n0.nvlinks 18\n1.nvlinks 18\nnvlink.0.1 0\npath.0.1 40\npath.1.2 -\npeer.0.2 5\npeer.1.2 "
      "-\n2.pcie 4\n2.lanes "
      "8\n1.pcie -\n");
  const GpuTopology topology = GpuReader::open(nvml.library()).topology();
  ASSERT_EQ(topology.ports.size(), 3u);
  EXPECT_EQ(topology.ports[0].nvlinks, 18);
  EXPECT_NEAR(topology.ports[0].nvlink_bytes_per_s, 478e9, 1e9);
  EXPECT_NEAR(topology.ports[0].pcie_bytes_per_s, 63e9, 1e9);
  EXPECT_EQ(topology.ports[1].pcie_bytes_per_s, 0) << "unknown";
  EXPECT_EQ(topology.ports[2].nvlinks, 0);
  EXPECT_EQ(topology.ports[2].nvlink_bytes_per_s, 0);
  EXPECT_NEAR(topology.ports[2].pcie_bytes_per_s, 15.7e9, 1e8);
  ASSERT_EQ(topology.pairs.size(), 3u);
  EXPECT_TRUE(topology.pairs[0].has_nvlink);
  EXPECT_EQ(topology.pairs[0].has_peer_access, true);
  EXPECT_EQ(topology.pairs[0].path, GpuPath::numa_node);
  EXPECT_EQ(topology.pairs[1].second, 2);
  EXPECT_FALSE(topology.pairs[1].has_nvlink);
  EXPECT_EQ(topology.pairs[1].has_peer_access, false);
  EXPECT_EQ(topology.pairs[1].path, GpuPath::machine);
  EXPECT_EQ(topology.pairs[2].path, std::nullopt);
  EXPECT_EQ(topology.pairs[2].has_peer_access, std::nullopt);
  EXPECT_TRUE(GpuReader::open("no-such-library.so").topology().ports.empty());
}

TEST(GpuReader, reports_each_xid_error_once) {
  const FakeNvml nvml("gpus 2\n");
  GpuReader reader = GpuReader::open(nvml.library());
  EXPECT_THAT(reader.poll_xids(), IsEmpty());
  nvml.play("gpus 2\nxid.1 79\nxid.0 13\n");
  EXPECT_THAT(texts_of(reader.poll_xids()), ElementsAre("1: 79", "0: 13"));
  EXPECT_THAT(reader.poll_xids(), IsEmpty());
}

TEST(GpuReader, an_older_driver_has_throttle_reasons_and_no_xid_errors) {
  const FakeNvml nvml("0.throttle 4\nxid.0 79\n", "-DOLD_DRIVER");
  GpuReader reader = GpuReader::open(nvml.library());
  EXPECT_EQ(reader.read().at(0).throttle_reasons, 4u);
  EXPECT_THAT(reader.poll_xids(), IsEmpty());
}

TEST(GpuReader, without_nvml_or_a_driver_has_no_gpus) {
  EXPECT_THAT(GpuReader::open("libno-such-thing.so").devices(), IsEmpty());
  EXPECT_THAT(GpuReader::open("libc.so.6").devices(), IsEmpty());
  const FakeNvml nvml("driver 0\n");
  GpuReader none = GpuReader::open(nvml.library());
  EXPECT_THAT(none.devices(), IsEmpty());
  EXPECT_THAT(none.read(), IsEmpty());
  EXPECT_THAT(none.poll_xids(), IsEmpty());
}

TEST(GpuHealth, throttling_has_reasons_in_words) {
  EXPECT_THAT(throttle_texts(0x4), ElementsAre("power limit"));
  EXPECT_THAT(throttle_texts(0x20), ElementsAre("temperature"));
  EXPECT_THAT(throttle_texts(0x48), ElementsAre("temperature")) << "the hardware bit is set with it";
  EXPECT_THAT(throttle_texts(0x8), ElementsAre("hardware slowdown"));
  EXPECT_THAT(throttle_texts(0x84), ElementsAre("power limit", "power brake"));
}

TEST(GpuHealth, idle_gpus_and_chosen_clocks_are_not_throttled) {
  EXPECT_THAT(throttle_texts(0x1 | 0x2 | 0x10 | 0x100), IsEmpty());
}

TEST(GpuHealth, an_xid_error_is_explained_in_words) {
  EXPECT_EQ(xid_text(0, "n1", "00000000:3B:00.0", 79),
            "GPU 0 (n1, 00000000:3B:00.0) reported Xid 79: it has fallen off the bus");
  EXPECT_EQ(xid_text(2, "n1", "", 999), "GPU 2 (n1) reported Xid 999: see NVIDIA's list of Xid errors");
}

}  // namespace
}  // namespace stoker::observe
