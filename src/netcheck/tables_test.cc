#include "netcheck/tables.h"

#include <gmock/gmock.h>

#include "netcheck/judge/test_report.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Tables, nccl_is_compared_with_the_links) {
  Report report = healthy(1);
  EXPECT_THAT(gpu_timing_table(report, Translator()).rows, IsEmpty());
  report.gpu_timings = {{.bytes = 128 << 20, .seconds = 0.0005, .bound_bytes_per_s = 478e9, .ranks = 4},
                        {.bytes = 1 << 20, .seconds = 0.00002, .bound_bytes_per_s = 0, .ranks = 4}};
  EXPECT_THAT(
      gpu_timing_table(report, Translator()).rows,
      ElementsAre(ElementsAre("all-reduce", "128 MiB", "500 us", "268 GB/s", "403 GB/s", "478 GB/s", "84 %"),
                  ElementsAre("all-reduce", "1 MiB", "20 us", "52.4 GB/s", "78.6 GB/s", "-", "-")));
}

TEST(Tables, pairs_of_gpus_with_the_same_connection_share_a_line) {
  Report report = healthy(1);
  EXPECT_THAT(gpu_link_table(report, Translator()).rows, IsEmpty());
  report.ranks[Rank(0)].gpu_links = {
      {.first = 0, .second = 1, .nvlinks = 18, .path = observe::GpuPath::numa_node, .has_peer_access = true},
      {.first = 0, .second = 2, .nvlinks = 0, .path = observe::GpuPath::machine, .has_peer_access = false},
      {.first = 1, .second = 2, .nvlinks = 0, .path = observe::GpuPath::machine, .has_peer_access = false},
      {.first = 2, .second = 3, .path = {}, .has_peer_access = {}}};
  EXPECT_THAT(gpu_link_table(report, Translator()).rows,
              ElementsAre(ElementsAre("n1", "0-1", "18 x NVLink", "yes"),
                          ElementsAre("n1", "0-2, 1-2", "between NUMA nodes", "no"),
                          ElementsAre("n1", "2-3", "unknown", "unknown")));
}

}  // namespace
}  // namespace stoker::netcheck
