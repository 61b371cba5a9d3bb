#include <atomic>
#include <cerrno>
#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/test_pictures.h"
#include "stoker/loader.h"

namespace stoker::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LoaderFaults, a_corrupt_payload_names_shard_and_sample_and_fails_every_later_call) {
  PictureDataset dataset(50);
  dataset.corrupt_payload(43);
  for (std::uint32_t threads : {1, 4}) {
    LoaderOptions options = options_of(10);
    options.shuffle = Shuffle::none;
    options.threads = threads;
    auto loader = Loader::open(dataset.source(), options).value();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(next_batch(*loader).samples.size(), 10u);
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

TEST(LoaderFaults, skip_drops_damaged_samples_and_counts_them) {
  PictureDataset dataset(30);
  for (std::uint64_t sample : {0, 3, 4, 9, 25}) dataset.corrupt_payload(sample);
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  options.threads = 3;
  options.transform.operations = {{"center_crop", {{"size", double{kSide}}}}};
  auto loader = Loader::open(dataset.source(), options).value();
  const std::vector<ReceivedBatch> all = read_epochs(*loader, 1);
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

TEST(LoaderFaults, a_missing_shard_is_an_error_even_when_damage_is_skipped) {
  PictureDataset dataset(90);
  dataset.reopen();
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.prefetch = 1;
  options.on_damage = DamagePolicy::skip;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(next_batch(*loader).samples.size(), 10u);
  STOKER_CHECK(remove_file(dataset.shard(2)).ok());
  for (int i = 0; i < 7; ++i) EXPECT_EQ(next_batch(*loader).samples.size(), 10u);
  const Status status = loader->next(soon()).status();
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_EQ(status.to_string(),
            format("sample 'class/0080' (in shard 'all-000002.tar'): {}: no such file or directory",
                   dataset.shard(2)));
}

TEST(LoaderFaults, a_truncated_shard_is_an_error_and_not_a_crash) {
  PictureDataset dataset(30);
  dataset.reopen();
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.prefetch = 1;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(next_batch(*loader).samples.size(), 10u);
  STOKER_CHECK(File::open_read_write(dataset.shard(0)).value().truncate(25 * 1024).ok());
  Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = loader->next(soon()).status();
  EXPECT_EQ(status.code(), Code::corrupt) << status.to_string();
  EXPECT_THAT(status.to_string(), HasSubstr("all-000000.tar"));
}

TEST(LoaderFaults, a_shard_of_a_different_size_is_an_error_even_when_damage_is_skipped) {
  PictureDataset dataset(60);
  const Path shard = dataset.shard(1);
  const std::uint64_t size = File::open_read(shard).value().size().value();
  STOKER_CHECK(File::open_read_write(shard).value().truncate(size - 512).ok());
  for (const Content content : {Content::images, Content::bytes}) {
    for (const ByteCount resident : {ByteCount{0}, 1_GiB}) {
      dataset.reopen();
      LoaderOptions options = options_of(20);
      options.content = content;
      options.resident = resident;
      options.shuffle = Shuffle::none;
      options.on_damage = DamagePolicy::skip;
      auto loader = Loader::open(dataset.source(), options).value();
      for (int i = 0; i < 2; ++i) EXPECT_EQ(next_batch(*loader).samples.size(), 20u);
      const Status status = loader->next(soon()).status();
      EXPECT_EQ(status.code(), Code::corrupt);
      EXPECT_EQ(status.to_string(),
                format("sample 'class/0040' (in shard 'all-000001.tar'): {}: has {} bytes, "
                       "the manifest lists {}",
                       shard, size - 512, size));
      EXPECT_TRUE(loader->skipped().empty());
    }
  }
}

TEST(LoaderFaults, an_empty_batch_is_dropped) {
  PictureDataset dataset(6);
  for (std::uint64_t sample : {0, 3, 5}) dataset.corrupt_payload(sample);
  LoaderOptions options = options_of(1);
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  options.mixing = {{image::MixKind::mixup, 1.0}};
  auto loader = Loader::open(dataset.source(), options).value();
  const std::vector<ReceivedBatch> all = read_epochs(*loader, 2);
  EXPECT_EQ(samples_of(all), (std::vector<std::uint64_t>{1, 2, 4, 1, 2, 4}));
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(loader->batches_per_epoch(), 6u);
  EXPECT_EQ(loader->stats().skipped, 6u);
  EXPECT_EQ(loader->stats().batches, 6u);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const std::vector<ReceivedBatch> rest(all.begin() + static_cast<long>(i) + 1, all.end());
    auto resumed = Loader::open(dataset.source(), options, all[i].after).value();
    EXPECT_EQ(read_epochs(*resumed, all[i].after.epoch == 0 ? 2 : 1), rest) << "after batch " << i;
  }
}

TEST(LoaderFaults, ranks_in_lockstep_receive_empty_batches) {
  PictureDataset dataset(8);
  for (std::uint64_t sample : {0, 2}) dataset.corrupt_payload(sample);
  const auto sizes = [&](int rank, Remainder remainder) {
    LoaderOptions options = options_of(2, rank, 2);
    options.rank.remainder = remainder;
    options.shuffle = Shuffle::none;
    options.on_damage = DamagePolicy::skip;
    std::vector<std::size_t> found;
    for (const ReceivedBatch& got : read_epochs(*Loader::open(dataset.source(), options).value(), 1)) {
      if (!got.is_epoch_end) found.push_back(got.samples.size());
    }
    return found;
  };
  for (const Remainder remainder : {Remainder::pad, Remainder::drop, Remainder::exact}) {
    const bool is_in_step = remainder != Remainder::exact;
    EXPECT_EQ(sizes(0, remainder),
              is_in_step ? (std::vector<std::size_t>{0, 2}) : (std::vector<std::size_t>{2}));
    EXPECT_EQ(sizes(1, remainder), (std::vector<std::size_t>{2, 2}));
  }
}

TEST(LoaderFaults, an_image_that_does_not_fit_the_crop_is_named) {
  const PictureDataset dataset(3);
  LoaderOptions options = options_of(2);
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  options.transform.operations = {{"random_crop", {{"size", 32.0}, {"padding", 1.0}}}};
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->next(soon()).status().to_string(),
            "sample 'class/0000' (in shard 'all-000000.tar'): image of 6 x 6 pixels is smaller than the crop "
            "of 32 x "
            "32 (with padding)");
}

// A source whose reads of one shard block until released.
class StuckSource final : public dataset::ShardSource {
 public:
  StuckSource(const dataset::ShardSource& source, std::uint32_t shard) : source_(source), shard_(shard) {}
  const dataset::Manifest& manifest() const override { return source_.manifest(); }
  const dataset::SplitInfo& split() const override { return source_.split(); }
  const dataset::SampleTable& samples() const override { return source_.samples(); }
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
  const dataset::ShardSource& source_;
  const std::uint32_t shard_;
  std::atomic<bool> is_free_{false};
};

// A source whose disk fails at one shard.
class FailingSource final : public dataset::ShardSource {
 public:
  FailingSource(const dataset::ShardSource& source, std::uint32_t shard) : source_(source), shard_(shard) {}
  const dataset::Manifest& manifest() const override { return source_.manifest(); }
  const dataset::SplitInfo& split() const override { return source_.split(); }
  const dataset::SampleTable& samples() const override { return source_.samples(); }
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override {
    if (shard == shard_) return posix_error("/scratch/all-000001.tar", EIO);
    return source_.read(shard, offset, out);
  }
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override { return source_.map(shard); }

 private:
  const dataset::ShardSource& source_;
  const std::uint32_t shard_;
};

TEST(LoaderFaults, an_io_error_is_reported_and_not_skipped_as_damage) {
  const PictureDataset dataset(60);
  const FailingSource failing(dataset.source(), 1);
  LoaderOptions options = options_of(20);
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  for (const ByteCount resident : {ByteCount{0}, 1_GiB}) {
    options.resident = resident;
    auto loader = Loader::open(failing, options).value();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(next_batch(*loader).samples.size(), 20u);
    EXPECT_EQ(loader->next(soon()).status().to_string(),
              "sample 'class/0040' (in shard 'all-000001.tar'): /scratch/all-000001.tar: input/output error");
  }
}

TEST(LoaderWaits, a_missed_deadline_names_shard_and_sample_and_nothing_is_lost) {
  const PictureDataset dataset(60);
  StuckSource stuck(dataset.source(), 1);
  LoaderOptions options = options_of(45);
  options.shuffle = Shuffle::none;
  auto loader = Loader::open(stuck, options).value();
  Status status;
  // The first attempts may precede the thread's stuck sample.
  while (status.to_string().find("0040") == std::string::npos) {
    status = loader->next(Deadline::after(std::chrono::milliseconds(20))).status();
    ASSERT_EQ(status.code(), Code::timeout) << status.to_string();
  }
  EXPECT_EQ(status.to_string(),
            "loader: no batch before the deadline: epoch 1, waiting for sample 'class/0040' (in shard "
            "'all-000001.tar')");
  stuck.let_go();
  const ReceivedBatch got = next_batch(*loader);
  EXPECT_EQ(got.samples.size(), 45u);
  EXPECT_EQ(got.samples.back(), 44u);
  EXPECT_GT(loader->stats().wait_s, 0.0);
}

TEST(LoaderWaits, cancel_ends_a_wait_in_a_different_thread) {
  const PictureDataset dataset(10);
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

TEST(LoaderWaits, destruction_at_any_moment_returns) {
  const PictureDataset dataset(40);
  for (int taken = 0; taken < 30; ++taken) {
    LoaderOptions options = options_of(3);
    options.threads = 3;
    auto loader = Loader::open(dataset.source(), options).value();
    for (int i = 0; i < taken; ++i) next_batch(*loader);
  }
}

}  // namespace
}  // namespace stoker::loader
