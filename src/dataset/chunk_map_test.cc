#include "codec/chunks/chunk_map.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arrays/hdf5/coder.h"
#include "base/file.h"
#include "codec/chunks/chunk_reader.h"
#include "codec/chunks/coders.h"
#include "codec/filters/filters.h"
#include "dataset/coders.h"
#include "dataset/shard_source.h"
#include "dataset/side_index.h"

namespace stoker::codec {
namespace {

constexpr std::uint64_t kRows = 10;
constexpr std::uint64_t kColumns = 6;

// Ten rows of six bytes, 10 * row + column; chunks of 4 x 4 packed by DEFLATE; the last was never written.
struct Packed {
  TempDirectory folder;
  std::string bytes;
  ChunkedArray array;
  Path file() const { return folder / "x.h5"; }

  Packed() {
    array = {.name = "dataset 'x'",
             .shape = {kRows, kColumns},
             .chunks = {4, 4},
             .element_bytes = 1,
             .fill = {std::byte{7}},
             .head = "<>",
             .coder = nullptr,
             .stored_chunks = {}};
    array.coder = arrays::hdf5::chunk_coder({{.id = 1, .name = "deflate", .values = {6}}}, 1);
    for (std::uint64_t row = 0; row < 12; row += 4) {
      for (std::uint64_t column = 0; column < 8; column += 4) add_chunk(row, column);
    }
    array.stored_chunks.back() = {};
    STOKER_CHECK(write_file(file(), bytes).ok());
  }

  void add_chunk(std::uint64_t row, std::uint64_t column) {
    std::vector<std::byte> chunk;
    for (std::uint64_t i = 0; i < 16; ++i)
      chunk.push_back(static_cast<std::byte>(10 * (row + i / 4) + column + i % 4));
    const std::string packed = deflate(Deflate::zlib, chunk, 6).value();
    array.stored_chunks.push_back({bytes.size(), packed.size(), 0});
    bytes += packed;
  }
  ChunkMap map() const { return ChunkMap::create({array}, bytes.size(), "x.h5").value(); }

  static std::string row(std::uint64_t row) {
    std::string text = "<>";
    for (std::uint64_t column = 0; column < kColumns; ++column) {
      const bool is_missing = row >= 8 && column >= 4;
      text += static_cast<char>(is_missing ? 7 : 10 * row + column);
    }
    return text;
  }
};

std::string read(const Packed& packed, const ChunkMap& map, std::uint64_t offset, std::uint64_t length,
                 ChunkCache::Counts* counts = nullptr) {
  const auto cache = std::make_shared<ChunkCache>(ByteCount{1u << 20});
  const ChunkReader reader(map, cache, "x.h5");
  const ShardFile file = ShardFile::open(packed.file()).value();
  std::string out(length, '?');
  const Status status = reader.read(file, offset, std::as_writable_bytes(std::span(out)));
  if (counts) *counts = cache->counts();
  return status.ok() ? out : status.to_string();
}

// Ten records of five bytes, 10 * row + byte; the member is bytes 1 and 2 of each, the higher first.
struct Records : Packed {
  explicit Records(bool is_packed) {
    bytes.clear();
    array = {.name = "dataset 'x/y'",
             .shape = {kRows},
             .chunks = {4},
             .element_bytes = 2,
             .fill = std::vector<std::byte>(2),
             .head = "",
             .coder = nullptr,
             .stored_chunks = {}};
    std::vector<arrays::hdf5::Filter> filters;
    if (is_packed) filters = {{.id = 1, .name = "deflate", .values = {6}}};
    array.coder = arrays::hdf5::chunk_coder(
        filters, 2, arrays::hdf5::RecordMember{.record_bytes = 5, .offset = 1, .bytes = 2});
    for (std::uint64_t row = 0; row < kRows; row += 4) {
      std::vector<std::byte> chunk;
      const std::uint64_t rows = is_packed ? 4 : std::min<std::uint64_t>(4, kRows - row);
      for (std::uint64_t i = 0; i < rows * 5; ++i)
        chunk.push_back(static_cast<std::byte>(10 * (row + i / 5) + i % 5));
      const std::string stored = is_packed
                                     ? deflate(Deflate::zlib, chunk, 6).value()
                                     : std::string(reinterpret_cast<const char*>(chunk.data()), chunk.size());
      array.stored_chunks.push_back({bytes.size(), stored.size(), 0});
      bytes += stored;
    }
    STOKER_CHECK(write_file(file(), bytes).ok());
  }
  static std::string expected() {
    std::string text;
    for (int row = 0; row < static_cast<int>(kRows); ++row) {
      text += static_cast<char>(10 * row + 2);
      text += static_cast<char>(10 * row + 1);
    }
    return text;
  }
};

TEST(ChunkMap, a_member_is_picked_out_of_records) {
  for (const bool is_packed : {false, true}) {
    const Records records(is_packed);
    const ChunkMap map = records.map();
    EXPECT_EQ(map.bytes(), 2 * kRows);
    EXPECT_EQ(read(records, map, 0, 2 * kRows), Records::expected());
    EXPECT_EQ(read(records, map, 7, 9), Records::expected().substr(7, 9));
    const std::string text = map.encode();
    const auto again = ChunkMap::parse(std::as_bytes(std::span(text)), records.bytes.size(), "x.h5",
                                       dataset::parse_any_coder);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(again->arrays()[0].spec.coder->kind(), ChunkCoder::Kind::record);
    EXPECT_EQ(read(records, *again, 0, 2 * kRows), Records::expected());
  }
}

// Bytes 1 and 2 of each record as one number, and 3 and 4 behind a head.
void expect_rows(const Records& records, const ChunkMap& map, const ChunkReader& reader) {
  const ShardFile file = ShardFile::open(records.file()).value();
  std::string expected, found;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    const auto at = [row](std::uint64_t byte) { return static_cast<char>(10 * row + byte); };
    expected += {at(2), at(1), '<', '>', at(3), at(4)};
    const std::uint64_t other = 2 * kRows + 4 * row;
    for (const auto& [offset, bytes] : {std::pair(2 * row, 2u), std::pair(other, 4u)}) {
      std::string out(bytes, '?');
      ASSERT_TRUE(reader.read(file, offset, std::as_writable_bytes(std::span(out))).ok());
      found += out;
    }
    EXPECT_LT(map.read_key(2 * row), map.read_key(other));
    EXPECT_EQ(map.read_key(2 * row).row, map.read_key(other).row);
  }
  EXPECT_EQ(found, expected);
}

TEST(ChunkMap, members_of_the_same_records_share_unpacked_chunks) {
  for (const bool is_packed : {false, true}) {
    Records records(is_packed);
    ChunkedArray other = records.array;  // bytes 3 and 4 of each record, behind a head
    std::vector<arrays::hdf5::Filter> filters;
    if (is_packed) filters = {{.id = 1, .name = "deflate", .values = {6}}};
    other.coder = arrays::hdf5::chunk_coder(
        filters, 1, arrays::hdf5::RecordMember{.record_bytes = 5, .offset = 3, .bytes = 2});
    other.head = "<>";
    const ChunkMap map = ChunkMap::create({records.array, other}, records.bytes.size(), "x.h5").value();
    EXPECT_TRUE(map.shares_chunks());
    EXPECT_EQ(map.cache_bytes_in_read_order(), 4u * 5);
    for (const auto keep : {ChunkReader::CacheContent::member, ChunkReader::CacheContent::records}) {
      const auto cache = std::make_shared<ChunkCache>(ByteCount{1u << 20});
      const ChunkReader reader(map, cache, "x.h5", keep);
      expect_rows(records, map, reader);
      EXPECT_EQ(cache->counts().loads, keep == ChunkReader::CacheContent::records ? 3u : 6u);
    }
    // Another place of one chunk: other records.
    other.stored_chunks[1].offset += 5;
    const auto apart = ChunkMap::create({records.array, other}, records.bytes.size(), "x.h5");
    ASSERT_TRUE(apart.ok());
    EXPECT_FALSE(apart->shares_chunks());
  }
}

TEST(ChunkMap, records_across_the_dimensions_of_an_array_are_damaged) {
  Records records(false);
  records.array.shape = {kRows, 3};
  records.array.chunks = {4, 3};
  records.array.coder = arrays::hdf5::chunk_coder(
      {}, 2, arrays::hdf5::RecordMember{.record_bytes = 5, .offset = 0, .bytes = 4});
  EXPECT_EQ(ChunkMap::create({records.array}, records.bytes.size(), "x.h5").status().to_string(),
            "x.h5: dataset 'x/y': its chunks do not hold whole records");
}

TEST(ChunkMap, a_member_that_does_not_fit_its_record_or_element_is_damaged) {
  const Records records(false);
  const auto coder_of = [&](std::string_view member) {
    const auto coder = dataset::parse_any_coder(
        "record", format(R"({{"filters":[],"member":{},"swap":2}})", member), records.array, "x.h5");
    return coder.ok() ? "" : coder.status().to_string();
  };
  EXPECT_EQ(coder_of("[5,1,2]"), "");
  for (const char* wrong : {"[5,4,2]", "[5,1,0]", "[5,1,3]", "[1048577,1,2]", "[5,-1,2]",
                            "[5,18446744073709551615,2]", "[5,1]", "7"})
    EXPECT_EQ(coder_of(wrong), "x.h5: its coding is damaged") << wrong;
  for (const char* kind : {"hdf5", "record"}) {
    const bool is_record = std::string_view(kind) == "record";
    const auto coder = dataset::parse_any_coder(
        kind, is_record ? R"({"filters":[],"swap":2})" : R"({"filters":[],"member":[5,1,2],"swap":2})",
        records.array, "x.h5");
    EXPECT_EQ(coder.status().to_string(), "x.h5: its coding is damaged");
  }
}

TEST(ChunkMap, records_that_unpack_to_too_much_are_refused) {
  Records records(false);
  records.array.coder = arrays::hdf5::chunk_coder(
      {}, 2, arrays::hdf5::RecordMember{.record_bytes = 1 << 20, .offset = 0, .bytes = 2});
  records.array.chunks = {1 << 11};
  records.array.stored_chunks.resize(1);
  const auto map = ChunkMap::create({records.array}, records.bytes.size(), "x.h5");
  EXPECT_EQ(map.status().to_string(),
            "x.h5: dataset 'x/y': its chunks unpack to 2147483648 bytes each (at most 1 GiB is supported in "
            "place)");
}

TEST(ChunkMap, records_that_are_cut_are_an_error) {
  Records records(false);
  records.array.stored_chunks[0].bytes = 7;
  const ChunkMap map = records.map();
  EXPECT_EQ(read(records, map, 0, 4), "x.h5: dataset 'x/y': chunk 0: holds 7 bytes, records have 5");
}

TEST(ChunkMap, knows_what_the_chunks_of_one_sample_unpack_to) {
  const Packed packed;
  EXPECT_EQ(packed.map().max_sample_chunk_bytes(), 2u * 16);  // two chunks of 4 x 4 side by side
  ChunkedArray windows{.name = "windows",
                       .shape = {},
                       .chunks = {},
                       .element_bytes = 1,
                       .fill = {},
                       .head = {},
                       .coder = nullptr,
                       .stored_chunks = {}};
  const auto needs = [&](Extents size, Extents step) {
    windows.windows = Windows{size, step, {1, 1}, {{0, {0, 0}}}};
    return ChunkMap::create({packed.array, windows}, packed.bytes.size(), "x.h5")
        .value()
        .max_sample_chunk_bytes();
  };
  EXPECT_EQ(needs({4, 4}, {4, 4}), 16u);
  EXPECT_EQ(needs({4, 4}, {1, 4}),
            2u * 16);  // one that begins in the middle of a chunk reaches into the next
  EXPECT_EQ(needs({1, 4}, {1, 4}), 16u);
  EXPECT_EQ(needs({9, 6}, {1, 1}), 3u * 2 * 16);
}

TEST(ChunkReader, gives_every_range_of_the_unpacked_bytes) {
  const Packed packed;
  const ChunkMap map = packed.map();
  std::string whole;
  for (std::uint64_t row = 0; row < kRows; ++row) whole += Packed::row(row);
  ASSERT_EQ(map.bytes(), whole.size());
  for (std::uint64_t begin = 0; begin < whole.size(); begin += 3) {
    for (std::uint64_t length = 1; begin + length <= whole.size(); length += 5)
      ASSERT_EQ(read(packed, map, begin, length), whole.substr(begin, length)) << begin << " " << length;
  }
  EXPECT_EQ(read(packed, map, whole.size() - 1, 2), "x.h5: an offset of the index is beyond its end");
}

TEST(ChunkReader, unpacks_each_chunk_once) {
  const Packed packed;
  const ChunkMap map = packed.map();
  ChunkCache::Counts counts;
  EXPECT_EQ(read(packed, map, 0, map.bytes(), &counts).size(), map.bytes());
  EXPECT_EQ(counts.loads, 6u);
}

TEST(ChunkReader, names_the_chunk_that_is_damaged) {
  Packed packed;
  const ChunkMap map = packed.map();
  const std::string whole = read(packed, map, 0, map.bytes());
  for (std::size_t at = packed.array.stored_chunks[1].offset;
       at < packed.array.stored_chunks[4].offset + packed.array.stored_chunks[4].bytes; ++at) {
    std::string damaged = packed.bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    ASSERT_TRUE(write_file(packed.file(), damaged).ok());
    const std::string found = read(packed, map, 0, map.bytes());
    if (found == whole) continue;  // a bit that means nothing
    EXPECT_THAT(found, ::testing::StartsWith("x.h5: dataset 'x': chunk ")) << at;
  }
  for (std::size_t size = 0; size < packed.array.stored_chunks[4].offset; size += 7) {
    ASSERT_TRUE(write_file(packed.file(), packed.bytes.substr(0, size)).ok());
    EXPECT_THAT(read(packed, map, 0, map.bytes()), ::testing::HasSubstr("x.h5: dataset 'x': chunk "));
  }
}

TEST(ChunkMap, survives_a_round_trip_through_the_index) {
  const Packed packed;
  const std::string text = packed.map().encode();
  const auto bytes = std::as_bytes(std::span(text));
  const Result<ChunkMap> again = ChunkMap::parse(bytes, packed.bytes.size(), "s", dataset::parse_any_coder);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(again->encode(), text);
  EXPECT_EQ(read(packed, *again, 8, 8), Packed::row(1));
  EXPECT_EQ(again->totals().chunks, 5u);
  EXPECT_EQ(again->totals().unpacked, 5 * 16u);
  EXPECT_EQ(again->block(0), again->block(8 * 3 + 7));
  EXPECT_NE(again->block(0), again->block(8 * 4));
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(ChunkMap::parse(bytes.first(size), packed.bytes.size(), "s", dataset::parse_any_coder).ok())
        << size;
}

std::string error_of(const ChunkedArray& array, std::uint64_t shard_bytes = 1000) {
  const Result<ChunkMap> map = ChunkMap::create({array}, shard_bytes, "s");
  return map.ok() ? "no error" : map.error().to_string();
}

TEST(ChunkMap, bounds_what_a_chunk_may_unpack_to_before_memory_is_taken) {
  ChunkedArray bomb = Packed().array;
  bomb.shape = {1u << 20, 1u << 20};
  bomb.chunks = {1u << 20, 1u << 20};
  bomb.stored_chunks = {{0, 100, 0}};
  EXPECT_EQ(
      error_of(bomb),
      "s: dataset 'x': its chunks unpack to 1099511627776 bytes each (at most 1 GiB is supported in place)");
  ChunkedArray list{.name = "column 'x'",
                    .shape = {3ull << 30},
                    .chunks = {},
                    .element_bytes = 1,
                    .fill = {},
                    .head = {},
                    .coder = page_coder(),
                    .stored_chunks = {{0, 100, 3ull << 30}}};
  EXPECT_THAT(error_of(list), ::testing::HasSubstr("at most 1 GiB is supported"));
}

TEST(ChunkMap, refuses_what_does_not_hold) {
  const ChunkedArray good = Packed().array;
  EXPECT_EQ(error_of(good), "no error");
  ChunkedArray array = good;
  array.stored_chunks[1].offset = 990;
  EXPECT_EQ(error_of(array), "s: dataset 'x': chunk 1 is beyond the end of the file");
  array = good;
  array.stored_chunks[2].bytes = 900'000;
  EXPECT_EQ(error_of(array, 1 << 30), "s: dataset 'x': chunk 2 is stored in 900000 bytes, it unpacks to 16");
  array = good;
  array.stored_chunks.pop_back();
  EXPECT_EQ(error_of(array), "s: dataset 'x': some of its chunks are missing");
  array = good;
  array.chunks = {0, 4};
  EXPECT_EQ(error_of(array), "s: dataset 'x': its sizes do not match");
  array = good;
  array.shape = {~0ull, ~0ull};
  EXPECT_THAT(error_of(array), ::testing::HasSubstr("overflow"));
}

TEST(IndexSection, keeps_the_chunk_map_of_a_packed_shard) {
  const Packed packed;
  dataset::SectionBuilder builder(dataset::SectionBuilder::Labels::none);
  const std::uint16_t npy = builder.name("npy");
  for (std::uint64_t row = 0; row < kRows; ++row)
    builder.add({.key = std::to_string(row), .components = {{row * 8, 8, 0, npy}}});
  builder.set_chunks(packed.map());
  const std::string bytes = builder.encode(packed.bytes.size(), {});
  const Result<dataset::IndexSection> section =
      dataset::IndexSection::parse(std::as_bytes(std::span(bytes)), "s");
  ASSERT_TRUE(section.ok()) << section.error().to_string();
  ASSERT_TRUE(section->chunks());
  EXPECT_EQ(section->offset_limit(), 80u);
  EXPECT_EQ(section->shard_bytes(), packed.bytes.size());
  const dataset::SampleTable table({&*section}, {.components = {{.name = "npy"}}});
  EXPECT_THAT(table.samples_per_chunk(), ::testing::ElementsAre(4, 4, 2));
}

}  // namespace
}  // namespace stoker::codec
