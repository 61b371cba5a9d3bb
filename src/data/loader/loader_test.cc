#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include "format/shard_source.h"
#include "format/test_dataset.h"

namespace stoker::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kSide = 6;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

// A PNG of one colour that tells the sample's number: red and green its digits to base 250.
std::string picture(std::uint64_t number) {
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t i = 0; i < kSide * kSide; ++i) {
    pixels.insert(pixels.end(), {static_cast<std::uint8_t>(number % 250),
                                 static_cast<std::uint8_t>(number / 250), static_cast<std::uint8_t>(i * 5)});
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = kSide;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 4096;
  std::string out(size, '\0');
  CHECK(png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr));
  out.resize(size);
  return out;
}

// A packed dataset of `samples` pictures in shards of at most 40, labels the number modulo 7.
class Dataset {
 public:
  explicit Dataset(std::uint64_t samples) {
    std::vector<std::vector<formats::TestSample>> shards;
    for (std::uint64_t i = 0; i < samples; ++i) {
      if (i % 40 == 0) shards.emplace_back();
      shards.back().push_back(
          {format("class/{:04}", i), static_cast<std::int64_t>(i % 7), {{"png", picture(i)}}});
    }
    formats::write_test_dataset(folder_.path(), shards);
    reopen();
  }

  void reopen() { source_ = formats::LocalShardSource::open(folder_.path(), "").value(); }
  const formats::ShardSource& source() const { return *source_; }
  Path shard(int number) const { return folder_ / format("all-{:06}.tar", number); }
  void flip_a_payload_byte(std::uint64_t sample) {
    const formats::Locator at = *source_->samples().image(sample);
    File file = File::open_read_write(shard(static_cast<int>(at.shard))).value();
    std::byte byte[1];
    CHECK(file.read_at(at.offset + at.length / 2, byte).ok());
    byte[0] ^= std::byte{0x10};
    CHECK(file.write_at(at.offset + at.length / 2, byte).ok());
  }

 private:
  TempDirectory folder_;
  std::unique_ptr<formats::LocalShardSource> source_;
};

LoaderOptions options_of(std::uint32_t batch, int rank = 0, int world = 1) {
  LoaderOptions options;
  options.seed = 5;
  options.batch = batch;
  options.rank = {Rank{rank}, WorldSize{world}, Remainder::pad};
  options.transform = {.size = kSide, .crop = Crop::padded, .padding = 2, .flip = true};
  return options;
}

// What next() gave, copied.
struct Got {
  bool is_epoch_end = false;
  std::int64_t epoch = 0;
  std::vector<std::uint64_t> samples;
  std::vector<std::int64_t> labels;
  std::vector<float> images;
  OrderState after;

  bool operator==(const Got&) const = default;
};

Got take(Loader& loader) {
  auto next = loader.next(soon());
  if (!next.ok()) {
    ADD_FAILURE() << next.status().to_string();
    return {};
  }
  Got got;
  got.is_epoch_end = !next->has_value();
  got.after = loader.state();
  if (got.is_epoch_end) return got;
  Batch& batch = **next;
  EXPECT_EQ(batch.after(), loader.state());
  got.epoch = batch.epoch().value;
  got.samples.assign(batch.samples().begin(), batch.samples().end());
  got.labels.assign(batch.labels().begin(), batch.labels().end());
  got.images.assign(batch.images().begin(), batch.images().end());
  return got;
}

std::vector<Got> take_epochs(Loader& loader, int epochs) {
  std::vector<Got> all;
  while (epochs > 0) {
    all.push_back(take(loader));
    if (all.back().is_epoch_end) --epochs;
    if (::testing::Test::HasFailure()) break;
  }
  return all;
}

std::vector<std::uint64_t> samples_of(const std::vector<Got>& all) {
  std::vector<std::uint64_t> samples;
  for (const Got& got : all) samples.insert(samples.end(), got.samples.begin(), got.samples.end());
  return samples;
}

TEST(Loader, gives_each_sample_with_its_label_and_pixels) {
  const Dataset dataset(100);
  LoaderOptions options = options_of(32);
  options.transform = {.size = kSide, .resize = kSide};
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->batches_per_epoch(), 4u);
  const std::vector<Got> all = take_epochs(*loader, 1);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[3].samples.size(), 4u);
  for (const Got& got : all) {
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

TEST(Loader, gives_the_same_batches_for_any_threads_prefetch_and_cache) {
  const Dataset dataset(90);
  auto reference = Loader::open(dataset.source(), options_of(16)).value();
  const std::vector<Got> expected = take_epochs(*reference, 3);
  for (std::uint32_t threads : {1, 2, 5}) {
    for (std::uint32_t prefetch : {1, 2, 9}) {
      for (ByteCount cache : {0_KiB, 3_KiB, 4_MiB}) {
        LoaderOptions options = options_of(16);
        options.threads = threads;
        options.prefetch = prefetch;
        options.cache = cache;
        auto loader = Loader::open(dataset.source(), options).value();
        EXPECT_EQ(take_epochs(*loader, 3), expected) << threads << " threads, prefetch " << prefetch;
      }
    }
  }
}

TEST(Loader, resumed_at_every_position_gives_the_undisturbed_sequence) {
  const Dataset dataset(50);
  for (int rank : {0, 1}) {
    const LoaderOptions options = options_of(8, rank, 2);
    auto whole = Loader::open(dataset.source(), options).value();
    const std::vector<Got> expected = take_epochs(*whole, 2);
    for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
      auto resumed = Loader::open(dataset.source(), options, expected[i].after).value();
      EXPECT_EQ(resumed->state(), expected[i].after);
      const int epochs = expected[i].after.epoch == 0 ? 2 : 1;
      const std::vector<Got> rest(expected.begin() + static_cast<long>(i) + 1, expected.end());
      EXPECT_EQ(take_epochs(*resumed, epochs), rest) << "rank " << rank << ", after batch " << i;
    }
  }
}

TEST(Loader, ranks_together_see_every_sample_once_per_epoch) {
  const Dataset dataset(83);
  for (int world : {1, 2, 3, 8}) {
    std::vector<std::uint64_t> seen;
    for (int rank = 0; rank < world; ++rank) {
      LoaderOptions options = options_of(5, rank, world);
      options.rank.remainder = Remainder::exact;
      auto loader = Loader::open(dataset.source(), options).value();
      const auto samples = samples_of(take_epochs(*loader, 1));
      seen.insert(seen.end(), samples.begin(), samples.end());
    }
    std::sort(seen.begin(), seen.end());
    std::vector<std::uint64_t> expected(83);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(seen, expected) << world;
  }
}

TEST(Loader, goes_on_with_another_world_size_where_the_first_left_off) {
  const Dataset dataset(60);
  std::vector<std::uint64_t> seen;
  OrderState state;
  for (int rank : {0, 1}) {
    auto loader = Loader::open(dataset.source(), options_of(6, rank, 2)).value();
    for (int i = 0; i < 2; ++i) {
      const auto samples = take(*loader).samples;
      seen.insert(seen.end(), samples.begin(), samples.end());
    }
    state = loader->state();
  }
  EXPECT_EQ(state, (OrderState{.seed = 5, .epoch = 0, .position = 24, .samples = 60}));
  for (int rank : {0, 1, 2}) {
    auto loader = Loader::open(dataset.source(), options_of(5, rank, 3), state).value();
    EXPECT_EQ(loader->batches_left(), 3u);
    const auto samples = samples_of(take_epochs(*loader, 1));
    seen.insert(seen.end(), samples.begin(), samples.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::uint64_t> expected(60);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(seen, expected);
}

TEST(Loader, drops_an_incomplete_last_batch_when_asked) {
  const Dataset dataset(50);
  LoaderOptions options = options_of(16);
  options.last_batch = LastBatch::drop;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->batches_per_epoch(), 3u);
  const std::vector<Got> all = take_epochs(*loader, 2);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_TRUE(all[3].is_epoch_end);
  EXPECT_EQ(all[3].after, (OrderState{.seed = 5, .epoch = 1, .position = 0, .samples = 50}));
  auto resumed = Loader::open(dataset.source(), options, all[2].after).value();
  EXPECT_EQ(resumed->batches_left(), 0u);
  EXPECT_TRUE(take(*resumed).is_epoch_end);
}

TEST(Loader, a_rank_without_samples_sees_epochs_end) {
  const Dataset dataset(2);
  LoaderOptions options = options_of(4, 2, 3);
  options.rank.remainder = Remainder::exact;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->batches_per_epoch(), 0u);
  for (std::uint64_t epoch = 1; epoch < 20; ++epoch) {
    EXPECT_TRUE(take(*loader).is_epoch_end);
    EXPECT_EQ(loader->state().epoch, epoch);
  }
}

TEST(Loader, batches_keep_their_memory_until_they_are_destroyed) {
  const Dataset dataset(64);
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
  const Dataset dataset(40);
  LoaderOptions options = options_of(8);
  options.cache = 4_MiB;
  auto loader = Loader::open(dataset.source(), options).value();
  take_epochs(*loader, 3);
  const LoaderStats stats = loader->stats();
  EXPECT_EQ(stats.batches, 15u);
  EXPECT_EQ(stats.samples, 120u);
  EXPECT_GE(stats.cached, 80u);
  EXPECT_EQ(stats.skipped, 0u);
  EXPECT_GT(stats.work_s, 0.0);
  EXPECT_GE(stats.cache_used.value, 40u * 3 * kSide * kSide);
  EXPECT_LE(stats.cache_used.value, ByteCount{4_MiB}.value);
}

TEST(LoaderFaults, a_corrupt_payload_names_shard_and_sample_and_stays_an_error) {
  Dataset dataset(50);
  dataset.flip_a_payload_byte(43);
  for (std::uint32_t threads : {1, 4}) {
    LoaderOptions options = options_of(10);
    options.shuffle = Shuffle::none;
    options.threads = threads;
    auto loader = Loader::open(dataset.source(), options).value();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(take(*loader).samples.size(), 10u);
    for (int again = 0; again < 2; ++again) {
      const Status status = loader->next(soon()).status();
      EXPECT_EQ(status.code(), Code::corrupt);
      EXPECT_THAT(status.to_string(),
                  ::testing::MatchesRegex("all-000001.tar: sample 'class/0043' \\(png\\): "
                                          "CRC-32C expected [0-9a-f]{8}, found [0-9a-f]{8}"));
    }
    EXPECT_EQ(loader->state().position, 40u);
  }
}

TEST(LoaderFaults, skip_leaves_damaged_samples_out_and_counts_them) {
  Dataset dataset(30);
  for (std::uint64_t sample : {0, 3, 4, 9, 25}) dataset.flip_a_payload_byte(sample);
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.faults = Faults::skip;
  options.threads = 3;
  options.transform = {.size = kSide, .resize = kSide};
  auto loader = Loader::open(dataset.source(), options).value();
  const std::vector<Got> all = take_epochs(*loader, 1);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[0].samples, ElementsAre(1, 2, 5, 6, 7, 8));
  EXPECT_EQ(all[0].after.position, 10u);
  EXPECT_THAT(all[0].labels, ElementsAre(1, 2, 5, 6, 0, 1));
  EXPECT_EQ(all[0].images.size(), 6u * 3 * kSide * kSide);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(std::lround(all[0].images[i * 3 * kSide * kSide] * 255), static_cast<long>(all[0].samples[i]));
  }
  EXPECT_EQ(all[2].samples.size(), 9u);
  EXPECT_EQ(loader->stats().skipped, 5u);
  EXPECT_EQ(loader->stats().samples, 25u);
}

TEST(LoaderFaults, a_shard_that_is_gone_is_named_even_when_damage_is_skipped) {
  Dataset dataset(90);
  dataset.reopen();
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.prefetch = 1;
  options.faults = Faults::skip;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(take(*loader).samples.size(), 10u);
  CHECK(remove_file(dataset.shard(2)).ok());
  for (int i = 0; i < 7; ++i) EXPECT_EQ(take(*loader).samples.size(), 10u);
  const Status status = loader->next(soon()).status();
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_EQ(status.to_string(),
            format("sample 'class/0080' (in shard 'all-000002.tar'): {}: no such file or directory",
                   dataset.shard(2)));
}

TEST(LoaderFaults, a_shard_cut_short_is_an_error_and_no_crash) {
  Dataset dataset(30);
  dataset.reopen();
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.prefetch = 1;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(take(*loader).samples.size(), 10u);
  CHECK(File::open_read_write(dataset.shard(0)).value().truncate(25 * 1024).ok());
  Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = loader->next(soon()).status();
  EXPECT_EQ(status.code(), Code::corrupt) << status.to_string();
  EXPECT_THAT(status.to_string(), HasSubstr("all-000000.tar"));
}

TEST(LoaderFaults, an_image_that_does_not_fit_the_crop_is_named) {
  const Dataset dataset(3);
  LoaderOptions options = options_of(2);
  options.shuffle = Shuffle::none;
  options.faults = Faults::skip;
  options.transform = {.size = 32, .crop = Crop::padded, .padding = 1};
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(
      loader->next(soon()).status().to_string(),
      "sample 'class/0000' (in shard 'all-000000.tar'): image of 6 x 6 pixels is smaller than the crop of 32 "
      "(with padding 1)");
}

// A source whose reads of one shard block until they are let go.
class StuckSource final : public formats::ShardSource {
 public:
  StuckSource(const formats::ShardSource& source, std::uint32_t shard) : source_(source), shard_(shard) {}
  const formats::Manifest& manifest() const override { return source_.manifest(); }
  const formats::SplitInfo& split() const override { return source_.split(); }
  const formats::SampleTable& samples() const override { return source_.samples(); }
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override {
    if (shard == shard_) is_free_.wait(false);
    return source_.read(shard, offset, out);
  }
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override { return source_.map(shard); }
  void let_go() {
    is_free_ = true;
    is_free_.notify_all();
  }

 private:
  const formats::ShardSource& source_;
  const std::uint32_t shard_;
  std::atomic<bool> is_free_{false};
};

TEST(LoaderWaits, a_missed_deadline_names_shard_and_sample_and_nothing_is_lost) {
  const Dataset dataset(60);
  StuckSource stuck(dataset.source(), 1);
  LoaderOptions options = options_of(45);
  options.shuffle = Shuffle::none;
  auto loader = Loader::open(stuck, options).value();
  Status status;
  // The first tries may come before the thread is at the stuck sample.
  while (status.to_string().find("0040") == std::string::npos) {
    status = loader->next(Deadline::after(std::chrono::milliseconds(20))).status();
    ASSERT_EQ(status.code(), Code::timeout) << status.to_string();
  }
  EXPECT_EQ(status.to_string(),
            "loader: no batch before the deadline: epoch 0, still at sample 'class/0040' (in shard "
            "'all-000001.tar')");
  stuck.let_go();
  const Got got = take(*loader);
  EXPECT_EQ(got.samples.size(), 45u);
  EXPECT_EQ(got.samples.back(), 44u);
  EXPECT_GT(loader->stats().wait_s, 0.0);
}

TEST(LoaderWaits, cancel_ends_a_wait_in_another_thread) {
  const Dataset dataset(10);
  StuckSource stuck(dataset.source(), 0);
  auto loader = Loader::open(stuck, options_of(5)).value();
  Status status;
  std::thread waiting([&] { status = loader->next(Deadline::never()).status(); });
  loader->cancel();
  waiting.join();
  EXPECT_EQ(status.to_string(), "loader: cancelled");
  EXPECT_EQ(status.code(), Code::cancelled);
  stuck.let_go();
}

TEST(LoaderWaits, destruction_at_any_moment_ends) {
  const Dataset dataset(40);
  for (int taken = 0; taken < 30; ++taken) {
    LoaderOptions options = options_of(3);
    options.threads = 3;
    auto loader = Loader::open(dataset.source(), options).value();
    for (int i = 0; i < taken; ++i) take(*loader);
  }
}

TEST(LoaderOptions, that_cannot_work_are_refused) {
  const Dataset dataset(10);
  const auto refusal = [&](auto change, std::optional<OrderState> resume = std::nullopt) {
    LoaderOptions options = options_of(2);
    change(options);
    return Loader::open(dataset.source(), options, resume).status().to_string();
  };
  EXPECT_EQ(refusal([](auto& o) { o.batch = 0; }), "loader: batch of 0 samples");
  EXPECT_EQ(refusal([](auto& o) { o.threads = 0; }), "loader: 0 threads are not between 1 and 1024");
  EXPECT_EQ(refusal([](auto& o) { o.prefetch = 0; }),
            "loader: prefetch of 0 batches is not between 1 and 4096");
  EXPECT_EQ(refusal([](auto& o) {
              o.batch = 1 << 20;
              o.transform.size = 224;
            }),
            "loader: a batch of 1048576 images of 224 x 224 takes more than 16GiB");
  EXPECT_EQ(refusal([](auto& o) { o.rank.rank = Rank{1}; }), "order: rank 1 is not in a world of 1");
  EXPECT_EQ(refusal([](auto&) {}, OrderState{.seed = 5, .samples = 11}),
            "loader: the state to resume is of a dataset of 11 samples, this one has 10");
  EXPECT_EQ(refusal([](auto&) {}, OrderState{.seed = 4, .samples = 10}),
            "loader: the state to resume has seed 4, this training seed 5");
}

TEST(LoaderOptions, a_dataset_without_samples_is_refused) {
  TempDirectory folder;
  formats::write_test_dataset(folder.path(), {{}});
  auto source = formats::LocalShardSource::open(folder.path(), "");
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_EQ(Loader::open(**source, options_of(2)).status().to_string(), "loader: split 'all' has no samples");
}

}  // namespace
}  // namespace stoker::data
