#include "pack/shard_plan.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "pack/pack.h"

namespace stoker::pack {
namespace {

constexpr std::uint64_t kMB = 1'000'000;

SplitSizing sized(std::uint64_t samples, std::uint64_t bytes, ShardSizing wanted = {}) {
  return *size_split("photos: split 'all'", samples, bytes, wanted);
}

TEST(SizeSplit, gives_a_small_dataset_few_shards) {
  EXPECT_EQ(sized(100, 3 * kMB).shards, 1u);
  EXPECT_EQ(sized(100, 20 * kMB).shards, 4u);
  EXPECT_EQ(sized(100, 20 * kMB).reason, "shards under 4 MiB are not worthwhile");
}

TEST(SizeSplit, gives_eight_readers_a_shard_each) {
  EXPECT_EQ(sized(50'000, 5400 * kMB).shards, 8u);
  EXPECT_EQ(sized(50'000, 5400 * kMB).reason, "fewer than 8 would starve 8 readers");
}

TEST(SizeSplit, makes_large_shards_of_a_large_dataset_but_not_too_many) {
  EXPECT_EQ(sized(1'281'167, 150'000 * kMB).shards, 150u);
  EXPECT_EQ(sized(1'281'167, 150'000 * kMB).reason, "about 1 GB each for long reads");
  EXPECT_EQ(sized(1'000'000'000, 200'000'000 * kMB).shards, 10'000u);
  EXPECT_EQ(sized(1'000'000'000, 200'000'000 * kMB).reason, "more than 10 000 files would be slow to list");
}

TEST(SizeSplit, follows_the_options_down_to_one_sample_per_shard) {
  EXPECT_EQ(sized(100, 3 * kMB, {.shards = 7, .shard_size = {}}).shards, 7u);
  EXPECT_EQ(sized(100, 30 * kMB, {.shards = {}, .shard_size = ByteCount{7 * kMB}}).shards, 5u);
  EXPECT_EQ(sized(3, kMB, {.shards = 7, .shard_size = {}}).shards, 3u);
  EXPECT_EQ(sized(3, kMB, {.shards = 7, .shard_size = {}}).reason, "one per sample");
}

TEST(SizeSplit, gives_every_reader_of_a_job_the_same_number_of_shards) {
  const ShardSizing wanted{.readers = TargetReaders{.ranks = 64, .workers = 8}};
  EXPECT_EQ(sized(1'281'167, 150'000 * kMB, wanted).shards, 512u);
  EXPECT_EQ(sized(1'281'167, 150'000 * kMB, wanted).reason, "64 ranks x 8 workers: one for each");
  EXPECT_EQ(sized(1'281'167, 600'000 * kMB, wanted).shards, 1024u);
  EXPECT_EQ(sized(1'281'167, 600'000 * kMB, wanted).reason, "64 ranks x 8 workers: 2 for each");
  EXPECT_EQ(sized(1000, kMB, wanted).shards, 512u);
  EXPECT_EQ(size_split("photos: split 'val'", 500, kMB, wanted).error().to_string(),
            "photos: split 'val': 500 samples are too few for 512 readers (--for ranks=64,workers=8)\n"
            "  try: --for ranks=64,workers=7");
  const ShardSizing few{.shards = 100, .readers = TargetReaders{.ranks = 64, .workers = 8}};
  EXPECT_EQ(
      size_split("photos: split 'all'", 5000, kMB, few).error().message(),
      "photos: split 'all': 100 shards are fewer than 512 readers (--shards, --for ranks=64,workers=8)");
}

TEST(SizeSplit, makes_larger_shards_for_sequential_reads) {
  EXPECT_EQ(sized(1'000'000, 400'000 * kMB, {.is_text = true}).shards, 100u);
  EXPECT_EQ(sized(1'000'000, 400'000 * kMB, {.is_text = true}).reason,
            "about 4 GB each for sequential reads");
}

sources::PackSource source_of(std::uint32_t samples) {
  sources::PackSource source;
  source.splits = {"train"};
  source.folders = {{.path = "train/cat", .member = "cat", .split = 0, .label = 0, .files = {}}};
  source.samples.resize(1);
  for (std::uint32_t i = 0; i < samples; ++i) {
    source.folders[0].files.push_back({format("{:04}.jpg", i), 100, 0});
    source.samples[0].push_back({.folder = 0, .first = i, .files = 1, .label = 0});
  }
  return source;
}

TEST(AssignSamples, assigns_every_sample_to_one_shard_evenly) {
  const sources::PackSource source = source_of(101);
  const std::vector<ShardSpec> shards = assign_samples(source, 0, 4, {});
  ASSERT_EQ(shards.size(), 4u);
  EXPECT_EQ(shards[3].file, "train-000003.tar");
  std::set<std::uint32_t> seen;
  for (const ShardSpec& shard : shards) {
    EXPECT_TRUE(shard.samples.size() == 25 || shard.samples.size() == 26);
    for (const sources::SourceSample& sample : shard.samples) EXPECT_TRUE(seen.insert(sample.first).second);
  }
  EXPECT_EQ(seen.size(), 101u);
}

TEST(AssignSamples, order_never_changes) {
  // Existing datasets depend on this order: it must never change.
  const std::vector<ShardSpec> shards = assign_samples(source_of(6), 0, 1, {});
  std::vector<std::uint32_t> order;
  for (const sources::SourceSample& sample : shards[0].samples) order.push_back(sample.first);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 3, 4, 0, 2, 5}));
}

TEST(AssignSamples, order_depends_on_the_seed) {
  const auto order = [](std::uint64_t seed) {
    std::vector<std::uint32_t> firsts;
    const auto shards = assign_samples(source_of(50), 0, 1, {SampleOrder::shuffle, seed});
    for (const sources::SourceSample& sample : shards[0].samples) firsts.push_back(sample.first);
    return firsts;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(0));
  EXPECT_NE(order(1), order(2));
}

TEST(AssignSamples, stratifies_every_shard) {
  sources::PackSource source = source_of(100);
  for (std::uint32_t i = 0; i < 100; ++i) source.samples[0][i].label = i < 20 ? 0 : 1;
  for (const ShardSpec& shard : assign_samples(source, 0, 10, {SampleOrder::stratified, 0})) {
    const auto rare = std::count_if(shard.samples.begin(), shard.samples.end(),
                                    [](const sources::SourceSample& s) { return s.label == 0; });
    EXPECT_EQ(rare, 2) << shard.file;
  }
}

TEST(ArchiveBytes, counts_headers_padding_and_the_label) {
  const sources::PackSource source = source_of(1);
  EXPECT_EQ(sample_bytes(source, source.samples[0][0], LabelMembers::index).tar, 512u + 512);
  EXPECT_EQ(sample_bytes(source, source.samples[0][0], LabelMembers::cls).tar, 512u + 512 + 512 + 512);
}

}  // namespace
}  // namespace stoker::pack
