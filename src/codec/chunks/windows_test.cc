// Windows over the chunks of arrays, and shards that are several files.
#include "codec/chunks/windows.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "codec/chunks/chunk_map.h"
#include "codec/chunks/chunk_reader.h"
#include "codec/chunks/coders.h"

namespace stoker::codec {
namespace {

using ::testing::HasSubstr;

// An array of bytes in plain chunks of random sizes, every fifth chunk unwritten.
struct Grid {
  ChunkedArray array;
  std::vector<std::byte> elements;  // in C order

  Grid(std::mt19937& chance, const Extents& shape, std::string& file) {
    array = {.name = "dataset 'x'", .shape = shape, .fill = {std::byte{9}}, .coder = plain_coder(1)};
    std::uint64_t chunks = 1;
    for (const std::uint64_t size : shape) {
      array.chunks.push_back(1 + chance() % (size + 1));
      chunks *= (size + array.chunks.back() - 1) / array.chunks.back();
    }
    elements.resize(*product(shape));
    for (std::uint64_t i = 0; i < chunks; ++i) add_chunk(chance, i, file);
  }

  void add_chunk(std::mt19937& chance, std::uint64_t number, std::string& file) {
    const bool is_missing = number % 5 == 4;
    const std::uint64_t bytes = *product(array.chunks);
    array.stored_chunks.push_back(is_missing ? StoredChunk{} : StoredChunk{file.size(), bytes, 0});
    Extents begin(array.shape.size());
    for (std::size_t d = begin.size(); d-- > 0;) {
      const std::uint64_t count = (array.shape[d] + array.chunks[d] - 1) / array.chunks[d];
      begin[d] = number % count * array.chunks[d];
      number /= count;
    }
    for (std::uint64_t i = 0; i < bytes; ++i) {
      const char value = is_missing ? 9 : static_cast<char>(chance());
      if (!is_missing) file += value;
      std::uint64_t rest = i, at = 0, stride = 1;
      bool is_inside = true;
      for (std::size_t d = begin.size(); d-- > 0;) {
        const std::uint64_t place = begin[d] + rest % array.chunks[d];
        rest /= array.chunks[d];
        is_inside = is_inside && place < array.shape[d];
        at += place * stride;
        stride *= array.shape[d];
      }
      if (is_inside) elements[at] = static_cast<std::byte>(value);
    }
  }

  // Element by element.
  std::string box(const Extents& begin, const Extents& size) const {
    std::string out;
    for (std::uint64_t i = 0; i < *product(size); ++i) {
      std::uint64_t rest = i, at = 0, stride = 1;
      for (std::size_t d = size.size(); d-- > 0;) {
        at += (begin[d] + rest % size[d]) * stride;
        rest /= size[d];
        stride *= array.shape[d];
      }
      out += static_cast<char>(elements[at]);
    }
    return out;
  }
};

// Windows of random sizes and steps that fit a shape.
Windows random_windows(std::mt19937& chance, const Extents& shape) {
  Windows windows;
  Extents begin;
  for (const std::uint64_t size : shape) {
    windows.size.push_back(1 + chance() % size);
    begin.push_back(chance() % (size - windows.size.back() + 1));
    windows.step.push_back(1 + chance() % 4);
    const std::uint64_t room = size - begin.back() - windows.size.back();
    windows.counts.push_back(1 + chance() % (room / windows.step.back() + 1));
  }
  windows.parts = {{0, begin}, {1, begin}};
  return windows;
}

TEST(Windows, reads_boxes_across_chunks) {
  std::mt19937 chance(4);
  const TempDirectory folder;
  for (int round = 0; round < 200; ++round) {
    Extents shape;
    for (std::size_t d = 0; d < 1 + chance() % 4; ++d) shape.push_back(1 + chance() % 7);
    std::string file;
    const Grid one(chance, shape, file), other(chance, shape, file);
    ASSERT_TRUE(write_file(folder / "x.h5", file).ok());
    const ChunkedArray windowed{.name = "windows", .head = "<>", .windows = random_windows(chance, shape)};
    const Windows& windows = *windowed.windows;
    const ChunkMap made = ChunkMap::create({one.array, other.array, windowed}, file.size(), "s").value();
    const std::string encoded = made.encode();
    const ChunkMap map = ChunkMap::parse(std::as_bytes(std::span(encoded)), file.size(), "s").value();
    ASSERT_EQ(map.encode(), encoded);
    EXPECT_TRUE(map.has_windows());
    const auto cache = std::make_shared<ChunkCache>(ByteCount{1u << 20});
    const ChunkReader reader(map, cache, "s");
    const ShardFile shard = ShardFile::open(folder / "x.h5").value();
    std::string whole;
    for (std::uint64_t row = 0; row < windows.rows(); ++row) {
      const Extents begin = windows.window_begin(windows.parts[0], row);
      whole += "<>" + one.box(begin, windows.size) + other.box(begin, windows.size);
    }
    const std::uint64_t at = map.arrays()[2].begin;
    ASSERT_EQ(map.bytes() - at, whole.size());
    for (int piece = 0; piece < 10; ++piece) {
      const std::uint64_t begin = piece == 0 ? 0 : chance() % whole.size();
      std::string out(piece == 0 ? whole.size() : chance() % (whole.size() - begin + 1), '?');
      reader.will_need(shard, at + begin, out.size());
      ASSERT_TRUE(reader.read(shard, at + begin, std::as_writable_bytes(std::span(out))).ok());
      ASSERT_EQ(out, whole.substr(begin, out.size()));
    }
    EXPECT_LE(cache->counts().loads, one.array.stored_chunks.size() + other.array.stored_chunks.size());
  }
}

std::string error_of(const Windows& windows) {
  std::mt19937 chance(1);
  std::string file;
  const Grid grid(chance, {6, 5}, file);
  const auto map = ChunkMap::create({grid.array, {.name = "w", .windows = windows}}, file.size(), "s");
  return map.ok() ? "no error" : map.status().to_string();
}

TEST(Windows, rejects_windows_outside_the_arrays) {
  const Windows good{.size = {2, 5}, .step = {2, 1}, .counts = {2, 1}, .parts = {{0, {1, 0}}}};
  EXPECT_EQ(error_of(good), "no error");
  const auto refused = [&](auto change) {
    Windows windows = good;
    change(windows);
    return error_of(windows);
  };
  const std::string damaged = "s: w: its windows do not fit the arrays";
  EXPECT_EQ(refused([](Windows& w) { w.counts[0] = 3; }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.size[1] = 6; }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.size[1] = 0; }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.step[0] = 0; }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.step[0] = ~0ull; }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.parts[0].begin[0] = ~0ull; }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.parts[0].array = 1; }), damaged) << "itself";
  EXPECT_EQ(refused([](Windows& w) { w.parts[0].array = ~0u; }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.parts.clear(); }), damaged);
  EXPECT_EQ(refused([](Windows& w) { w.size.pop_back(); }), damaged);
}

// Whatever parses holds: every byte of it reads as something, or as an error.
TEST(Windows, rejects_or_bounds_windows_of_a_damaged_map) {
  std::mt19937 chance(2);
  const TempDirectory folder;
  std::string file;
  const Grid grid(chance, {6, 5}, file);
  ASSERT_TRUE(write_file(folder / "x.h5", file).ok());
  const ShardFile shard = ShardFile::open(folder / "x.h5").value();
  const Windows windows{.size = {2, 5}, .step = {2, 1}, .counts = {2, 1}, .parts = {{0, {1, 0}}}};
  const std::vector<ShardPart> parts{{"a", file.size() - 3}, {"b", 3}};
  const std::string whole =
      ChunkMap::create({grid.array, {.name = "w", .windows = windows}}, file.size(), "s", parts)
          .value()
          .encode();
  int parsed = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char change : {'\x01', '\x10', '\x1f'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const auto map = ChunkMap::parse(std::as_bytes(std::span(damaged)), file.size(), "s");
      if (!map.ok() || map->bytes() > 1u << 20) continue;
      ++parsed;
      const ChunkReader reader(*map, std::make_shared<ChunkCache>(ByteCount{1u << 20}), "s");
      std::string out(map->bytes(), '?');
      (void)reader.read(shard, 0, std::as_writable_bytes(std::span(out))).ok();
      reader.will_need(shard, 0, map->bytes());
    }
  }
  EXPECT_GT(parsed, 10);
}

TEST(ShardFile, reads_concatenated_parts) {
  const TempDirectory folder;
  std::error_code ignored;
  std::filesystem::create_directories(folder / "x.zarr/c/0", ignored);
  ASSERT_TRUE(write_file(folder / "x.zarr/zarr.json", "{json}").ok());
  ASSERT_TRUE(write_file(folder / "x.zarr/c/0/1", "01234567").ok());
  ASSERT_TRUE(write_file(folder / "x.zarr/c/0/2", "").ok());
  ASSERT_TRUE(write_file(folder / "x.zarr/c/0/3", "abc").ok());
  const auto parts = list_parts(folder / "x.zarr");
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  const ShardFile file = ShardFile::open(folder / "x.zarr", *parts).value();
  const std::string whole = "01234567abc{json}";
  EXPECT_EQ(file.size().value(), whole.size());
  EXPECT_TRUE(file.check_parts().ok());
  for (std::size_t begin = 0; begin < whole.size(); ++begin) {
    for (std::size_t length = 0; begin + length <= whole.size(); ++length) {
      std::string out(length, '?');
      ASSERT_TRUE(file.read_at(begin, std::as_writable_bytes(std::span(out))).ok());
      ASSERT_EQ(out, whole.substr(begin, length));
    }
  }
  std::string out(4, '?');
  EXPECT_THAT(file.read_at(whole.size() - 2, std::as_writable_bytes(std::span(out))).to_string(),
              HasSubstr("is read beyond its end"));
  ASSERT_TRUE(write_file(folder / "x.zarr/c/0/3", "abcd").ok());
  EXPECT_THAT(file.check_parts().to_string(), HasSubstr("c/0/3: has 4 bytes, the index lists 3"));
  EXPECT_THAT(file.read_at(9, std::as_writable_bytes(std::span(out))).to_string(),
              HasSubstr("the index lists 3"));
}

TEST(ShardFile, rejects_parts_outside_the_shard) {
  EXPECT_EQ(unsafe_part("c/0/1"), "");
  EXPECT_EQ(unsafe_part(".zarray"), "");
  EXPECT_EQ(unsafe_part("/etc/passwd"), "is an absolute path");
  for (const char* name : {"../x", "a/../b", "a/./b", "a//b", "a/", ".."})
    EXPECT_EQ(unsafe_part(name), "has a part that leaves the folder") << name;
  EXPECT_EQ(unsafe_part(std::string_view("a\nb")), "is not valid UTF-8");
  EXPECT_EQ(unsafe_part(""), "is empty or too long");
  const auto error = [](std::vector<ShardPart> parts) {
    return ChunkMap::create({}, 10, "s", std::move(parts)).status().to_string();
  };
  EXPECT_TRUE(ChunkMap::create({}, 10, "s", {{"a", 4}, {"b", 6}}).ok());
  EXPECT_THAT(error({{"../a", 10}}),
              HasSubstr("the name '../a' of a part has a part that leaves the folder"));
  EXPECT_THAT(error({{"a", 4}, {"b", 5}}), HasSubstr("its parts do not add up"));
  EXPECT_THAT(error({{"a", 4}, {"b", ~0ull}}), HasSubstr("its parts do not add up"));
}

}  // namespace
}  // namespace stoker::codec
