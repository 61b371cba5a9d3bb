#include "loader/sampler/order.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/golden_test.h"

namespace stoker::loader {
namespace {

using Ids = std::vector<std::uint64_t>;
using ::testing::ElementsAre;

EpochOrder order_of(std::uint64_t samples, std::uint64_t seed, int epoch,
                    Shuffle shuffle = Shuffle::every_epoch) {
  return EpochOrder::create({samples, seed, shuffle}, Epoch{epoch}).value();
}

Ids ids_of(const EpochOrder& order, const RankShare& share) {
  Ids ids;
  for (std::uint64_t i = 0; i < share.count(); ++i) ids.push_back(order.at(share.position(i)));
  return ids;
}

RankShare share_of(std::uint64_t samples, std::uint64_t begin, int rank, int world, Remainder remainder) {
  return RankShare::create(samples, begin, {Rank{rank}, WorldSize{world}, remainder}).value();
}

TEST(Order, equals_pytorchs_distributed_sampler) {
  const nlohmann::json reference = golden("distributed_sampler.json");
  ASSERT_GE(reference["rows"].size(), 5u);
  for (const auto& row : reference["rows"]) {
    SCOPED_TRACE(row.dump());
    const auto shuffle = row["shuffle"].get<bool>() ? Shuffle::every_epoch : Shuffle::none;
    const auto remainder = row["drop_last"].get<bool>() ? Remainder::drop : Remainder::pad;
    const EpochOrder order = order_of(row["n"], row["seed"], row["epoch"], shuffle);
    const RankShare share = share_of(row["n"], 0, row["rank"], row["world"], remainder);
    EXPECT_EQ(share.count(), row["len"].get<std::uint64_t>());
    expect_golden_list(ids_of(order, share), row, "indices");
  }
}

TEST(Order, exact_remainder_covers_every_sample_once_on_uneven_ranks) {
  for (int world : {1, 2, 3, 4, 7, 16}) {
    Ids seen;
    const EpochOrder order = order_of(10, 0, 0, Shuffle::none);
    for (int rank = 0; rank < world; ++rank) {
      const RankShare share = share_of(10, 0, rank, world, Remainder::exact);
      EXPECT_LE(share.count(), share.max_count());
      EXPECT_GE(share.count() + 1, share.max_count());
      const Ids ids = ids_of(order, share);
      seen.insert(seen.end(), ids.begin(), ids.end());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)) << world;
  }
}

TEST(Order, a_different_world_size_resumes_with_the_rest) {
  const std::uint64_t samples = 103;
  const EpochOrder order = order_of(samples, 3, 5);
  for (int before : {1, 2, 3, 8}) {
    for (int after : {1, 2, 5, 7}) {
      Ids seen;
      const std::uint64_t per_rank = 4;
      for (int rank = 0; rank < before; ++rank) {
        const RankShare share = share_of(samples, 0, rank, before, Remainder::exact);
        for (std::uint64_t i = 0; i < per_rank; ++i) seen.push_back(order.at(share.position(i)));
      }
      const std::uint64_t position =
          share_of(samples, 0, 0, before, Remainder::exact).position_after(per_rank);
      for (int rank = 0; rank < after; ++rank) {
        const Ids ids = ids_of(order, share_of(samples, position, rank, after, Remainder::exact));
        seen.insert(seen.end(), ids.begin(), ids.end());
      }
      std::sort(seen.begin(), seen.end());
      Ids all(samples);
      std::iota(all.begin(), all.end(), 0u);
      EXPECT_EQ(seen, all) << before << " ranks, then " << after;
    }
  }
}

TEST(Order, resuming_at_any_position_continues_the_sequence) {
  const EpochOrder order = order_of(50, 1, 2);
  for (Remainder remainder : {Remainder::pad, Remainder::drop, Remainder::exact}) {
    for (int rank = 0; rank < 3; ++rank) {
      const RankShare whole = share_of(50, 0, rank, 3, remainder);
      const Ids expected = ids_of(order, whole);
      for (std::uint64_t taken = 0; taken <= whole.max_count(); ++taken) {
        const Ids rest = ids_of(order, share_of(50, whole.position_after(taken), rank, 3, remainder));
        const Ids tail(expected.begin() + static_cast<long>(std::min(taken, whole.count())), expected.end());
        EXPECT_EQ(rest, tail) << rank << " " << taken;
      }
    }
  }
}

TEST(Order, position_after_the_last_sample_is_the_end_and_leaves_nothing) {
  EXPECT_EQ(share_of(10, 0, 0, 4, Remainder::pad).position_after(3), 12u);
  EXPECT_EQ(share_of(10, 0, 0, 4, Remainder::pad).position_after(100), 12u);
  EXPECT_EQ(share_of(10, 0, 0, 4, Remainder::drop).position_after(100), 8u);
  EXPECT_EQ(share_of(10, 0, 3, 4, Remainder::exact).position_after(100), 10u);
  EXPECT_EQ(share_of(10, 12, 0, 4, Remainder::pad).count(), 0u);
  EXPECT_EQ(share_of(10, 10, 0, 4, Remainder::exact).count(), 0u);
}

TEST(Order, is_refused_without_samples_or_with_an_impossible_rank) {
  EXPECT_EQ(EpochOrder::create({}, Epoch{0}).status().to_string(), "order: no samples");
  EXPECT_EQ(EpochOrder::create({.samples = 1ull << 32}, Epoch{0}).status().to_string(),
            "order: 4 294 967 296 samples are too many (at most 4 294 967 295)");
  EXPECT_EQ(RankShare::create(10, 0, {Rank{2}, WorldSize{2}, Remainder::pad}).status().to_string(),
            "order: rank 2 is not in a world of 2");
  EXPECT_EQ(RankShare::create(10, 0, {Rank{0}, WorldSize{0}, Remainder::pad}).status().to_string(),
            "order: world size 0 is not at least 1");
}

TEST(OrderState, reads_as_four_numbers) {
  EXPECT_EQ(to_text(OrderState{7, 3, 25600, 50000}), "seed 7, epoch 3, position 25600 of 50000");
}

}  // namespace
}  // namespace stoker::loader
