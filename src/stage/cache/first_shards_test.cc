#include "stage/cache/first_shards.h"

#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

class FirstShardsTest : public testing::Test {
 protected:
  std::function<void()> count() {
    return [this] { calls_ += 1; };
  }
  int calls_ = 0;
};

TEST_F(FirstShardsTest, calls_once_when_the_first_2_percent_of_the_bytes_are_settled) {
  FirstShards first(std::vector<std::uint64_t>(100, 10), count());
  EXPECT_EQ(first.count(), 2u);
  first.cache_checked();
  first.settled(1);
  first.settled(7);
  first.settled(1);
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(first.is_awaited());
  first.settled(0);
  EXPECT_EQ(calls_, 1);
  EXPECT_FALSE(first.is_awaited());
  first.settled(2);
  EXPECT_EQ(calls_, 1);
}

TEST_F(FirstShardsTest, waits_until_the_cached_shards_are_checked) {
  FirstShards first({100, 100}, count());
  first.settled(0);
  EXPECT_EQ(calls_, 0);
  first.cache_checked();
  EXPECT_EQ(calls_, 1);
}

TEST_F(FirstShardsTest, a_dataset_without_bytes_has_no_first_shards) {
  FirstShards none({}, count());
  none.cache_checked();
  EXPECT_EQ(calls_, 1);
  FirstShards empty({0, 0}, count());
  empty.cache_checked();
  EXPECT_EQ(calls_, 2);
}

TEST_F(FirstShardsTest, nothing_happens_without_a_reader) {
  FirstShards first({1}, {});
  EXPECT_FALSE(first.is_awaited());
  first.cache_checked();
  first.settled(0);
}

}  // namespace
}  // namespace stoker::stage
