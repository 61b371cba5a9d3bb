#include "loader/shard_order.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/test_dataset.h"

namespace stoker::loader {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ShardOrderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::vector<dataset::TestSample>> shards;
    for (int shard = 0; shard < 20; ++shard) {
      std::vector<dataset::TestSample>& samples = shards.emplace_back();
      for (int i = 0; i < 3; ++i) samples.push_back({format("{}-{}", shard, i), 0, {{"txt", "x"}}});
    }
    dataset::write_test_dataset(folder_.path(), shards);
    source_ = dataset::LocalShardSource::open(folder_.path(), "").value();
  }

  std::vector<std::uint32_t> order(Shuffle shuffle) {
    return shards_by_first_use(source_->samples(), {.seed = 3, .shuffle = shuffle, .window = 2}, Epoch{0});
  }

  TempDirectory folder_;
  std::unique_ptr<dataset::LocalShardSource> source_;
};

TEST_F(ShardOrderTest, is_the_order_of_the_first_samples) {
  const std::vector<std::uint32_t> by_shard = order(Shuffle::by_shard);
  ASSERT_THAT(by_shard, SizeIs(20));
  EXPECT_TRUE(std::ranges::is_permutation(by_shard, order(Shuffle::none)));
  OrderOptions options{.seed = 3, .shuffle = Shuffle::by_shard, .window = 2};
  options.samples = source_->samples().size();
  options.shards.assign(20, 3);
  const auto epoch = EpochOrder::create(options, Epoch{0});
  EXPECT_EQ(by_shard[0], source_->samples().position(epoch->at(0)).shard);
}

TEST_F(ShardOrderTest, a_training_in_the_stored_order_needs_the_shards_in_it) {
  std::vector<std::uint32_t> stored(20);
  std::iota(stored.begin(), stored.end(), 0u);
  EXPECT_EQ(order(Shuffle::none), stored);
}

TEST_F(ShardOrderTest, a_training_that_draws_from_all_shards_needs_them_in_no_order) {
  EXPECT_THAT(order(Shuffle::every_epoch), IsEmpty());
  EXPECT_THAT(order(Shuffle::full), IsEmpty());
}

}  // namespace
}  // namespace stoker::loader
