#include "arrays/hdf5/describe.h"

#include <gtest/gtest.h>

namespace stoker::arrays::hdf5 {
namespace {

constexpr std::string_view kChunked =
    R"({"path":"x","file":"a.h5","shape":[6,4],"letter":"i","bytes":2,"is_big":true,"fill":[0,1],"layout":"chunked",)"
    R"("chunks":[2,4],"filters":[{"id":1,"name":"deflate","values":[4]}],"places":[2,80,20,0,0,16,20,1]})";
constexpr std::string_view kVirtual =
    R"({"path":"x","file":"a.h5","shape":[6],"letter":"f","bytes":4,"is_big":false,"fill":[0,0,0,1],"layout":"parts",)"
    R"("parts":[{"file":"b.h5","dataset":"y","first_row":3,"source_row":0,"rows":3},)"
    R"({"file":"b.h5","dataset":"y","first_row":0,"source_row":1,"rows":3}]})";

// Members of 6 records of 40 bytes: arrays of 3 numbers, 8 bytes behind each record's beginning.
constexpr std::string_view kMember =
    R"({"path":"x/y","file":"a.h5","shape":[6,3],"letter":"f","bytes":8,"is_big":true,"fill":[0,0,0,0,0,0,0,0],)"
    R"("layout":"chunked","chunks":[2,3],"filters":[],"places":[],"record":{"bytes":40,"offset":8,"dimensions":1}})";

// An answer about one dataset, with a piece of its text replaced.
std::string response(std::string_view dataset, std::string_view old = "", std::string_view now = "") {
  std::string text = format(R"({{"datasets":[{}]}})", dataset);
  if (const std::size_t at = text.find(old); !old.empty()) text.replace(at, old.size(), now);
  return text;
}

std::string error_of(const std::string& text, std::size_t count = 1) {
  const auto found = parse_response(text, "a.h5", count);
  return found.ok() ? "" : found.status().to_string();
}

TEST(Hdf5Response, chunks_come_out_in_their_order_and_the_fill_value_in_this_machines) {
  const auto found = parse_response(response(kChunked), "a.h5", 1);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  const Description& about = found->front();
  EXPECT_EQ(about.chunks, (codec::Extents{2, 4}));
  ASSERT_EQ(about.chunk_locations.size(), 2u);
  EXPECT_EQ(about.chunk_locations[0].number, 0u);
  EXPECT_EQ(about.chunk_locations[0].skipped, 1u);
  EXPECT_EQ(about.chunk_locations[1].offset, 80u);
  EXPECT_EQ(about.fill, (std::vector<std::byte>{std::byte{1}, std::byte{0}}));
}

TEST(Hdf5Response, parts_come_out_in_the_order_of_their_rows) {
  const auto found = parse_response(response(kVirtual), "a.h5", 1);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->front().parts[0].source_row, 1u);
  EXPECT_EQ(found->front().parts[1].first_row, 3u);
}

TEST(Hdf5Response, a_member_of_records_has_the_bytes_of_its_last_dimensions) {
  const auto found = parse_response(response(kMember), "a.h5", 1);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->front().member, (RecordMember{.record_bytes = 40, .offset = 8, .bytes = 24}));
}

TEST(Hdf5Response, a_member_that_is_not_inside_its_record_makes_no_sense) {
  const std::pair<std::string_view, std::string_view> kWrong[] = {
      {R"("offset":8)", R"("offset":17)"},
      {R"("offset":8)", R"("offset":18446744073709551608)"},
      {R"("offset":8)", R"("offset":-8)"},
      {R"("bytes":40)", R"("bytes":31)"},
      {R"("bytes":40)", R"("bytes":0)"},
      {R"("bytes":40)", R"("bytes":1048577)"},
      {R"("dimensions":1)", R"("dimensions":2)"},
      {R"("dimensions":1)", R"("dimensions":3)"},
      {R"("chunks":[2,3])", R"("chunks":[2,1])"},
      {R"("shape":[6,3])", R"("shape":[288230376151711744,3])"},
      {R"("record":{)", R"("record":{"x":1},"y":{)"},
  };
  for (const auto& [old, now] : kWrong)
    EXPECT_TRUE(error_of(response(kMember, old, now)).starts_with("a.h5: ")) << now;
}

TEST(Hdf5Response, an_error_keeps_its_code_and_message) {
  const auto found = parse_response(R"({"error":"a.h5: is damaged","code":7})", "a.h5", 1);
  EXPECT_EQ(found.error().code(), static_cast<Code>(7));
  EXPECT_EQ(found.error().message(), "a.h5: is damaged");
}

TEST(Hdf5Response, an_error_keeps_its_cure) {
  EXPECT_EQ(error_of(R"({"error":"a.h5: is old","code":1,"cure":"a {} newer one"})"),
            "a.h5: is old\n  try: a {} newer one");
  EXPECT_EQ(error_of(R"({"error":"a.h5: is old","code":1,"cure":""})"), "a.h5: is old");
}

TEST(Hdf5Response, text_end_depends_on_its_padding) {
  using TextEnd = codec::ElementType::TextEnd;
  constexpr std::string_view kText =
      R"({"path":"x","file":"a.h5","shape":[2],"letter":"S","padding":0,"bytes":4,"is_big":false,"fill":[0,0,0,0],)"
      R"("layout":"contiguous","offset":9})";
  constexpr std::pair<std::string_view, TextEnd> kEnds[] = {{R"("padding":0)", TextEnd::at_zero},
                                                            {R"("padding":1)", TextEnd::before_zeros},
                                                            {R"("padding":2)", TextEnd::before_blanks}};
  for (const auto& [padding, end] : kEnds) {
    const auto found = parse_response(response(kText, R"("padding":0)", padding), "a.h5", 1);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->front().type.text_end, end);
  }
  for (const std::string_view wrong : {R"("padding":3)", R"("padding":-1)", R"("padding":"0")", R"("x":0)"})
    EXPECT_EQ(error_of(response(kText, R"("padding":0)", wrong)),
              "a.h5: libhdf5 returned an invalid response");
}

TEST(Hdf5Response, length_of_text_is_that_without_what_fills_it_up) {
  using TextEnd = codec::ElementType::TextEnd;
  const auto length = [](TextEnd end, std::string_view text) {
    codec::ElementType type{
        .kind = codec::ElementType::Kind::bytes, .bytes = 4, .letter = 'S', .time_unit = {}};
    type.text_end = end;
    return text_length(type, std::as_bytes(std::span(text)));
  };
  constexpr std::string_view kZeros("\0\0\0\0", 4);
  for (const TextEnd end : {TextEnd::before_zeros, TextEnd::before_blanks, TextEnd::at_zero}) {
    EXPECT_EQ(length(end, "abcd"), 4u);
    EXPECT_EQ(length(end, kZeros), 0u);
  }
  EXPECT_EQ(length(TextEnd::before_zeros, std::string_view("a\0b\0", 4)), 3u);
  EXPECT_EQ(length(TextEnd::before_zeros, "a   "), 4u);
  EXPECT_EQ(length(TextEnd::before_blanks, " a  "), 2u);
  EXPECT_EQ(length(TextEnd::before_blanks, "    "), 0u);
  EXPECT_EQ(length(TextEnd::at_zero, std::string_view("a\0b ", 4)), 1u);
}

TEST(Hdf5Response, an_inconsistent_response_is_an_error) {
  constexpr std::string_view kNonsense = "a.h5: libhdf5 returned an invalid response";
  EXPECT_EQ(error_of(""), kNonsense);
  EXPECT_EQ(error_of("[]"), kNonsense);
  EXPECT_EQ(error_of(R"({"datasets":7})"), kNonsense);
  EXPECT_EQ(error_of(R"({"error":"x","code":99})"), kNonsense);
  EXPECT_EQ(error_of(response(kChunked), 2), kNonsense);
  const std::pair<std::string_view, std::string_view> kWrong[] = {
      {R"("shape":[6,4])", R"("shape":[])"},
      {R"("chunks":[2,4])", R"("chunks":[2,0])"},
      {R"("chunks":[2,4])", R"("chunks":[2])"},
      {R"("letter":"i")", R"("letter":"q")"},
      {R"("fill":[0,1])", R"("fill":[0])"},
      {R"("bytes":2)", R"("bytes":0)"},
      {R"("places":[2,)", R"("places":[)"},
      {R"("places":[2,)", R"("places":[-2,)"},
      {R"("id":1)", R"("id":"1")"},
  };
  for (const auto& [old, now] : kWrong) EXPECT_EQ(error_of(response(kChunked, old, now)), kNonsense) << now;
  EXPECT_EQ(error_of(response(kVirtual, R"("first_row":3)", R"("first_row":2)")), kNonsense);
  EXPECT_EQ(error_of(response(kVirtual, R"("shape":[6])", R"("shape":[5])")), kNonsense);
}

// Rows are cut along the first dimension: a dataset without any has no chunks.
TEST(Hdf5Response, chunks_of_a_dataset_without_dimensions_make_no_sense) {
  std::string text = response(kChunked, R"("shape":[6,4])", R"("shape":[])");
  text.replace(text.find("[2,4]"), 5, "[]");
  EXPECT_EQ(error_of(text), "a.h5: libhdf5 returned an invalid response");
}

TEST(Hdf5Response, sizes_that_overflow_are_an_error) {
  EXPECT_EQ(error_of(response(kChunked, "[6,4]", "[4611686018427387904,4]")),
            "a.h5: dataset 'x' is too large");
}

}  // namespace
}  // namespace stoker::arrays::hdf5
