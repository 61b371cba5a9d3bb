// Contents beside images, and restarts: stored bytes, shards in memory, restart, limits.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "loader/shard_memory.h"
#include "loader/test_pictures.h"

namespace stoker::loader {
namespace {

TEST(LoaderContents, stored_bytes_are_the_files_as_packed) {
  const PictureDataset dataset(100);
  LoaderOptions options = options_of(32);
  options.content = Content::bytes;
  for (const ByteCount resident : {ByteCount{0}, 1_GiB}) {
    options.resident = resident;
    auto loader = Loader::open(dataset.source(), options).value();
    std::uint64_t seen = 0;
    for (;;) {
      auto batch = loader->next(soon()).value();
      if (!batch) break;
      ASSERT_EQ(batch->offsets().size(), batch->count() + 1u);
      for (std::uint32_t i = 0; i < batch->count(); ++i, ++seen) {
        const auto begin = batch->bytes().begin();
        const std::string expected = picture(batch->samples()[i]);
        EXPECT_TRUE(std::equal(begin + batch->offsets()[i], begin + batch->offsets()[i + 1],
                               std::as_bytes(std::span(expected)).begin()));
        EXPECT_EQ(batch->labels()[i], static_cast<std::int64_t>(batch->samples()[i] % 7));
      }
    }
    EXPECT_EQ(seen, 100u);
  }
}

TEST(LoaderContents, damaged_files_are_dropped_from_stored_bytes) {
  PictureDataset dataset(40);
  dataset.corrupt_payload(3);
  dataset.corrupt_payload(7);
  LoaderOptions options = options_of(16);
  options.content = Content::bytes;
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  for (const ByteCount resident : {ByteCount{0}, 1_GiB}) {
    options.resident = resident;
    auto loader = Loader::open(dataset.source(), options).value();
    auto batch = loader->next(soon()).value();
    ASSERT_EQ(batch->count(), 14u);
    EXPECT_EQ(batch->samples()[3], 4u);
    EXPECT_EQ(batch->labels()[3], 4);
    const std::string fourth = picture(4);
    EXPECT_TRUE(std::equal(fourth.begin(), fourth.end(),
                           reinterpret_cast<const char*>(batch->bytes().data() + batch->offsets()[3])));
    EXPECT_EQ(static_cast<std::size_t>(batch->offsets().back()), batch->bytes().size());
    ASSERT_EQ(loader->skipped().size(), 2u);
    EXPECT_EQ(loader->skipped()[1].sample, 7u);
    EXPECT_TRUE(
        loader->skipped()[1].why.starts_with("all-000000.tar: sample 'class/0007' (png): CRC-32C expected "));
  }
}

TEST(LoaderContents, a_sample_without_the_requested_file_is_named) {
  TempDirectory folder;
  std::vector<dataset::TestSample> samples;
  for (int i = 0; i < 6; ++i) {
    samples.push_back({format("k{}", i), i, {{"bin", format("bin {}", i)}}});
    if (i != 4) samples.back().files.emplace_back("txt", format("text {}", i));
  }
  dataset::write_test_dataset(folder.path(), {samples});
  const auto source = dataset::LocalShardSource::open(folder.path(), "").value();
  LoaderOptions options = options_of(6);
  options.content = Content::bytes;
  options.component = "txt";
  options.shuffle = Shuffle::none;
  for (const ByteCount resident : {ByteCount{0}, 1_GiB}) {
    options.resident = resident;
    options.on_damage = DamagePolicy::stop;
    EXPECT_EQ(Loader::open(*source, options).value()->next(soon()).status().to_string(),
              "sample 'k4' (in shard 'all-000000.tar'): has no 'txt'");
    options.on_damage = DamagePolicy::skip;
    auto loader = Loader::open(*source, options).value();
    auto batch = loader->next(soon()).value();
    const std::string_view text(reinterpret_cast<const char*>(batch->bytes().data()), batch->bytes().size());
    EXPECT_EQ(text, "text 0text 1text 2text 3text 5");
    EXPECT_EQ(loader->stats().skipped, 1u);
  }
}

TEST(LoaderContents, images_come_from_the_named_component) {
  TempDirectory folder;
  std::vector<dataset::TestSample> samples;
  for (std::uint64_t i = 0; i < 6; ++i) {
    samples.push_back({format("k{}", i), 0, {{"png", picture(i)}}});
    if (i != 4) samples.back().files.emplace_back("seg.png", picture(100 + i));
  }
  dataset::write_test_dataset(folder.path(), {samples});
  const auto source = dataset::LocalShardSource::open(folder.path(), "").value();
  LoaderOptions options = options_of(6);
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  options.transform.operations = {{"center_crop", {{"size", double{kSide}}}}};
  options.component = "seg.png";
  auto loader = Loader::open(*source, options).value();
  const ReceivedBatch got = next_batch(*loader);
  ASSERT_EQ(got.samples, (std::vector<std::uint64_t>{0, 1, 2, 3, 5}));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(std::lround(got.images[i * 3 * kSide * kSide] * 255), static_cast<long>(100 + got.samples[i]));
  }
  EXPECT_EQ(loader->skipped()[0].why, "sample 'k4' (in shard 'all-000000.tar'): has no 'seg.png'");
  options.component = "sge.png";
  EXPECT_EQ(Loader::open(*source, options).status().to_string(),
            "loader: split 'all' has no component 'sge.png'; did you mean 'seg.png'?");
}

TEST(LoaderContents, exceeding_max_skipped_is_an_error) {
  PictureDataset dataset(40);
  for (std::uint64_t sample : {1, 2, 20}) dataset.corrupt_payload(sample);
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  options.max_skipped = 2;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(next_batch(*loader).samples.size(), 8u);
  EXPECT_EQ(next_batch(*loader).samples.size(), 10u);
  const Status status = loader->next(soon()).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(status.message().starts_with(
      "loader: 3 damaged samples exceed the limit of 2 (max_skipped); the last one: all-000000.tar: sample "
      "'class/0020' (png): CRC-32C expected "));
}

TEST(LoaderContents, without_the_check_damaged_bytes_are_returned) {
  PictureDataset dataset(40);
  dataset.corrupt_payload(3);
  LoaderOptions options = options_of(40);
  options.content = Content::bytes;
  options.check = Check::none;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->next(soon()).value()->count(), 40u);
}

TEST(LoaderRestart, resumes_at_the_given_state) {
  const PictureDataset dataset(100);
  auto loader = Loader::open(dataset.source(), options_of(10)).value();
  const ReceivedBatch first = next_batch(*loader);
  const std::vector<ReceivedBatch> rest = read_epochs(*loader, 2);
  ASSERT_TRUE(loader->restart(first.after).ok());
  EXPECT_EQ(loader->state(), first.after);
  EXPECT_EQ(read_epochs(*loader, 2), rest);
}

TEST(LoaderRestart, a_different_seed_is_refused_without_side_effects) {
  const PictureDataset dataset(100);
  auto loader = Loader::open(dataset.source(), options_of(10)).value();
  auto same = Loader::open(dataset.source(), options_of(10)).value();
  OrderState other = loader->state();
  other.seed = 6;
  EXPECT_EQ(loader->restart(other).to_string(),
            "loader: the state to resume has seed 6, this training has seed 5");
  EXPECT_EQ(read_epochs(*loader, 1), read_epochs(*same, 1));
}

TEST(LoaderRestart, after_a_failure_returns_that_failure) {
  PictureDataset dataset(40);
  dataset.corrupt_payload(0);
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  auto loader = Loader::open(dataset.source(), options).value();
  const OrderState begin = loader->state();
  const Status failure = loader->next(soon()).status();
  EXPECT_EQ(loader->restart(begin).to_string(), failure.to_string());
}

TEST(ShardMemory, is_disabled_beyond_its_budget) {
  const PictureDataset dataset(100);
  std::uint64_t bytes = 0;
  for (const auto& shard : dataset.source().split().shards) bytes += shard.bytes;
  EXPECT_EQ(ShardMemory::create(dataset.source(), {bytes - 1}), nullptr);
  EXPECT_NE(ShardMemory::create(dataset.source(), {bytes}), nullptr);
}

TEST(ShardMemory, a_truncated_shard_is_an_error_each_time) {
  PictureDataset dataset(100);
  auto memory = ShardMemory::create(dataset.source(), 1_GiB);
  File shard = File::open_read_write(dataset.shard(1)).value();
  ASSERT_TRUE(shard.truncate(1024).ok());
  const dataset::Locator file = dataset.source().samples().image(79).value();
  std::vector<std::byte> alone;
  for (int again = 0; again < 40; ++again)  // first single reads, then the block
    EXPECT_EQ(memory->view(file, alone).status().code(), Code::corrupt);
  EXPECT_TRUE(memory->view(dataset.source().samples().image(0).value(), alone).ok());
}

// A source with one unreadable file, like a packed shard with a damaged chunk.
class HoledSource final : public dataset::ShardSource {
 public:
  HoledSource(const dataset::ShardSource& source, const dataset::Locator& hole)
      : source_(source), hole_(hole) {}
  const dataset::Manifest& manifest() const override { return source_.manifest(); }
  const dataset::SplitInfo& split() const override { return source_.split(); }
  const dataset::SampleTable& samples() const override { return source_.samples(); }
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override {
    const bool is_before = offset + out.size() <= hole_.offset;
    if (shard == hole_.shard && !is_before && offset < hole_.offset + hole_.length)
      return corrupt("chunk 3: does not unpack");
    return source_.read(shard, offset, out);
  }
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override { return source_.map(shard); }

 private:
  const dataset::ShardSource& source_;
  const dataset::Locator hole_;
};

TEST(ShardMemory, one_unreadable_file_does_not_affect_the_rest) {
  const PictureDataset dataset(40);
  const HoledSource holed(dataset.source(), dataset.source().samples().image(3).value());
  auto memory = ShardMemory::create(holed, 1_GiB);
  std::vector<std::byte> alone;
  for (int again = 0; again < 3; ++again) {  // first single reads, then the block
    for (std::uint64_t sample = 0; sample < 40; ++sample)
      EXPECT_EQ(memory->view(holed.samples().image(sample).value(), alone).ok(), sample != 3);
  }
}

TEST(ShardMemory, single_reads_and_loaded_blocks_have_the_same_bytes) {
  const PictureDataset dataset(100);
  auto memory = ShardMemory::create(dataset.source(), 1_GiB);
  bool was_in_memory = false;
  EXPECT_EQ(memory->find(dataset.source().samples().image(0).value()), nullptr);
  for (int again = 0; again < 3; ++again) {
    for (std::uint64_t sample = 0; sample < 100; ++sample) {
      std::vector<std::byte> alone;
      const dataset::Locator file = dataset.source().samples().image(sample).value();
      memory->prefetch(file);
      const auto view = memory->view(file, alone).value();
      was_in_memory = was_in_memory || view.data() != alone.data();
      EXPECT_EQ(memory->find(file), view.data() != alone.data() ? view.data() : nullptr);
      const std::string expected = picture(sample);
      ASSERT_TRUE(std::equal(view.begin(), view.end(), std::as_bytes(std::span(expected)).begin(),
                             std::as_bytes(std::span(expected)).end()));
    }
  }
  EXPECT_TRUE(was_in_memory);
}

TEST(LimitingStage, names_the_stage_or_the_consumer) {
  EXPECT_EQ(limiting_stage({}), "nothing yet");
  EXPECT_EQ(limiting_stage({.read_s = 1, .check_s = 0, .decode_s = 3}),
            "decode and transform (75 % of the threads' work)");
  EXPECT_EQ(limiting_stage({.idle_s = 9, .read_s = 1}),
            "the consumer (the threads were idle 90 % of the time)");
}

}  // namespace
}  // namespace stoker::loader
