// A packed dataset of small pictures and helpers of the loader's tests. Not used outside tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <png.h>

#include "dataset/shard_source.h"
#include "dataset/test_dataset.h"
#include "stoker/loader.h"

namespace stoker::loader {

inline constexpr std::uint32_t kSide = 6;

inline Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

// A PNG of one colour that encodes the sample's number: red and green are its digits to base 250.
inline std::string picture(std::uint64_t number) {
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
  STOKER_CHECK(png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr));
  out.resize(size);
  return out;
}

// A packed dataset of `samples` pictures in shards of at most 40, labels the number modulo 7.
class PictureDataset {
 public:
  explicit PictureDataset(std::uint64_t samples) {
    std::vector<std::vector<dataset::TestSample>> shards;
    for (std::uint64_t i = 0; i < samples; ++i) {
      if (i % 40 == 0) shards.emplace_back();
      shards.back().push_back(
          {format("class/{:04}", i), static_cast<std::int64_t>(i % 7), {{"png", picture(i)}}});
    }
    dataset::write_test_dataset(folder_.path(), shards);
    reopen();
  }

  void reopen() { source_ = dataset::LocalShardSource::open(folder_.path(), "").value(); }
  const dataset::ShardSource& source() const { return *source_; }
  Path shard(int number) const { return folder_ / format("all-{:06}.tar", number); }
  void corrupt_payload(std::uint64_t sample) {
    const dataset::Locator at = *source_->samples().image(sample);
    File file = File::open_read_write(shard(static_cast<int>(at.shard))).value();
    std::byte byte[1];
    STOKER_CHECK(file.read_at(at.offset + at.length / 2, byte).ok());
    byte[0] ^= std::byte{0x10};
    STOKER_CHECK(file.write_at(at.offset + at.length / 2, byte).ok());
  }

 private:
  TempDirectory folder_;
  std::unique_ptr<dataset::LocalShardSource> source_;
};

inline LoaderOptions options_of(std::uint32_t batch, int rank = 0, int world = 1) {
  LoaderOptions options;
  options.seed = 5;
  options.batch = batch;
  options.rank = {Rank{rank}, WorldSize{world}, Remainder::pad};
  options.transform.operations = {{"random_crop", {{"size", double{kSide}}, {"padding", 2.0}}},
                                  {"random_horizontal_flip"}};
  return options;
}

// A copy of the result of next().
struct ReceivedBatch {
  bool is_epoch_end = false;
  std::int64_t epoch = 0;
  std::vector<std::uint64_t> samples;
  std::vector<std::int64_t> labels;
  std::vector<float> images;
  OrderState after;

  bool operator==(const ReceivedBatch&) const = default;
};

inline ReceivedBatch next_batch(Loader& loader) {
  auto next = loader.next(soon());
  if (!next.ok()) {
    ADD_FAILURE() << next.status().to_string();
    return {};
  }
  ReceivedBatch got;
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

inline std::vector<ReceivedBatch> read_epochs(Loader& loader, int epochs) {
  std::vector<ReceivedBatch> all;
  while (epochs > 0) {
    all.push_back(next_batch(loader));
    if (all.back().is_epoch_end) --epochs;
    if (::testing::Test::HasFailure()) break;
  }
  return all;
}

inline std::vector<std::uint64_t> samples_of(const std::vector<ReceivedBatch>& all) {
  std::vector<std::uint64_t> samples;
  for (const ReceivedBatch& got : all) samples.insert(samples.end(), got.samples.begin(), got.samples.end());
  return samples;
}

}  // namespace stoker::loader
