#include "stage/cache/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::stage {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGB = 1'000'000'000;

// 100 GB on a slow shared filesystem, a fast disk, little memory.
PlaceFacts slow_source() {
  return {.bytes = 100 * kGB,
          .cached_bytes = 0,
          .disk_room = 500 * kGB,
          .memory_room = 10 * kGB,
          .source_rate = 0.5e9,
          .disk_rate = 2e9,
          .write_rate = 1e9,
          .demand_rate = 0,
          .epochs = 10,
          .source_filesystem = "Lustre"};
}

TEST(DecidePlace, stages_a_dataset_that_many_epochs_read_from_a_slow_source) {
  const PlaceDecision decision = decide_place(slow_source());
  EXPECT_TRUE(decision.is_copied);
  EXPECT_DOUBLE_EQ(decision.staging_s, 200);
  EXPECT_DOUBLE_EQ(decision.shared_epoch_s, 200);
  EXPECT_DOUBLE_EQ(decision.local_epoch_s, 50);
  // 200 s of copying, and 150 s less in each epoch.
  EXPECT_EQ(decision.break_even_epoch, 2u);
}

TEST(DecidePlace, shards_in_caches_of_other_users_are_copied_at_the_speed_of_the_disk) {
  PlaceFacts facts = slow_source();
  facts.shared_bytes = 50 * kGB;
  EXPECT_DOUBLE_EQ(decide_place(facts).staging_s, 100 + 50);
  facts.cached_bytes = 80 * kGB;
  EXPECT_DOUBLE_EQ(decide_place(facts).staging_s, 20);
}

TEST(DecidePlace, does_not_stage_for_one_epoch) {
  PlaceFacts facts = slow_source();
  facts.epochs = 1;
  const PlaceDecision decision = decide_place(facts);
  EXPECT_FALSE(decision.is_copied);
  EXPECT_THAT(decision.reason, HasSubstr("only after epoch 2, and the job has 1"));
}

TEST(DecidePlace, does_not_stage_when_the_training_is_slower_than_the_source) {
  PlaceFacts facts = slow_source();
  facts.demand_rate = 0.1e9;
  const PlaceDecision decision = decide_place(facts);
  EXPECT_FALSE(decision.is_copied);
  EXPECT_EQ(decision.break_even_epoch, std::nullopt);
  EXPECT_THAT(decision.reason, HasSubstr("as the training needs"));
}

TEST(DecidePlace, does_not_stage_what_the_page_cache_holds) {
  PlaceFacts facts = slow_source();
  facts.memory_room = 200 * kGB;
  const PlaceDecision decision = decide_place(facts);
  EXPECT_FALSE(decision.is_copied);
  EXPECT_THAT(decision.reason, HasSubstr("page cache"));
}

TEST(DecidePlace, does_not_stage_beyond_the_room_of_the_disk) {
  PlaceFacts facts = slow_source();
  facts.disk_room = 99 * kGB;
  EXPECT_THAT(decide_place(facts).reason,
              HasSubstr("100 GB is missing in the cache, and the disk has room for 99.0 GB"));
  facts.cached_bytes = kGB;
  EXPECT_TRUE(decide_place(facts).is_copied);
}

TEST(DecidePlace, uses_a_complete_copy_whatever_it_cost) {
  PlaceFacts facts = slow_source();
  facts.cached_bytes = facts.bytes;
  facts.disk_room = 0;
  facts.epochs = 1;
  EXPECT_TRUE(decide_place(facts).is_copied);
  EXPECT_DOUBLE_EQ(decide_place(facts).staging_s, 0);
}

TEST(DecidePlace, does_not_copy_from_one_disk_of_a_node_to_another) {
  PlaceFacts facts = slow_source();
  facts.source_filesystem = "";
  EXPECT_FALSE(decide_place(facts).is_copied);
}

TEST(DecidePlace, does_not_stage_at_unknown_rates) {
  PlaceFacts facts = slow_source();
  facts.source_rate = 0;
  EXPECT_THAT(decide_place(facts).reason, HasSubstr("unknown"));
}

TEST(DecidePlace, an_empty_dataset_stays) {
  PlaceFacts facts = slow_source();
  facts.bytes = 0;
  EXPECT_EQ(decide_place(facts).break_even_epoch, 1u);
}

TEST(MeasureRate, of_an_empty_file_and_of_none) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "empty", "").ok());
  EXPECT_TRUE(measure_read_rate(box / "empty").ok());
  EXPECT_EQ(measure_read_rate(box / "none").status().code(), Code::not_found);
  EXPECT_GT(*measure_write_rate(box.path()), 0);
  EXPECT_THAT(*list_directory(box.path()), testing::SizeIs(1));
}

}  // namespace
}  // namespace stoker::stage
