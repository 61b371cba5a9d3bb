#include "parquet/pages/chunk_pages.h"

#include <string>

#include <gtest/gtest.h>

#include "base/hashes/crc32.h"
#include "parquet/test_parquet.h"
#include "parquet/thrift/thrift_writer.h"

namespace stoker::parquet {
namespace {

// A page of `bytes`, with a header whose statistics have the given size.
std::string page(const std::string& bytes, std::size_t statistics, std::uint32_t wrong = 0) {
  ThriftWriter out;
  out.begin();
  out.i32(1, kDataPage);
  out.i32(2, static_cast<std::int64_t>(bytes.size()));
  out.i32(3, static_cast<std::int64_t>(bytes.size()));
  out.i32(4, static_cast<std::int32_t>(crc32(std::as_bytes(std::span(bytes))) + wrong));
  out.begin(5);
  out.i32(1, 1);
  out.begin(5);
  out.binary(1, std::string(statistics, 'm'));
  out.end();
  out.end();
  out.end();
  return out.text() + bytes;
}

std::string read_all(const std::string& text, std::uint64_t begin, std::uint64_t bytes) {
  const archive::ReadAt read = reader_of(text);
  ChunkPages pages(read, begin, bytes, "x");
  std::string found;
  while (!pages.is_at_end()) {
    const auto next = pages.next();
    if (!next.ok()) return std::string(next.status().message());
    const std::string_view stored(reinterpret_cast<const char*>(next->stored.data()), next->stored.size());
    EXPECT_EQ(text.substr(pages.offset(), stored.size()), stored);
    found += stored;
  }
  return found;
}

TEST(ChunkPages, of_any_size_are_read_with_headers_of_any_size) {
  const std::string large(700'000, 'a');
  const std::string small = "bcd";
  const std::string pages =
      page(large, 0) + page(small, 300'000) + page("", 5000) + page(large, 2'000'000) + page(small, 3);
  EXPECT_EQ(read_all("PAR1" + pages + "more", 4, pages.size()), large + small + large + small);
}

TEST(ChunkPages, rejects_damaged_pages) {
  const std::string pages = page("first", 10) + page(std::string(1000, 'x'), 400'000);
  for (const std::size_t cut : {1, 999, 1001, 100'000, 399'990, 401'000})
    EXPECT_EQ(read_all(pages, 0, pages.size() - cut), "x: a page is damaged") << cut;
  EXPECT_EQ(read_all(page("first", 0, 1), 0, page("first", 0, 1).size()),
            "x: a page's CRC-32 does not match its bytes");
  const std::string zeros(600'000, '\xFF');
  EXPECT_EQ(read_all(zeros, 0, zeros.size()), "x: a page is damaged");
}

}  // namespace
}  // namespace stoker::parquet
