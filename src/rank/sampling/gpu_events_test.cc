#include "rank/sampling/gpu_events.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "record/run_events.h"

namespace stoker::rank {
namespace {

using ::testing::ElementsAre;

TEST(GpuEvents, gpus_and_their_errors_are_in_the_events) {
  TempDirectory box;
  auto events = record::EventWriter::open(box / "events-node-0000.jsonl");
  ASSERT_TRUE(events.ok());
  const std::vector<observe::GpuDevice> gpus = {
      {.name = "H100", .uuid = "GPU-a", .pci_bus_id = "00000000:3B:00.0"},
      {.name = "H100", .mig_uuids = {"MIG-a", "MIG-b"}}};
  record_gpus(gpus, {2, "n1"}, *events);
  EXPECT_THAT(record_gpu_faults({{.gpu = 0, .code = 79}}, gpus, {2, "n1"}, *events),
              ElementsAre("GPU 0 (n1, 00000000:3B:00.0) reported Xid 79: it has fallen off the bus"));
  const auto log = record::read_events(box / "events-node-0000.jsonl");
  ASSERT_TRUE(log.ok());
  ASSERT_EQ(log->events.size(), 3u);
  EXPECT_EQ(record::gpu_found(log->events[0])->uuid, "GPU-a");
  EXPECT_EQ(record::gpu_found(log->events[1])->gpu, 1);
  EXPECT_EQ(record::gpu_found(log->events[1])->mig_devices, 2);
  EXPECT_EQ(record::gpu_fault(log->events[2])->code, 79);
  EXPECT_EQ(record::gpu_fault(log->events[2])->host, "n1");
  EXPECT_EQ(record::gpu_found(log->events[0])->node, 2);
  EXPECT_EQ(record::gpu_fault(log->events[2])->node, 2);
}

}  // namespace
}  // namespace stoker::rank
