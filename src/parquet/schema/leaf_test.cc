#include "parquet/schema/leaf.h"

#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>

#include "codec/load.h"
#include "parquet/pages/page.h"
#include "parquet/parquet.h"
#include "parquet/test_parquet.h"
#include "parquet/thrift/thrift_writer.h"

namespace stoker::parquet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Type = ThriftWriter::Type;

constexpr int kList = 3, kUint32 = 13, kDecimal = 5;  // converted types

struct Element {
  std::string name;
  int repetition = kParquetRequired;
  int children = 0;
  int type = -1;
  int converted = -1;
};

struct MadePage {
  std::string bytes;
  int values = 0;
  std::int64_t encoding = kPlainValues;
  std::int64_t level_encoding = kRleValues;
  std::uint64_t zeros = 0;  // bytes that follow its own, without being kept
};

// A table of one column, made by hand.
struct Made {
  std::vector<Element> schema;  // without the root, which has one child
  std::vector<MadePage> pages;
  int rows = 0;
  std::int64_t codec = 0;
  bool is_encrypted = false;
  std::string elsewhere;
  std::vector<std::pair<int, std::string>> statistics;  // fields of bytes
  bool has_order = true;

  std::string text() const {
    std::string file = "PAR1";
    const std::size_t begin = file.size();
    int values = 0;
    for (const MadePage& page : pages) {
      file += header(page) + page.bytes;
      values += page.values;
    }
    const std::uint64_t zeros = pages.empty() ? 0 : pages.back().zeros;
    const std::string footer = this->footer(begin, file.size() - begin + zeros, values);
    const auto length = static_cast<std::uint32_t>(footer.size());
    file += footer;
    file.append(reinterpret_cast<const char*>(&length), sizeof length);
    return file + "PAR1";
  }

 private:
  static std::string header(const MadePage& page) {
    ThriftWriter out;
    out.begin();
    out.i32(1, kDataPage);
    out.i32(2, static_cast<std::int64_t>(page.bytes.size() + page.zeros));
    out.i32(3, static_cast<std::int64_t>(page.bytes.size() + page.zeros));
    out.begin(5);
    out.i32(1, page.values);
    out.i32(2, page.encoding);
    out.i32(3, page.level_encoding);
    out.i32(4, page.level_encoding);
    out.end();
    out.end();
    return out.text();
  }

  void element(ThriftWriter& out, const Element& column) const {
    out.begin();
    if (column.type >= 0) out.i32(1, column.type);
    out.i32(3, column.repetition);
    out.binary(4, column.name);
    if (column.children > 0) out.i32(5, column.children);
    if (column.converted >= 0) out.i32(6, column.converted);
    if (column.converted == kDecimal) out.i32(7, 2);
    out.end();
  }

  std::string footer(std::size_t begin, std::uint64_t bytes, int values) const {
    ThriftWriter out;
    out.begin();
    out.list(2, Type::structure, schema.size() + 1);
    element(out, {.name = "root", .repetition = kParquetRequired, .children = 1});
    for (const Element& column : schema) element(out, column);
    out.i64(3, rows);
    out.list(4, Type::structure, 1);
    out.begin();
    out.list(1, Type::structure, 1);
    out.begin();
    if (!elsewhere.empty()) out.binary(1, elsewhere);
    out.begin(3);
    out.i32(1, schema.back().type);
    out.i32(4, codec);
    out.i64(5, values);
    out.i64(7, static_cast<std::int64_t>(bytes));
    out.i64(9, static_cast<std::int64_t>(begin));
    out.begin(12);
    for (const auto& [field, value] : statistics) out.binary(field, value);
    out.end();
    out.end();
    if (is_encrypted) out.begin(8), out.end();
    out.end();
    out.i64(3, rows);
    out.end();
    if (has_order) {
      out.list(7, Type::structure, 1);
      out.begin();
      out.begin(1);
      out.end();
      out.end();
    }
    out.end();
    return out.text();
  }
};

std::string numbers(std::initializer_list<std::int32_t> values) {
  std::string text;
  for (const std::int32_t value : values) text.append(reinterpret_cast<const char*>(&value), sizeof value);
  return text;
}

std::vector<std::int32_t> numbers_of(const ParquetValues& values) {
  std::vector<std::int32_t> found;
  for (std::size_t at = 0; at < values.numbers.size(); at += 4)
    found.push_back(codec::load<std::int32_t>(values.numbers, at));
  return found;
}

const Element kNumber{.name = "x", .type = static_cast<int>(kParquetInt32)};
const Made kPlain{.schema = {kNumber}, .pages = {{numbers({1, 2, 3}), 3}}, .rows = 3};

std::string error(const Made& made) {
  const std::string text = made.text();
  const auto file = open_parquet(text);
  if (!file.ok()) return std::string(file.status().message());
  return std::string(file->read_leaf(0, 0).status().message());
}

// Missing, empty, {1, missing}, {2}: lists that may be missing of numbers that may be missing.
// Repetition 0 0 0 1 0 in 1 bit, definition 0 1 3 2 3 in 2 bits, each lowest bit first.
MadePage list_page(const std::string& repetition, const std::string& definition, std::int64_t encoding) {
  const auto with_length = [&](const std::string& levels) {
    return encoding == kBitPacked ? levels : numbers({static_cast<std::int32_t>(levels.size())}) + levels;
  };
  return {with_length(repetition) + with_length(definition) + numbers({1, 2}), 5, kPlainValues, encoding};
}
const MadePage kRuns = list_page("\x03\x08", std::string("\x03\xB4\x03", 3), kRleValues);
const MadePage kBits = list_page("\x10", std::string("\x1E\xC0", 2), kBitPacked);

void expect_lists(const Made& made) {
  const std::string text = made.text();
  const auto file = open_parquet(text);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->leaves()[0].name, "a");
  EXPECT_EQ(file->leaves()[0].lists, 1u);
  EXPECT_TRUE(file->leaves()[0].is_nullable);
  const auto values = file->read_leaf(0, 0);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(values->rows, 4u);
  EXPECT_THAT(values->lists[0].offsets, ElementsAre(0, 0, 0, 2, 3));
  EXPECT_THAT(values->lists[0].present, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(values->present, ElementsAre(1, 0, 1));
  EXPECT_THAT(numbers_of(*values), ElementsAre(1, 0, 2));
}

const Element kItem{
    .name = "element", .repetition = kParquetOptional, .type = static_cast<int>(kParquetInt32)};

TEST(ParquetLeaf, lists_are_missing_empty_or_have_items) {
  const Element outer{.name = "a", .repetition = kParquetOptional, .children = 1, .converted = kList};
  const Element inner{.name = "list", .repetition = kParquetRepeated, .children = 1};
  expect_lists({.schema = {outer, inner, kItem}, .pages = {kRuns}, .rows = 4});
  expect_lists({.schema = {outer, inner, kItem}, .pages = {kBits}, .rows = 4});
}

TEST(ParquetLeaf, early_writers_lists_have_no_group_around_an_item) {
  const Element outer{.name = "a", .repetition = kParquetOptional, .children = 1, .converted = kList};
  Element inner{.name = "a_tuple", .repetition = kParquetRepeated, .children = 1};
  const auto name = [&](std::vector<Element> schema) {
    const std::string text = Made{.schema = std::move(schema), .pages = {}, .rows = 0}.text();
    const auto file = open_parquet(text);
    return file.ok() ? format("{} {}", file->leaves()[0].name, file->leaves()[0].lists) : "";
  };
  EXPECT_EQ(name({outer, inner, kItem}), "a.element 1");  // the group is the item
  inner.name = "array";
  EXPECT_EQ(name({outer, inner, kItem}), "a.element 1");
  inner.name = "bag";
  EXPECT_EQ(name({outer, inner, kItem}), "a 1");
  EXPECT_EQ(name({outer, {"array", kParquetRepeated, 0, kParquetInt32}}), "a 1");
  EXPECT_EQ(name({{"a", kParquetRepeated, 0, kParquetInt32}}), "a 1");  // no list at all
  EXPECT_EQ(name({{"a", kParquetRequired, 1}, {"b", kParquetRepeated, 1}, kItem}), "a.b.element 1");
}

TEST(ParquetLeaf, a_row_may_continue_on_the_next_page_but_not_begin_inside_one) {
  const Element repeated{
      .name = "a", .repetition = kParquetRepeated, .type = static_cast<int>(kParquetInt32)};
  // Two bytes of repetition levels, two of definition levels, one value.
  const auto page = [](const std::string& repetition, std::int32_t value) {
    return MadePage{numbers({2}) + repetition + numbers({2}) + "\x02\x01" + numbers({value}), 1};
  };
  const MadePage begins = page(std::string("\x02\x00", 2), 5);
  const MadePage continues = page("\x02\x01", 6);
  const std::string text = Made{.schema = {repeated}, .pages = {begins, continues}, .rows = 1}.text();
  const auto file = open_parquet(text);
  const auto values = file->read_leaf(0, 0);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_THAT(values->lists[0].offsets, ElementsAre(0, 2));
  EXPECT_THAT(values->present, IsEmpty());
  EXPECT_THAT(numbers_of(*values), ElementsAre(5, 6));
  EXPECT_EQ(error({.schema = {repeated}, .pages = {continues}, .rows = 1}),
            "x.parquet: column 'a': a page is damaged");
}

TEST(ParquetLeaf, reports_why_a_column_is_unsupported) {
  Made made = kPlain;
  EXPECT_EQ(error(made), "ok");
  made.is_encrypted = true;
  EXPECT_EQ(error(made), "x.parquet: column 'x': is encrypted");
  made = kPlain;
  made.elsewhere = "part-1.parquet";
  EXPECT_EQ(error(made), "x.parquet: column 'x': is stored in a different file");
  made = kPlain;
  made.schema[0].type = 7;  // bytes of one size, without the size
  EXPECT_EQ(error(made), "x.parquet: column 'x': has an unsupported type");
  made = kPlain;
  made.pages[0].encoding = 10;
  EXPECT_EQ(error(made), "x.parquet: column 'x': has an unsupported encoding (Parquet's number 10)");
  made = kPlain;
  made.codec = 3;
  EXPECT_EQ(error(made), "x.parquet: column 'x': is compressed with LZO, which is not supported");
  made = kPlain;
  made.pages[0].encoding = kDeltaByteArray;
  EXPECT_EQ(error(made), "x.parquet: column 'x': a page is damaged");
  made = kPlain;
  made.pages[0].values = 2;
  EXPECT_EQ(error(made), "x.parquet: column 'x': has 2 values, the row group 3 rows");
}

TEST(ParquetLeaf, locates_the_value_of_a_large_page_without_decompressing_it) {
  constexpr std::int32_t kBytes = 300 << 20;
  Made made{.schema = {{"x", kParquetRequired, 0, kParquetByteArray}},
            .pages = {{numbers({kBytes}), 1}},
            .rows = 1};
  made.pages[0].zeros = kBytes;
  const std::string text = made.text();
  const std::uint64_t cut = text.find(made.pages[0].bytes) + sizeof kBytes;
  const auto file = ParquetFile::open(
      [&](std::uint64_t at, std::span<std::byte> out) -> Status {
        std::ranges::fill(out, std::byte{});
        const std::uint64_t end = at + out.size();
        const std::uint64_t behind = cut + kBytes;
        if (at < cut) std::memcpy(out.data(), text.data() + at, std::min(end, cut) - at);
        const std::uint64_t from = std::max(at, behind);
        if (end > behind) std::memcpy(out.data() + (from - at), text.data() + (from - kBytes), end - from);
        return {};
      },
      text.size() + kBytes, "x.parquet");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto places = file->value_locations(0);
  ASSERT_TRUE(places.ok()) << places.status().message();
  EXPECT_EQ(places->front().offset, cut);
  EXPECT_EQ(places->front().bytes, std::uint64_t{kBytes});
  EXPECT_EQ(file->read_leaf(0, 0).status().message(),
            "x.parquet: column 'x': has a page of 314572804 bytes (at most 256 MiB)");
}

TEST(ParquetLeaf, does_not_allocate_for_unlikely_sizes) {
  // A thousand million times the same difference, in blocks of 2^31.
  const int claimed = 1'000'000'000;
  const Made made{
      .schema = {kNumber},
      .pages = {{"\x80\x80\x80\x80\x08\x01\x80\x94\xEB\xDC\x03\x02\x02", claimed, kDeltaBinaryPacked}},
      .rows = claimed};
  const std::string text = made.text();
  const auto file = open_parquet(text);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->read_leaf(0, 0, {.values = 1_GiB}).status().message(),
            "x.parquet: column 'x': is too large");
}

TEST(ParquetLeaf, every_flipped_byte_gives_lists_that_add_up_or_an_error) {
  const Element outer{.name = "a", .repetition = kParquetOptional, .children = 1, .converted = kList};
  const Element inner{.name = "list", .repetition = kParquetRepeated, .children = 1};
  const std::string whole = Made{.schema = {outer, inner, kItem}, .pages = {kRuns}, .rows = 4}.text();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x02', '\x10', '\x80', '\xFF'}) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ flip);
      const auto file = open_parquet(text);
      if (!file.ok() || file->leaves().size() != 1 || file->groups() != 1) continue;
      const auto values = file->read_leaf(0, 0, {.values = 1_MiB});
      if (!values.ok()) continue;
      EXPECT_EQ(values->rows, file->rows(0));
      std::uint64_t above = values->rows;
      for (const ParquetValues::List& list : values->lists) {
        ASSERT_EQ(list.offsets.size(), above + 1) << at;
        EXPECT_TRUE(std::ranges::is_sorted(list.offsets)) << at;
        above = list.offsets.back();
      }
      EXPECT_EQ(above, values->slots) << at;
    }
  }
}

std::string range(const Made& made) {
  const std::string text = made.text();
  const auto file = open_parquet(text);
  if (!file.ok()) return std::string(file.status().message());
  const auto range = file->range_of(0, 0);
  if (!range || !range->min) return "none";
  const auto number = [&](const std::string& bytes) {
    const auto view = std::as_bytes(std::span(bytes));
    return bytes.size() == 8 ? format("{}", codec::load<double>(view, 0))
                             : format("{}", codec::load<std::int32_t>(view, 0));
  };
  return number(*range->min) + " " + number(*range->max);
}

TEST(ParquetLeaf, ranges_need_a_known_order) {
  constexpr int kOldMost = 1, kOldLeast = 2, kMax = 5, kLeast = 6;
  Made made = kPlain;
  EXPECT_EQ(range(made), "none");
  made.statistics = {{kMax, numbers({3})}, {kLeast, numbers({-1})}};
  EXPECT_EQ(range(made), "-1 3");
  made.has_order = false;
  EXPECT_EQ(range(made), "none");
  made.statistics = {{kOldMost, numbers({3})}, {kOldLeast, numbers({-1})}};
  EXPECT_EQ(range(made), "-1 3");
  made.schema[0].converted = kUint32;  // early writers compared them as signed
  EXPECT_EQ(range(made), "none");
  made.schema[0].converted = kDecimal;
  EXPECT_EQ(range(made), "-0.01 0.03");
  made = kPlain;
  made.statistics = {{kMax, numbers({3})}};
  EXPECT_EQ(range(made), "none");
  made.statistics = {{kMax, "abc"}, {kLeast, numbers({-1})}};
  EXPECT_EQ(range(made), "none");
}

}  // namespace
}  // namespace stoker::parquet
