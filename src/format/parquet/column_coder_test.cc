#include "format/parquet/column_coder.h"

#include <gtest/gtest.h>

#include "format/chunked/coders.h"
#include "format/load.h"
#include "format/parquet/pages/page.h"
#include "format/parquet/thrift_writer.h"

namespace stoker::formats {
namespace {

// A page of three int32 of which the second is missing.
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

ChunkedArray about(std::uint64_t rows) {
  ChunkedArray array{.name = "column 'x'",
                     .shape = {rows},
                     .chunks = {rows},
                     .element_bytes = 4,
                     .coder = nullptr,
                     .places = {}};
  array.fill = {std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3F}};  // 1.0
  return array;
}

Result<Buffer> decoded(const std::string& stored, std::uint64_t rows, std::uint64_t room) {
  OK_OR_RETURN(coder, parse_coder("column", kText, about(room), "x"));
  EXPECT_EQ(coder->to_text(), kText);
  return coder->decode({.offset = 0, .bytes = stored.size(), .extra = rows}, room * 4,
                       std::as_bytes(std::span(stored)), "x");
}

TEST(ColumnCoder, numbers_become_elements_and_what_is_missing_the_fill) {
  const auto elements = decoded(page(), 3, 4);
  ASSERT_TRUE(elements.ok()) << elements.status().message();
  const std::span<const std::byte> bytes = elements->bytes();
  ASSERT_EQ(bytes.size(), 16u);
  EXPECT_EQ(load<float>(bytes, 0), 7.0f);
  EXPECT_EQ(load<float>(bytes, 4), 1.0f);
  EXPECT_EQ(load<float>(bytes, 8), -7.0f);
  EXPECT_EQ(load<float>(bytes, 12), 0.0f);  // of a row group with fewer rows than the others
}

TEST(ColumnCoder, what_does_not_hold_is_refused) {
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

TEST(ColumnCoder, a_coding_whose_fields_do_not_go_together_is_refused) {
  const auto refused = [](std::string text, std::string_view what, std::string_view with) {
    text.replace(text.find(what), what.size(), with);
    return parse_coder("column", text, about(4), "x").status().message() == "x: its coding is damaged";
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
}  // namespace stoker::formats
