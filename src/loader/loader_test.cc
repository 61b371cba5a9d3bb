#include "stoker/loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sanitizers.h"
#include "loader/test_pictures.h"

namespace stoker::loader {
namespace {

TEST(Loader, returns_each_sample_with_its_label_and_pixels) {
  const PictureDataset dataset(100);
  LoaderOptions options = options_of(32);
  options.transform.operations = {{"center_crop", {{"size", double{kSide}}}}};
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->batches_per_epoch(), 4u);
  const std::vector<ReceivedBatch> all = read_epochs(*loader, 1);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[3].samples.size(), 4u);
  for (const ReceivedBatch& got : all) {
    ASSERT_EQ(got.images.size(), got.samples.size() * 3 * kSide * kSide);
    for (std::size_t i = 0; i < got.samples.size(); ++i) {
      const float* planes = got.images.data() + i * 3 * kSide * kSide;
      EXPECT_EQ(got.labels[i], static_cast<std::int64_t>(got.samples[i] % 7));
      EXPECT_EQ(std::lround(planes[0] * 255), static_cast<long>(got.samples[i] % 250));
      EXPECT_EQ(std::lround(planes[kSide * kSide] * 255), static_cast<long>(got.samples[i] / 250));
      EXPECT_EQ(std::lround(planes[2 * kSide * kSide + 7] * 255), 35);
    }
  }
  std::vector<std::uint64_t> seen = samples_of(all);
  std::sort(seen.begin(), seen.end());
  std::vector<std::uint64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(seen, expected);
}

TEST(Loader, returns_the_same_batches_for_any_threads_prefetch_and_cache) {
  const PictureDataset dataset(90);
  auto reference = Loader::open(dataset.source(), options_of(16)).value();
  const std::vector<ReceivedBatch> expected = read_epochs(*reference, 3);
  for (std::uint32_t threads : {1, 2, 5}) {
    for (std::uint32_t prefetch : {1, 2, 9}) {
      for (ByteCount cache : {0_KiB, 3_KiB, 4_MiB}) {
        LoaderOptions options = options_of(16);
        options.threads = threads;
        options.prefetch = prefetch;
        options.cache = cache;
        auto loader = Loader::open(dataset.source(), options).value();
        EXPECT_EQ(read_epochs(*loader, 3), expected) << threads << " threads, prefetch " << prefetch;
      }
    }
  }
}

TEST(Loader, resuming_at_any_position_continues_the_sequence) {
  const PictureDataset dataset(50);
  for (int rank : {0, 1}) {
    const LoaderOptions options = options_of(8, rank, 2);
    auto whole = Loader::open(dataset.source(), options).value();
    const std::vector<ReceivedBatch> expected = read_epochs(*whole, 2);
    for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
      auto resumed = Loader::open(dataset.source(), options, expected[i].after).value();
      EXPECT_EQ(resumed->state(), expected[i].after);
      const int epochs = expected[i].after.epoch == 0 ? 2 : 1;
      const std::vector<ReceivedBatch> rest(expected.begin() + static_cast<long>(i) + 1, expected.end());
      EXPECT_EQ(read_epochs(*resumed, epochs), rest) << "rank " << rank << ", after batch " << i;
    }
  }
}

TEST(Loader, every_shuffle_covers_all_samples_and_resumes_exactly) {
  const PictureDataset dataset(130);  // 4 shards
  for (Shuffle shuffle : {Shuffle::none, Shuffle::every_epoch, Shuffle::full, Shuffle::by_shard}) {
    LoaderOptions options = options_of(16);
    options.shuffle = shuffle;
    options.window = 2;
    auto loader = Loader::open(dataset.source(), options).value();
    const std::vector<ReceivedBatch> all = read_epochs(*loader, 2);
    for (int epoch : {0, 1}) {
      std::vector<std::uint64_t> seen = samples_of({all.begin() + 10 * epoch, all.begin() + 10 * epoch + 9});
      EXPECT_EQ(std::is_sorted(seen.begin(), seen.end()), shuffle == Shuffle::none);
      std::sort(seen.begin(), seen.end());
      std::vector<std::uint64_t> expected(130);
      std::iota(expected.begin(), expected.end(), 0u);
      EXPECT_EQ(seen, expected) << static_cast<int>(shuffle);
    }
    auto resumed = Loader::open(dataset.source(), options, all[13].after).value();
    EXPECT_EQ(read_epochs(*resumed, 1), std::vector<ReceivedBatch>(all.begin() + 14, all.end()));
  }
}

TEST(Loader, shuffled_by_shard_reads_one_window_of_shards_after_the_other) {
  const PictureDataset dataset(120);  // 3 shards of 40
  LoaderOptions options = options_of(40);
  options.shuffle = Shuffle::by_shard;
  options.window = 1;
  auto loader = Loader::open(dataset.source(), options).value();
  for (int batch = 0; batch < 3; ++batch) {
    const auto samples = next_batch(*loader).samples;
    ASSERT_EQ(samples.size(), 40u);
    for (std::uint64_t sample : samples) EXPECT_EQ(sample / 40, samples[0] / 40);
  }
}

TEST(Loader, ranks_together_cover_every_sample_once_per_epoch) {
  const PictureDataset dataset(83);
  for (int world : {1, 2, 3, 8}) {
    std::vector<std::uint64_t> seen;
    for (int rank = 0; rank < world; ++rank) {
      LoaderOptions options = options_of(5, rank, world);
      options.rank.remainder = Remainder::exact;
      auto loader = Loader::open(dataset.source(), options).value();
      const auto samples = samples_of(read_epochs(*loader, 1));
      seen.insert(seen.end(), samples.begin(), samples.end());
    }
    std::sort(seen.begin(), seen.end());
    std::vector<std::uint64_t> expected(83);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(seen, expected) << world;
  }
}

TEST(Loader, resumes_with_a_different_world_size) {
  const PictureDataset dataset(60);
  std::vector<std::uint64_t> seen;
  OrderState state;
  for (int rank : {0, 1}) {
    auto loader = Loader::open(dataset.source(), options_of(6, rank, 2)).value();
    for (int i = 0; i < 2; ++i) {
      const auto samples = next_batch(*loader).samples;
      seen.insert(seen.end(), samples.begin(), samples.end());
    }
    state = loader->state();
  }
  EXPECT_EQ(state, (OrderState{.seed = 5, .epoch = 0, .position = 24, .samples = 60}));
  for (int rank : {0, 1, 2}) {
    auto loader = Loader::open(dataset.source(), options_of(5, rank, 3), state).value();
    EXPECT_EQ(loader->batches_left(), 3u);
    const auto samples = samples_of(read_epochs(*loader, 1));
    seen.insert(seen.end(), samples.begin(), samples.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::uint64_t> expected(60);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(seen, expected);
}

TEST(Loader, drops_an_incomplete_last_batch_when_asked) {
  const PictureDataset dataset(50);
  LoaderOptions options = options_of(16);
  options.last_batch = LastBatch::drop;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->batches_per_epoch(), 3u);
  const std::vector<ReceivedBatch> all = read_epochs(*loader, 2);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_TRUE(all[3].is_epoch_end);
  EXPECT_EQ(all[3].after, (OrderState{.seed = 5, .epoch = 1, .position = 0, .samples = 50}));
  auto resumed = Loader::open(dataset.source(), options, all[2].after).value();
  EXPECT_EQ(resumed->batches_left(), 0u);
  EXPECT_TRUE(next_batch(*resumed).is_epoch_end);
}

TEST(Loader, a_rank_without_samples_sees_epochs_end) {
  const PictureDataset dataset(2);
  LoaderOptions options = options_of(4, 2, 3);
  options.rank.remainder = Remainder::exact;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->batches_per_epoch(), 0u);
  for (std::uint64_t epoch = 1; epoch < 20; ++epoch) {
    EXPECT_TRUE(next_batch(*loader).is_epoch_end);
    EXPECT_EQ(loader->state().epoch, epoch);
  }
}

TEST(Loader, batches_keep_their_memory_until_they_are_destroyed) {
  const PictureDataset dataset(64);
  std::vector<Batch> held;
  std::vector<std::vector<float>> copies;
  {
    LoaderOptions options = options_of(4);
    options.prefetch = 2;
    auto loader = Loader::open(dataset.source(), options).value();
    for (int i = 0; i < 16; ++i) {
      held.push_back(std::move(**loader->next(soon())));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(held.back().images().data()) % 64, 0u);
      copies.emplace_back(held.back().images().begin(), held.back().images().end());
    }
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_TRUE(std::equal(copies[i].begin(), copies[i].end(), held[i].images().begin()));
  }
}

TEST(Loader, decodes_a_small_dataset_once) {
  const PictureDataset dataset(40);
  LoaderOptions options = options_of(8);
  options.cache = 4_MiB;
  auto loader = Loader::open(dataset.source(), options).value();
  read_epochs(*loader, 3);
  const LoaderStats stats = loader->stats();
  EXPECT_EQ(stats.batches, 15u);
  EXPECT_EQ(stats.samples, 120u);
  EXPECT_GE(stats.cached, 80u);
  EXPECT_EQ(stats.skipped, 0u);
  EXPECT_GT(stats.work_s, 0.0);
  EXPECT_GE(stats.cache_used.value, 40u * 3 * kSide * kSide);
  EXPECT_LE(stats.cache_used.value, ByteCount{4_MiB}.value);
}

// Counts what it has given out.
class CountingAllocator final : public BatchAllocator {
 public:
  explicit CountingAllocator(bool is_short = false) : is_short_(is_short) {}
  std::byte* allocate(std::size_t size) override {
    if (is_short_) return nullptr;
    held_ += static_cast<std::int64_t>(size);
    ++allocations_;
    return static_cast<std::byte*>(std::aligned_alloc(64, size));
  }
  void release(std::byte* memory, std::size_t size) override {
    held_ -= static_cast<std::int64_t>(size);
    std::free(memory);
  }
  std::int64_t held() const { return held_; }
  int allocations() const { return allocations_; }

 private:
  const bool is_short_;
  std::atomic<std::int64_t> held_{0};
  std::atomic<int> allocations_{0};
};

TEST(LoaderOptions, an_allocator_keeps_the_content_of_all_batches_and_gets_it_back) {
  const PictureDataset dataset(40);
  const auto allocator = std::make_shared<CountingAllocator>();
  LoaderOptions options = options_of(8);
  options.allocator = allocator;
  {
    std::optional<Batch> last;  // outlives the loader
    auto loader = Loader::open(dataset.source(), options).value();
    for (int epoch = 0; epoch < 10; ++epoch) {
      while (auto batch = loader->next(soon()).value()) last = std::move(batch);
    }
    loader.reset();
    EXPECT_GT(allocator->held(), 0);
    EXPECT_LE(allocator->allocations(), static_cast<int>(options.prefetch) + 3);
  }
  EXPECT_EQ(allocator->held(), 0);
  options.allocator = std::make_shared<CountingAllocator>(true);
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->next(soon()).status().to_string(), "loader: no memory for a batch of 8 samples (3456B)");
}

TEST(LoaderOptions, invalid_options_are_rejected) {
  const PictureDataset dataset(10);
  const auto refusal = [&](auto change, std::optional<OrderState> resume = std::nullopt) {
    LoaderOptions options = options_of(2);
    change(options);
    return Loader::open(dataset.source(), options, resume).status().to_string();
  };
  EXPECT_EQ(refusal([](auto& o) { o.batch = 0; }), "loader: batch of 0 samples");
  EXPECT_EQ(refusal([](auto& o) { o.threads = 0; }),
            "loader: the number of threads is 0, not between 1 and 1024");
  EXPECT_EQ(refusal([](auto& o) { o.prefetch = 0; }),
            "loader: prefetch of 0 batches is not between 1 and 4096");
  EXPECT_EQ(refusal([](auto& o) {
              o.batch = 1 << 20;
              o.transform.operations = {{"center_crop", {{"size", 224.0}}}};
            }),
            "loader: a batch of 1048576 samples of 602 kB exceeds 17.2 GB");
  EXPECT_EQ(refusal([](auto& o) { o.rank.rank = Rank{1}; }), "order: rank 1 is not in a world of 1");
  EXPECT_EQ(refusal([](auto&) {}, OrderState{.seed = 5, .samples = 11}),
            "loader: the state to resume belongs to a dataset of 11 samples, this one has 10");
  EXPECT_EQ(refusal([](auto&) {}, OrderState{.seed = 4, .samples = 10}),
            "loader: the state to resume has seed 4, this training has seed 5");
}

TEST(LoaderOptions, a_dataset_without_samples_is_refused) {
  TempDirectory folder;
  dataset::write_test_dataset(folder.path(), {{}});
  auto source = dataset::LocalShardSource::open(folder.path(), "");
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_EQ(Loader::open(**source, options_of(2)).status().to_string(), "loader: split 'all' has no samples");
}

// Pages of this process that are in memory.
std::uint64_t resident_kib() {
  const std::string text = read_pseudo_file("/proc/self/status").value();
  const std::size_t at = text.find("VmRSS:");
  std::uint64_t kib = 0;
  STOKER_CHECK(parse_number(trim(std::string_view(text).substr(at + 6, text.find("kB", at) - at - 6)), &kib));
  return kib;
}

TEST(LoaderMemory, is_flat_over_fifty_epochs) {
  if (kHasAddressSanitizer || kHasThreadSanitizer) GTEST_SKIP() << "sanitizers keep what was freed";
  PictureDataset dataset(200);
  dataset.corrupt_payload(11);
  for (const Content content : {Content::images, Content::bytes}) {
    LoaderOptions options = options_of(16);
    options.content = content;
    options.threads = 2;
    options.on_damage = DamagePolicy::skip;
    options.shuffle = Shuffle::by_shard;
    options.resident = content == Content::bytes ? 1_GiB : ByteCount{0};
    auto loader = Loader::open(dataset.source(), options).value();
    std::uint64_t after_ten = 0;
    for (int epoch = 0; epoch < 60; ++epoch) {
      if (epoch == 10) after_ten = resident_kib();
      while (loader->next(soon()).value()) {
      }
    }
    EXPECT_EQ(loader->stats().skipped, 60u);
    EXPECT_LE(resident_kib(), after_ten + 512) << "KiB after ten epochs, and now";
  }
}

}  // namespace
}  // namespace stoker::loader
