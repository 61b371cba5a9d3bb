#include "parquet/schema/page_index.h"

#include <cstring>

#include <gtest/gtest.h>

namespace stoker::parquet {
namespace {

std::vector<std::byte> owned_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Three pages of 10, 5 and 5 rows, of 100 bytes each from 4 on.
std::vector<std::byte> offsets() {
  std::string text = "\x19\x3C";  // field 1: a list of 3 structures
  for (const auto& [offset, row] : {std::pair{4, 0}, {104, 10}, {204, 15}}) {
    text += '\x16';
    for (unsigned value = static_cast<unsigned>(offset) * 2; value > 0; value >>= 7)
      text += static_cast<char>((value & 0x7F) | (value >> 7 > 0 ? 0x80 : 0));
    text += "\x15\xC8\x01";
    text += '\x16';
    text += static_cast<char>(row * 2);
    text += '\0';
  }
  return owned_bytes(text + '\0');
}

// The second is all null; the first has 1 to 2, the third 5 to 9.
std::vector<std::byte> columns() {
  using namespace std::string_view_literals;
  return owned_bytes(
      "\x19\x31\x02\x01\x02\x19\x38\x01\x01\x00\x01\x05\x19\x38\x01\x02\x00\x01\x09\x15\x02\x19\x36\x00\x0A\x04\x00"sv);
}

ParquetChunk chunk() {
  ParquetChunk chunk;
  chunk.begin = 4;
  chunk.bytes = 300;
  return chunk;
}

TEST(PageIndex, reads_rows_and_statistics_of_pages) {
  const auto pages = read_page_index(offsets(), columns(), chunk(), 20);
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(pages[1].offset, 104U);
  EXPECT_EQ(pages[1].bytes, 100U);
  EXPECT_EQ(pages[1].first_row, 10U);
  EXPECT_EQ(pages[1].rows, 5U);
  EXPECT_EQ(pages[1].statistics.null_count, 5);
  EXPECT_FALSE(pages[1].statistics.min);
  EXPECT_EQ(pages[2].statistics.min, "\x05");
  EXPECT_EQ(pages[2].statistics.max, "\x09");
  EXPECT_EQ(pages[2].statistics.null_count, 2);
  EXPECT_EQ(read_page_index(offsets(), {}, chunk(), 20).size(), 3U);
}

TEST(PageIndex, rejects_pages_outside_the_chunk) {
  EXPECT_TRUE(read_page_index(offsets(), {}, chunk(), 15).empty());
  ParquetChunk other = chunk();
  other.bytes = 299;
  EXPECT_TRUE(read_page_index(offsets(), {}, other, 20).empty());
  other = chunk();
  other.begin = 5;
  EXPECT_TRUE(read_page_index(offsets(), {}, other, 20).empty());
  EXPECT_TRUE(read_page_index(columns(), columns(), chunk(), 20).empty());
  EXPECT_TRUE(read_page_index({}, {}, chunk(), 20).empty());
}

TEST(PageIndex, damage_of_any_byte_is_read_without_harm) {
  for (const auto& whole : {offsets(), columns()}) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      auto damaged = whole;
      for (int bit = 0; bit < 8; ++bit) {
        damaged[at] = whole[at] ^ std::byte(1 << bit);
        for (const IndexedPage& page : read_page_index(damaged, columns(), chunk(), 20))
          EXPECT_LE(page.offset + page.bytes, 304U);
        read_page_index(offsets(), damaged, chunk(), 20);
      }
      damaged.resize(at);
      read_page_index(damaged, columns(), chunk(), 20);
      read_page_index(offsets(), damaged, chunk(), 20);
    }
  }
}

TEST(PageIndex, pages_with_a_wanted_row_are_wanted) {
  const auto pages = read_page_index(offsets(), {}, chunk(), 20);
  using Wanted = std::vector<bool>;
  const auto with = [&](std::vector<RowRange> rows) { return select_pages(pages, rows); };
  EXPECT_EQ(with({{0, 20}}), (Wanted{true, true, true}));
  EXPECT_EQ(with({{9, 10}, {15, 16}}), (Wanted{true, false, true}));
  EXPECT_EQ(with({{10, 15}}), (Wanted{false, true, false}));
  EXPECT_EQ(with({}), (Wanted{false, false, false}));
}

}  // namespace
}  // namespace stoker::parquet
