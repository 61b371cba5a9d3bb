#include "record/staged_data.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "record/run_events.h"

namespace stoker::record {
namespace {

class StagedDataTest : public testing::Test {
 protected:
  std::optional<StagedData> sum_of(const std::vector<Staged>& events) {
    auto writer = EventWriter::open(folder_ / "events-node-0000.jsonl");
    for (const Staged& event : events) EXPECT_TRUE(write_event(*writer, event).ok());
    return staged_data(*read_attempt_events(folder_.path()));
  }
  TempDirectory folder_;
};

TEST_F(StagedDataTest, sums_the_bytes_of_all_nodes) {
  const auto sum = sum_of({{.node = 0, .bytes = 100, .seconds = 2, .received_bytes = 60},
                           {.node = 1, .bytes = 0, .seconds = 1, .cached_bytes = 100},
                           // What node 0 copied beside its ranks.
                           {.node = 0, .bytes = 40, .seconds = 9, .received_bytes = 0},
                           {.node = 1, .is_stage_out = true, .bytes = 7000, .seconds = 50}});
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(sum->nodes, 2u);
  EXPECT_EQ(sum->read, 80u);
  EXPECT_EQ(sum->received, 60u);
  EXPECT_EQ(sum->cached, 100u);
  EXPECT_EQ(sum->seconds, 9);
  EXPECT_DOUBLE_EQ(sum->hit_rate(), 160.0 / 240);
}

TEST_F(StagedDataTest, impossible_bytes_do_not_become_large_ones) {
  const auto sum = sum_of({{.node = 0, .bytes = 10, .received_bytes = 60}, {.node = 1, .bytes = -5}});
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(sum->read, 0u);
  EXPECT_EQ(sum->received, 60u);
}

TEST_F(StagedDataTest, a_run_that_staged_nothing_has_none) {
  EXPECT_FALSE(sum_of({}).has_value());
  EXPECT_FALSE(sum_of({{.node = 0, .is_stage_out = true, .bytes = 5}}).has_value());
}

}  // namespace
}  // namespace stoker::record
