// What the loader gives beside images, and how it starts again: stored bytes, shards in memory, restart,
// limits.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "data/loader/shard_memory.h"
#include "data/loader/test_pictures.h"

namespace stoker::data {
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

TEST(LoaderContents, damaged_files_are_left_out_of_stored_bytes) {
  PictureDataset dataset(40);
  dataset.flip_a_payload_byte(3);
  dataset.flip_a_payload_byte(7);
  LoaderOptions options = options_of(16);
  options.content = Content::bytes;
  options.shuffle = Shuffle::none;
  options.faults = Faults::skip;
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

TEST(LoaderContents, a_sample_without_the_file_asked_for_is_named) {
  TempDirectory folder;
  std::vector<formats::TestSample> samples;
  for (int i = 0; i < 6; ++i) {
    samples.push_back({format("k{}", i), i, {{"bin", format("bin {}", i)}}});
    if (i != 4) samples.back().files.emplace_back("txt", format("text {}", i));
  }
  formats::write_test_dataset(folder.path(), {samples});
  const auto source = formats::LocalShardSource::open(folder.path(), "").value();
  LoaderOptions options = options_of(6);
  options.content = Content::bytes;
  options.component = "txt";
  options.shuffle = Shuffle::none;
  for (const ByteCount resident : {ByteCount{0}, 1_GiB}) {
    options.resident = resident;
    options.faults = Faults::stop;
    EXPECT_EQ(Loader::open(*source, options).value()->next(soon()).status().to_string(),
              "sample 'k4' (in shard 'all-000000.tar'): has no 'txt'");
    options.faults = Faults::skip;
    auto loader = Loader::open(*source, options).value();
    auto batch = loader->next(soon()).value();
    const std::string_view text(reinterpret_cast<const char*>(batch->bytes().data()), batch->bytes().size());
    EXPECT_EQ(text, "text 0text 1text 2text 3text 5");
    EXPECT_EQ(loader->stats().skipped, 1u);
  }
}

TEST(LoaderContents, images_are_of_the_file_that_is_named) {
  TempDirectory folder;
  std::vector<formats::TestSample> samples;
  for (std::uint64_t i = 0; i < 6; ++i) {
    samples.push_back({format("k{}", i), 0, {{"png", picture(i)}}});
    if (i != 4) samples.back().files.emplace_back("seg.png", picture(100 + i));
  }
  formats::write_test_dataset(folder.path(), {samples});
  const auto source = formats::LocalShardSource::open(folder.path(), "").value();
  LoaderOptions options = options_of(6);
  options.shuffle = Shuffle::none;
  options.faults = Faults::skip;
  options.transform.operations = {{"center_crop", {{"size", double{kSide}}}}};
  options.component = "seg.png";
  auto loader = Loader::open(*source, options).value();
  const Got got = take(*loader);
  ASSERT_EQ(got.samples, (std::vector<std::uint64_t>{0, 1, 2, 3, 5}));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(std::lround(got.images[i * 3 * kSide * kSide] * 255), static_cast<long>(100 + got.samples[i]));
  }
  EXPECT_EQ(loader->skipped()[0].why, "sample 'k4' (in shard 'all-000000.tar'): has no 'seg.png'");
  options.component = "sge.png";
  EXPECT_EQ(Loader::open(*source, options).status().to_string(),
            "loader: split 'all' has no component 'sge.png'; did you mean 'seg.png'?");
}

TEST(LoaderContents, more_damage_than_may_be_skipped_is_an_error) {
  PictureDataset dataset(40);
  for (std::uint64_t sample : {1, 2, 20}) dataset.flip_a_payload_byte(sample);
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  options.faults = Faults::skip;
  options.most_faults = 2;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(take(*loader).samples.size(), 8u);
  EXPECT_EQ(take(*loader).samples.size(), 10u);
  const Status status = loader->next(soon()).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(status.message().starts_with(
      "loader: 3 damaged samples, more than the 2 that may be skipped; the last one: all-000000.tar: sample "
      "'class/0020' (png): CRC-32C expected "));
}

TEST(LoaderContents, without_the_check_damaged_bytes_come_through) {
  PictureDataset dataset(40);
  dataset.flip_a_payload_byte(3);
  LoaderOptions options = options_of(40);
  options.content = Content::bytes;
  options.check = Check::none;
  auto loader = Loader::open(dataset.source(), options).value();
  EXPECT_EQ(loader->next(soon()).value()->count(), 40u);
}

TEST(LoaderRestart, goes_on_where_the_state_stands) {
  const PictureDataset dataset(100);
  auto loader = Loader::open(dataset.source(), options_of(10)).value();
  const Got first = take(*loader);
  const std::vector<Got> rest = take_epochs(*loader, 2);
  ASSERT_TRUE(loader->restart(first.after).ok());
  EXPECT_EQ(loader->state(), first.after);
  EXPECT_EQ(take_epochs(*loader, 2), rest);
}

TEST(LoaderRestart, of_another_seed_is_refused_and_changes_nothing) {
  const PictureDataset dataset(100);
  auto loader = Loader::open(dataset.source(), options_of(10)).value();
  auto same = Loader::open(dataset.source(), options_of(10)).value();
  OrderState other = loader->state();
  other.seed = 6;
  EXPECT_EQ(loader->restart(other).to_string(),
            "loader: the state to resume has seed 6, this training seed 5");
  EXPECT_EQ(take_epochs(*loader, 1), take_epochs(*same, 1));
}

TEST(LoaderRestart, after_a_failure_says_the_failure) {
  PictureDataset dataset(40);
  dataset.flip_a_payload_byte(0);
  LoaderOptions options = options_of(10);
  options.shuffle = Shuffle::none;
  auto loader = Loader::open(dataset.source(), options).value();
  const OrderState begin = loader->state();
  const Status failure = loader->next(soon()).status();
  EXPECT_EQ(loader->restart(begin).to_string(), failure.to_string());
}

TEST(ShardMemory, holds_nothing_beyond_its_budget) {
  const PictureDataset dataset(100);
  std::uint64_t bytes = 0;
  for (const auto& shard : dataset.source().split().shards) bytes += shard.bytes;
  EXPECT_EQ(ShardMemory::create(dataset.source(), {bytes - 1}), nullptr);
  EXPECT_NE(ShardMemory::create(dataset.source(), {bytes}), nullptr);
}

TEST(ShardMemory, a_shard_that_was_cut_short_is_an_error_each_time) {
  PictureDataset dataset(100);
  auto memory = ShardMemory::create(dataset.source(), 1_GiB);
  File shard = File::open_read_write(dataset.shard(1)).value();
  ASSERT_TRUE(shard.truncate(1024).ok());
  const formats::Locator file = dataset.source().samples().image(79).value();
  std::vector<std::byte> alone;
  for (int again = 0; again < 40; ++again)  // first alone, then the block
    EXPECT_EQ(memory->view(file, alone).status().code(), Code::corrupt);
  EXPECT_TRUE(memory->view(dataset.source().samples().image(0).value(), alone).ok());
}

// A source in which one file cannot be read: as where a packed shard has a damaged chunk.
class HoledSource final : public formats::ShardSource {
 public:
  HoledSource(const formats::ShardSource& source, const formats::Locator& hole)
      : source_(source), hole_(hole) {}
  const formats::Manifest& manifest() const override { return source_.manifest(); }
  const formats::SplitInfo& split() const override { return source_.split(); }
  const formats::SampleTable& samples() const override { return source_.samples(); }
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override {
    const bool is_before = offset + out.size() <= hole_.offset;
    if (shard == hole_.shard && !is_before && offset < hole_.offset + hole_.length)
      return corrupt("chunk 3: does not unpack");
    return source_.read(shard, offset, out);
  }
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override { return source_.map(shard); }

 private:
  const formats::ShardSource& source_;
  const formats::Locator hole_;
};

TEST(ShardMemory, beside_a_file_that_cannot_be_read_gives_all_others) {
  const PictureDataset dataset(40);
  const HoledSource holed(dataset.source(), dataset.source().samples().image(3).value());
  auto memory = ShardMemory::create(holed, 1_GiB);
  std::vector<std::byte> alone;
  for (int again = 0; again < 3; ++again) {  // first alone, then the block
    for (std::uint64_t sample = 0; sample < 40; ++sample)
      EXPECT_EQ(memory->view(holed.samples().image(sample).value(), alone).ok(), sample != 3);
  }
}

TEST(ShardMemory, gives_the_same_bytes_alone_and_from_memory) {
  const PictureDataset dataset(100);
  auto memory = ShardMemory::create(dataset.source(), 1_GiB);
  bool was_in_memory = false;
  EXPECT_EQ(memory->find(dataset.source().samples().image(0).value()), nullptr);
  for (int again = 0; again < 3; ++again) {
    for (std::uint64_t sample = 0; sample < 100; ++sample) {
      std::vector<std::byte> alone;
      const formats::Locator file = dataset.source().samples().image(sample).value();
      memory->expect(file);
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
}  // namespace stoker::data
