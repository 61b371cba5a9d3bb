#include <cstring>

#include <gmock/gmock.h>

#include "arrays/samples/reader.h"
#include "arrays/samples/writer.h"
#include "base/hash.h"

namespace stoker::arrays {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Memory final : public archive::ByteSink {
 public:
  Status write(std::span<const std::byte> data) override {
    text.append(reinterpret_cast<const char*>(data.data()), data.size());
    return {};
  }
  Status overwrite_head(std::span<const std::byte> head) override {
    STOKER_CHECK(head.size() <= text.size());
    text.replace(0, head.size(), reinterpret_cast<const char*>(head.data()), head.size());
    return {};
  }
  std::string text;
};

struct Sample {
  std::string key;
  std::optional<std::int64_t> label;
  std::vector<std::optional<std::string>> files;
};

const std::vector<std::string> kKinds = {"jpg", "seg.png"};
const std::vector<Sample> kSamples = {{"a/1", 3, {"first", "one"}},
                                      {"a/2", std::nullopt, {"second", std::nullopt}},
                                      {"b/3", 0, {std::nullopt, "three"}},
                                      {"b/4", 7, {"", "four"}}};

// A file with these samples, and the offsets of their files.
struct Written {
  std::string text;
  std::vector<std::uint64_t> offsets;
};

Written write(ArrayFormat format, const std::vector<Sample>& samples) {
  Memory memory;
  Written written;
  SampleArraysWriter writer(format, memory, kKinds, /*has_labels=*/true);
  for (const Sample& sample : samples) {
    EXPECT_TRUE(writer.begin_sample(sample.key, sample.label).ok());
    for (std::size_t i = 0; i < sample.files.size(); ++i) {
      if (!sample.files[i]) continue;
      const auto bytes = std::as_bytes(std::span(*sample.files[i]));
      const auto offset = writer.begin_file(i, bytes.size());
      EXPECT_TRUE(offset.ok());
      written.offsets.push_back(offset.value());
      const std::size_t half = bytes.size() / 2;
      for (const auto piece : {bytes.first(half), bytes.subspan(half)})
        EXPECT_TRUE(writer.append(piece, crc32c(piece)).ok());
    }
  }
  EXPECT_TRUE(writer.finish().ok());
  written.text = std::move(memory.text);
  return written;
}

class SampleArraysTest : public ::testing::Test {
 protected:
  Result<SampleArrays> open(const std::string& text) {
    const Path file = folder_ / "x.zarr.zip";
    EXPECT_TRUE(write_file(file, text).ok());
    return SampleArrays::open(file, ArrayFormat::zarr);
  }
  std::string error_of(const std::string& text) {
    const auto arrays = open(text);
    return arrays.ok() ? "" : std::string(arrays.status().message());
  }
  TempDirectory folder_;
};

std::string text_at(const SampleArrays& arrays, const SampleArrays::ByteSpan& place) {
  std::string text(place.end - place.begin, '\0');
  EXPECT_TRUE(arrays.read(place.begin, std::as_writable_bytes(std::span(text))).ok());
  return text;
}

TEST_F(SampleArraysTest, round_trip) {
  const Written written = write(ArrayFormat::zarr, kSamples);
  const auto arrays = open(written.text);
  ASSERT_TRUE(arrays.ok()) << arrays.status().message();
  ASSERT_EQ(arrays->samples(), kSamples.size());
  EXPECT_THAT(arrays->labels(), ElementsAre(3, -1, 0, 7));
  ASSERT_EQ(arrays->files().size(), kKinds.size());
  ASSERT_TRUE(arrays->contiguous_offset().ok()) << arrays->contiguous_offset().status().message();
  std::size_t file = 0;
  for (std::size_t i = 0; i < kSamples.size(); ++i) {
    EXPECT_EQ(text_at(*arrays, arrays->keys()[i]), kSamples[i].key);
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      EXPECT_EQ(arrays->files()[kind].name, kKinds[kind]);
      const SampleArrays::ByteSpan& place = arrays->files()[kind].places[i];
      ASSERT_EQ(place.is_present(), kSamples[i].files[kind].has_value());
      if (!place.is_present()) continue;
      EXPECT_EQ(text_at(*arrays, place), *kSamples[i].files[kind]);
      const std::uint64_t offset = *arrays->contiguous_offset() + place.begin;
      EXPECT_EQ(offset, written.offsets[file++]);
      EXPECT_EQ(written.text.substr(offset, place.end - place.begin), *kSamples[i].files[kind]);
    }
  }
}

TEST_F(SampleArraysTest, the_same_samples_yield_the_same_bytes) {
  for (const ArrayFormat format : {ArrayFormat::hdf5, ArrayFormat::zarr})
    EXPECT_EQ(write(format, kSamples).text, write(format, kSamples).text);
}

TEST_F(SampleArraysTest, many_chunks_are_contiguous) {
  std::vector<Sample> samples;
  for (int i = 0; i < 30; ++i) {
    samples.push_back({std::to_string(i), i, {std::string(50'000, static_cast<char>('a' + i % 26)), ""}});
  }
  const auto arrays = open(write(ArrayFormat::zarr, samples).text);
  ASSERT_TRUE(arrays.ok() && arrays->contiguous_offset().ok());
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(text_at(*arrays, arrays->files()[0].places[static_cast<std::size_t>(i)]),
              *samples[static_cast<std::size_t>(i)].files[0]);
  }
}

TEST_F(SampleArraysTest, a_shard_without_samples_can_be_written) {
  const auto arrays = open(write(ArrayFormat::zarr, {}).text);
  ASSERT_TRUE(arrays.ok()) << arrays.status().message();
  EXPECT_EQ(arrays->samples(), 0u);
  EXPECT_GT(write(ArrayFormat::hdf5, {}).text.size(), 48u);
}

TEST_F(SampleArraysTest, hdf5_begins_with_a_superblock_that_knows_the_end) {
  const Written written = write(ArrayFormat::hdf5, kSamples);
  EXPECT_EQ(written.text.substr(0, 12), std::string_view("\x89HDF\r\n\x1a\n\2\10\10\0", 12));
  std::uint64_t end = 0;
  std::memcpy(&end, written.text.data() + 28, sizeof end);
  EXPECT_EQ(end, written.text.size());
  EXPECT_EQ(written.text.substr(written.offsets[0], 5), "first");
}

TEST_F(SampleArraysTest, a_sink_without_put_head_is_an_error) {
  class Stream final : public archive::ByteSink {
    Status write(std::span<const std::byte>) override { return {}; }
  } stream;
  SampleArraysWriter writer(ArrayFormat::zarr, stream, {"jpg"}, /*has_labels=*/false);
  EXPECT_EQ(writer.finish().code(), Code::internal);
}

TEST_F(SampleArraysTest, invalid_array_names_are_refused) {
  EXPECT_EQ(unsafe_array_name("seg.png"), "");
  EXPECT_EQ(unsafe_array_name("a/b"), "has a /");
  EXPECT_EQ(unsafe_array_name(".."), "is dots and nothing else");
  EXPECT_EQ(unsafe_array_name("__x"), "begins with __, which is reserved in Zarr");
  EXPECT_EQ(unsafe_array_name(std::string(300, 'a')), "is longer than 255 bytes");
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  STOKER_CHECK(from.size() == to.size());
  const std::size_t at = text.find(from);
  STOKER_CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string number(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

TEST_F(SampleArraysTest, ranges_outside_the_bytes_are_named) {
  const std::string text = write(ArrayFormat::zarr, kSamples).text;
  // "second" is at bytes 8 to 14.
  EXPECT_THAT(error_of(replaced(text, number(8) + number(14), number(8) + number(1'000'000))),
              HasSubstr("array 'files/jpg': row 1: 8 to 1000000 are outside 'bytes', which has "));
}

TEST_F(SampleArraysTest, damage_yields_an_error_or_valid_ranges) {
  const std::string text = write(ArrayFormat::zarr, kSamples).text;
  const auto check = [&](const std::string& damaged) {
    const auto arrays = open(damaged);
    if (!arrays.ok()) return;
    const auto run = arrays->contiguous_offset();
    EXPECT_TRUE(!run.ok() || *run + arrays->bytes() <= damaged.size());
    for (const SampleArrays::Kind& kind : arrays->files()) {
      for (const SampleArrays::ByteSpan& place : kind.places)
        EXPECT_TRUE(!place.is_present() || place.end <= arrays->bytes());
    }
  };
  for (std::size_t cut = 0; cut < text.size(); cut += 7) check(text.substr(0, cut));
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    check(flipped);
  }
}

}  // namespace
}  // namespace stoker::arrays
