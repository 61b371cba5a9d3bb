// Properties for any number of samples, ranks and workers: thousands of random cases, the same every time.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "loader/sampler/mixture.h"
#include "loader/sampler/order.h"
#include "loader/sampler/quality.h"

namespace stoker::loader {
namespace {

using Ids = std::vector<std::uint64_t>;

Ids all_ids(std::uint64_t n) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), 0u);
  return ids;
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Chunks of up to `most` samples, empty ones too.
OrderOptions by_chunk(std::mt19937& chance, std::uint64_t samples, std::uint64_t most) {
  OrderOptions options{.samples = samples, .seed = chance(), .shuffle = Shuffle::by_chunk};
  options.window = 1 + chance() % 9;
  for (std::uint64_t left = samples; left > 0;) {
    options.shards.push_back(std::min<std::uint64_t>(left, chance() % (most + 1)));
    left -= options.shards.back();
  }
  return options;
}

// Random options of any kind in which every sample appears once.
OrderOptions random_options(std::mt19937& chance, std::uint64_t samples) {
  OrderOptions options{.samples = samples, .seed = chance()};
  constexpr Shuffle kKinds[] = {Shuffle::none, Shuffle::every_epoch, Shuffle::full, Shuffle::by_shard,
                                Shuffle::by_chunk};
  options.shuffle = kKinds[chance() % 5];
  options.window = 1 + chance() % 5;
  for (std::uint64_t left = samples; left > 0;) {
    const std::uint64_t some = std::min<std::uint64_t>(left, chance() % 20);  // empty ones, too
    options.shards.push_back(some);
    left -= some;
  }
  return options;
}

Ids take(const EpochOrder& order, const RankShare& share, std::uint64_t begin, std::uint64_t end) {
  Ids ids;
  for (std::uint64_t i = begin; i < std::min(end, share.count()); ++i)
    ids.push_back(order.at(share.position(i)));
  return ids;
}

TEST(OrderProperty, every_kind_covers_every_sample_once) {
  std::mt19937 chance(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t samples = 1 + chance() % 300;
    const OrderOptions options = random_options(chance, samples);
    const EpochOrder order =
        EpochOrder::create(options, Epoch{static_cast<std::int64_t>(chance() % 10)}).value();
    Ids seen;
    for (std::uint64_t p = 0; p < samples; ++p) seen.push_back(order.at(p));
    ASSERT_EQ(sorted(seen), all_ids(samples)) << samples << " " << static_cast<int>(options.shuffle);
  }
}

TEST(OrderProperty, list_equals_at_for_each_position) {
  std::mt19937 chance(12);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t samples = 1 + chance() % 300;
    const EpochOrder order = EpochOrder::create(random_options(chance, samples), Epoch{1}).value();
    const std::uint64_t begin = chance() % (2 * samples);
    const std::uint64_t step = 1 + chance() % (2 * samples);
    Ids listed(chance() % 40), expected;
    order.list(begin, step, listed);
    for (std::size_t k = 0; k < listed.size(); ++k) expected.push_back(order.at(begin + k * step));
    ASSERT_EQ(listed, expected) << samples << " from " << begin << " by " << step;
  }
}

// Ranks and workers change: the world size changes up to four times within an epoch, each rank distributes
// its share to its workers in turn, and a reader reassembles the batches.
TEST(OrderProperty, any_worlds_and_workers_resume_the_same_order) {
  std::mt19937 chance(2);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t samples = 1 + chance() % 400;
    const EpochOrder order = EpochOrder::create(random_options(chance, samples), Epoch{3}).value();
    Ids seen, expected;
    std::uint64_t position = 0;
    for (int attempt = 0; attempt < 5 && position < samples; ++attempt) {
      const int world = 1 + static_cast<int>(chance() % 9);
      const std::uint64_t steps = attempt < 4 ? chance() % 30 : samples;
      std::uint64_t after = 0;
      for (int rank = 0; rank < world; ++rank) {
        const RankShare share =
            RankShare::create(samples, position, {Rank{rank}, WorldSize{world}, Remainder::exact}).value();
        const Ids ids = take(order, share, 0, steps);
        const std::uint64_t workers = 1 + chance() % 4;
        for (std::uint64_t worker = 0; worker < workers; ++worker) {
          for (std::uint64_t k = worker; k < ids.size(); k += workers) seen.push_back(ids[k]);
        }
        after = std::max(after, share.position_after(steps));
      }
      position = after;
    }
    for (std::uint64_t p = 0; p < position; ++p) expected.push_back(order.at(p));
    ASSERT_EQ(sorted(seen), sorted(expected)) << samples;
  }
}

TEST(OrderProperty, remainders_behave_as_documented) {
  std::mt19937 chance(3);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t samples = 1 + chance() % 200;
    const std::uint64_t begin = chance() % (samples + 3);
    const int world = 1 + static_cast<int>(chance() % 12);
    const std::uint64_t left = begin < samples ? samples - begin : 0;
    for (Remainder remainder : {Remainder::pad, Remainder::drop, Remainder::exact}) {
      std::uint64_t taken = 0, real = 0, least = ~0ull, most = 0;
      for (int rank = 0; rank < world; ++rank) {
        const RankShare share =
            RankShare::create(samples, begin, {Rank{rank}, WorldSize{world}, remainder}).value();
        taken += share.count();
        least = std::min(least, share.count());
        most = std::max(most, share.count());
        for (std::uint64_t k = 0; k < share.count(); ++k) real += share.is_padding(k) ? 0 : 1;
      }
      const auto ranks = static_cast<std::uint64_t>(world);
      if (remainder == Remainder::exact) {
        ASSERT_EQ(taken, left);
        ASSERT_LE(most - least, 1u);
      } else {
        ASSERT_EQ(most, least) << "ranks must be even";
        ASSERT_EQ(taken,
                  remainder == Remainder::pad ? (left + ranks - 1) / ranks * ranks : left / ranks * ranks);
      }
      ASSERT_EQ(real, remainder == Remainder::drop ? left / ranks * ranks : left)
          << "masked, no sample counts twice";
    }
  }
}

// A step has the same set of positions as when ranks alternate, for any divisibility.
TEST(ChunkPieces, of_a_step_are_its_samples_once_for_any_world_window_and_remainder) {
  std::mt19937 chance(21);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t samples = 1 + chance() % 300;
    const EpochOrder order = EpochOrder::create(by_chunk(chance, samples, 20), Epoch{2}).value();
    const std::uint64_t begin = chance() % samples;
    const int world = 1 + static_cast<int>(chance() % 9);
    const std::uint64_t batch = 1 + chance() % 40;
    const auto remainder = static_cast<Remainder>(chance() % 3);
    for (std::uint64_t taken = 0;; taken += batch) {
      Ids by_pieces, by_turns;
      for (int rank = 0; rank < world; ++rank) {
        const RankShare share =
            RankShare::create(samples, begin, {Rank{rank}, WorldSize{world}, remainder}).value();
        if (taken >= share.count()) continue;
        const Ids turns = take(order, share, taken, taken + batch);
        const RankSlice slice = share.slice(taken, batch);
        ASSERT_EQ(slice.size, turns.size());
        Ids ids(slice.size);
        order.list(slice, ids);
        by_pieces.insert(by_pieces.end(), ids.begin(), ids.end());
        by_turns.insert(by_turns.end(), turns.begin(), turns.end());
      }
      ASSERT_EQ(sorted(by_pieces), sorted(by_turns)) << samples << " samples, " << world << " ranks";
      if (by_turns.empty()) break;
    }
  }
}

// How often a chunk is unpacked by all ranks together, if each keeps the chunks of a window.
double times_unpacked(std::uint32_t window, int world, std::uint64_t batch, bool is_by_piece) {
  constexpr std::uint64_t kChunks = 800, kEach = 64;
  const OrderOptions options{.samples = kChunks * kEach,
                             .seed = 5,
                             .shuffle = Shuffle::by_chunk,
                             .shards = std::vector<std::uint64_t>(kChunks, kEach),
                             .window = window};
  const EpochOrder order = EpochOrder::create(options, Epoch{0}).value();
  std::uint64_t unpacked = 0;
  for (int rank = 0; rank < world; ++rank) {
    const RankShare share =
        RankShare::create(options.samples, 0, {Rank{rank}, WorldSize{world}, Remainder::drop}).value();
    std::vector<bool> has(kChunks);
    for (std::uint64_t taken = 0; taken < share.count(); taken += batch) {
      Ids ids = take(order, share, taken, taken + batch);
      if (is_by_piece) order.list(share.slice(taken, batch), ids);
      for (std::uint64_t id : ids) has[id / kEach] = true;
    }
    unpacked += static_cast<std::uint64_t>(std::count(has.begin(), has.end(), true));
  }
  return static_cast<double>(unpacked) / kChunks;
}

TEST(ChunkPieces, quality_matches_the_documentation) {
  struct Row {
    std::uint32_t window;
    int world;
    std::uint64_t batch;
    double by_turns, by_piece;
  };
  const Row stated[] = {{32, 2, 128, 2, 1.1},
                        {256, 2, 128, 2, 1.1},
                        {256, 4, 128, 4, 1.25},
                        {256, 8, 128, 8, 1.35},
                        {256, 8, 32, 8, 1.8}};
  for (const Row& row : stated) {
    EXPECT_NEAR(times_unpacked(row.window, row.world, row.batch, false), row.by_turns, 0.05);
    EXPECT_NEAR(times_unpacked(row.window, row.world, row.batch, true), row.by_piece, 0.06)
        << row.window << " " << row.world << " " << row.batch;
  }
}

TEST(Permutation, no_place_is_likelier_than_another) {
  for (std::uint64_t n : {2, 3, 5, 12, 50, 97}) {
    constexpr std::uint64_t kKeys = 20000;
    std::vector<double> count(n * n);
    for (std::uint64_t epoch = 0; epoch < kKeys; ++epoch) {
      const Permutation order(n, permutation_key(9, epoch, 1));
      for (std::uint64_t i = 0; i < n; ++i) ++count[i * n + order.at(i)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(n);
    double chi_square = 0;
    for (double c : count) chi_square += (c - expected) * (c - expected) / expected;
    const auto freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_NEAR(chi_square, freedom, 5 * std::sqrt(2 * freedom) + 3) << n;
  }
}

TEST(Permutation, neighbours_end_up_anywhere) {
  constexpr std::uint64_t kSize = 100003;
  const Permutation order(kSize, permutation_key(1, 2, 3));
  std::vector<double> count(100);
  for (std::uint64_t i = 0; i + 1 < kSize; ++i)
    ++count[(order.at(i + 1) + kSize - order.at(i)) % kSize * 100 / kSize];
  double chi_square = 0;
  for (double c : count) chi_square += (c - 1000.0) * (c - 1000.0) / 1000.0;
  EXPECT_NEAR(chi_square, 99, 70);
}

TEST(Permutation, reaches_every_place_of_large_sizes) {
  const std::uint64_t size = (std::uint64_t{1} << 48) - 59;
  const Permutation order(size, permutation_key(1, 2, 3));
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t place = order.at(size - 1 - i);
    ASSERT_LT(place, size);
    most = std::max(most, place);
  }
  EXPECT_GT(most, size / 100 * 99);
}

TEST(WeightedOrder, draws_in_proportion) {
  const std::vector<double> weights{1, 0, 3, 0.5, 5.5};
  const auto table = std::make_shared<const WeightTable>(WeightTable::create(weights).value());
  const OrderOptions options{.samples = 5, .seed = 4, .shuffle = Shuffle::weighted, .weights = table};
  std::vector<int> count(5);
  for (int epoch = 0; epoch < 20000; ++epoch) {
    const EpochOrder order = EpochOrder::create(options, Epoch{epoch}).value();
    for (std::uint64_t p = 0; p < 5; ++p) ++count[order.at(p)];
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(count[i], weights[i] * 10000, 500) << i;
  EXPECT_EQ(count[1], 0);
}

TEST(WeightedOrder, rejects_invalid_weights) {
  const auto refusal = [](const std::vector<double>& weights) {
    return WeightTable::create(weights).status().to_string();
  };
  EXPECT_EQ(refusal({1, -2}), "order: weight -2 of sample 1 is negative or not finite");
  EXPECT_EQ(refusal({0, 0}), "order: all weights are 0");
  EXPECT_EQ(refusal({1e308, 1e308}), "order: the sum of the weights is not finite");
  const auto table =
      std::make_shared<const WeightTable>(WeightTable::create(std::vector<double>{1, 1}).value());
  EXPECT_EQ(EpochOrder::create({.samples = 3, .shuffle = Shuffle::weighted, .weights = table}, Epoch{0})
                .status()
                .to_string(),
            "order: 2 weights for 3 samples");
}

TEST(ShardOrder, rejects_shards_with_a_wrong_sum) {
  EXPECT_EQ(EpochOrder::create({.samples = 3, .shuffle = Shuffle::by_shard, .shards = {1, 1}}, Epoch{0})
                .status()
                .to_string(),
            "order: 2 samples in shards, 3 in total");
  EXPECT_EQ(
      EpochOrder::create({.samples = 3, .shuffle = Shuffle::by_shard, .shards = {3}, .window = 0}, Epoch{0})
          .status()
          .to_string(),
      "order: window of 0 shards");
}

// The figures in docs/sample-order.md.
TEST(ShardOrder, quality_matches_the_documentation) {
  const std::vector<std::uint64_t> shards(128, 1000);
  const auto quality = [&](Shuffle shuffle, std::uint32_t window) {
    const OrderOptions options{
        .samples = 128000, .seed = 1, .shuffle = shuffle, .shards = shards, .window = window};
    return measure_shuffle(EpochOrder::create(options, Epoch{0}).value(), shards, 256);
  };
  const ShuffleQuality torch = quality(Shuffle::every_epoch, 1);
  const ShuffleQuality full = quality(Shuffle::full, 1);
  EXPECT_NEAR(full.distance, 1, 0.01);
  EXPECT_NEAR(torch.distance, 1, 0.01);
  EXPECT_NEAR(full.shards_per_batch, torch.shards_per_batch, 0.01);
  EXPECT_NEAR(full.open_shards, 128, 0.5);
  const ShuffleQuality windows = quality(Shuffle::by_shard, 16);
  EXPECT_NEAR(windows.distance, 1, 0.15);
  EXPECT_NEAR(windows.open_shards, 16, 1.5);
  EXPECT_NEAR(windows.shards_per_batch, 16 / 110.9, 0.01);
  const ShuffleQuality none = quality(Shuffle::none, 1);
  EXPECT_EQ(none.distance, 0);
  EXPECT_LT(none.open_shards, 2.1);
}

TEST(ChunkOrder, quality_matches_the_documentation) {
  std::vector<std::uint64_t> chunks(781, 64);
  chunks.push_back(16);
  const auto quality = [&](std::uint32_t window) {
    const OrderOptions options{
        .samples = 50000, .seed = 1, .shuffle = Shuffle::by_chunk, .shards = chunks, .window = window};
    return measure_shuffle(EpochOrder::create(options, Epoch{0}).value(), chunks, 256);
  };
  const std::pair<std::uint32_t, double> stated[] = {{16, 0.08}, {64, 0.29}, {256, 0.74}, {782, 1.0}};
  for (const auto& [window, share] : stated) {
    EXPECT_NEAR(quality(window).shards_per_batch, share, 0.006) << window;
    EXPECT_NEAR(quality(window).distance, 1, 0.05) << window;
  }
}

TEST(Mixture, every_dataset_has_its_share_and_every_sample_appears) {
  std::mt19937 chance(7);
  for (int i = 0; i < 30; ++i) {
    std::vector<MixturePart> parts;
    for (std::size_t k = 0; k < 1 + chance() % 5; ++k)
      parts.push_back({1 + chance() % 3000, 0.2 + (chance() % 100) / 50.0});
    const Mixture mixture = Mixture::create(parts, chance()).value();
    std::vector<std::vector<int>> seen;
    std::uint32_t shares = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      seen.emplace_back(parts[k].samples, 0);
      shares += mixture.share(k);
    }
    ASSERT_EQ(shares, 1024u);
    for (std::uint64_t p = 0; p < 10240; ++p) {
      const MixturePlace place = mixture.at(p);
      ASSERT_EQ(place, mixture.at(p));
      ++seen[place.dataset][place.sample];
    }
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const std::uint64_t taken = std::uint64_t{10} * mixture.share(k);
      const auto [least, most] = std::minmax_element(seen[k].begin(), seen[k].end());
      EXPECT_EQ(static_cast<std::uint64_t>(std::accumulate(seen[k].begin(), seen[k].end(), 0)), taken);
      // After whole blocks, no sample is more than one pass ahead.
      EXPECT_LE(*most - *least, 1);
    }
  }
}

TEST(Mixture, rejects_invalid_parts) {
  EXPECT_EQ(Mixture::create({}, 0).status().to_string(), "mixture: 0 datasets are not between 1 and 1024");
  EXPECT_EQ(Mixture::create({{0, 1}}, 0).status().to_string(),
            "mixture: dataset 0 has 0 samples (1 to 2^48)");
  EXPECT_EQ(Mixture::create({{5, 0}}, 0).status().to_string(),
            "mixture: weight 0 of dataset 0 is not positive");
  EXPECT_EQ(Mixture::create({{5, 1}, {5, 1e-6}}, 0).status().to_string(),
            "mixture: dataset 1 has less than 1 in 1 024 samples (weight 1e-06)");
}

}  // namespace
}  // namespace stoker::loader
