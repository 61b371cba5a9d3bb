#include "parquet/columns/column_coder.h"

#include <gtest/gtest.h>

#include "codec/chunks/coders.h"
#include "codec/load.h"
#include "parquet/pages/page.h"
#include "parquet/thrift/thrift_writer.h"

namespace stoker::parquet {
namespace {

// A page of three int32 with a null in second place.
std::string page() {
  const std::string values("\x02\x00\x00\x00\x03\x05\x07\x00\x00\x00\xF9\xFF\xFF\xFF", 14);
  ThriftWriter out;
  out.begin();
  out.i32(1, kDataPage);
  out.i32(2, static_cast<std::int64_t>(values.size()));
  out.i32(3, static_cast<std::int64_t>(values.size()));
  out.begin(5);
  out.i32(1, 3);
  out.i32(2, kPlainValues);
  out.i32(3, kRleValues);
  out.i32(4, kRleValues);
  out.end();
  out.end();
  return out.text() + values;
}

constexpr const char* kText =
    R"({"definition":1,"element":"F32","leaf":"int32","lists":[],"stored":1,"width":0})";

codec::ChunkedArray about(std::uint64_t rows) {
  codec::ChunkedArray array{.name = "column 'x'",
                            .shape = {rows},
                            .chunks = {rows},
                            .element_bytes = 4,
                            .coder = nullptr,
                            .stored_chunks = {}};
  array.fill = {std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3F}};  // 1.0
  return array;
}

Result<codec::Buffer> decoded(const std::string& stored, std::uint64_t rows, std::uint64_t room) {
  STOKER_ASSIGN_OR_RETURN(coder, parse_column_coder(kText, about(room), "x"));
  EXPECT_EQ(coder->to_text(), kText);
  return coder->decode({.offset = 0, .bytes = stored.size(), .extra = rows}, room * 4,
                       std::as_bytes(std::span(stored)), "x");
}

TEST(ColumnCoder, converts_numbers_and_fills_nulls) {
  const auto elements = decoded(page(), 3, 4);
  ASSERT_TRUE(elements.ok()) << elements.status().message();
  const std::span<const std::byte> bytes = elements->bytes();
  ASSERT_EQ(bytes.size(), 16u);
  EXPECT_EQ(codec::load<float>(bytes, 0), 7.0f);
  EXPECT_EQ(codec::load<float>(bytes, 4), 1.0f);
  EXPECT_EQ(codec::load<float>(bytes, 8), -7.0f);
  EXPECT_EQ(codec::load<float>(bytes, 12), 0.0f);  // of the last row group, which has fewer rows
}

TEST(ColumnCoder, rejects_inconsistent_data) {
  EXPECT_EQ(decoded(page(), 5, 4).status().message(), "x: has 5 rows, which do not fit");
  EXPECT_EQ(decoded(page(), 4, 4).status().message(), "x: has 3 values, the row group 4 rows");
  EXPECT_EQ(decoded(page(), 2, 4).status().message(), "x: a page is damaged");
  const std::string whole = page();
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_FALSE(decoded(whole.substr(0, cut), 3, 4).ok()) << cut;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x55);
    (void)decoded(flipped, 3, 4).ok();
  }
}

TEST(ColumnCoder, rejects_a_coding_with_incompatible_fields) {
  const auto refused = [](std::string text, std::string_view what, std::string_view with) {
    text.replace(text.find(what), what.size(), with);
    return parse_column_coder(text, about(4), "x").status().message() == "x: its coding is damaged";
  };
  EXPECT_TRUE(refused(kText, R"("stored":1)", R"("stored":2)"));  // an int32 in 8 bytes
  EXPECT_TRUE(refused(kText, R"("stored":1)", R"("stored":99)"));
  EXPECT_TRUE(refused(kText, R"("stored":1)", R"("stored":"1")"));
  EXPECT_TRUE(refused(kText, R"("width":0)", R"("width":-1)"));
  EXPECT_TRUE(refused(kText, R"("width":0)", R"("wide":0)"));
  EXPECT_TRUE(refused(kText, R"("definition":1)", R"("definition":256)"));
  EXPECT_TRUE(refused(kText, R"("lists":[])", R"("lists":[1])"));  // rows have no lists
  EXPECT_TRUE(refused(kText, R"("lists":[])", R"("lists":[2])"));  // deeper than a value
  EXPECT_TRUE(refused(kText, R"("lists":[])", R"("lists":0)"));
  EXPECT_TRUE(refused(kText, R"("leaf":"int32")", R"("leaf":"bytes")"));
  EXPECT_TRUE(refused(kText, R"("leaf":"int32")", R"("leaf":"float64")"));
  EXPECT_TRUE(refused(kText, R"("element":"F32")", R"("element":"F64")"));  // of 8 bytes
  EXPECT_TRUE(refused(kText, R"("element":"F32")", R"("element":"BF16")"));
  EXPECT_TRUE(refused(kText, R"("width":0)", R"("width":0,"more":1)"));
  EXPECT_TRUE(refused(kText, "{", "["));
}

}  // namespace
}  // namespace stoker::parquet
