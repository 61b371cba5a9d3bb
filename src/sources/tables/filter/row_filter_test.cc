#include "sources/tables/filter/row_filter.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <gtest/gtest.h>

#include "sources/tables/filter/leaf_kind.h"

namespace stoker::sources {
namespace {

using parquet::ParquetLeaf;
using parquet::ParquetRange;
using parquet::ParquetValues;
using Type = ParquetLeaf::Type;

template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Three rows: 1, 5 and null; 0.5, NaN and null; and so on.
struct Table {
  std::vector<ParquetLeaf> leaves = {
      {.name = "n", .type = Type::int64, .logical = "", .is_nullable = true},
      {.name = "f", .type = Type::float32, .logical = "", .is_nullable = true},
      {.name = "t", .type = Type::bytes, .logical = "text", .is_nullable = true},
      {.name = "b", .type = Type::boolean, .logical = ""},
      {.name = "d", .type = Type::int32, .logical = "date"},
      {.name = "l", .type = Type::int64, .logical = "", .lists = 1},
      {.name = "m", .type = Type::int64, .logical = "timestamp[ms]"}};
  std::vector<ParquetValues> values;

  Table() {
    const std::vector<std::uint8_t> two = {1, 1, 0};
    add(bytes_of(std::int64_t{1}) + bytes_of(std::int64_t{5}) + bytes_of(std::int64_t{0}), two);
    add(bytes_of(0.1F) + bytes_of(std::nanf("")) + bytes_of(0.0F), two);
    add("", two).texts = {"apple", "b\xC3\xBC", ""};
    add(std::string("\1\0\1", 3), {});
    add(bytes_of(std::int32_t{20'000}) + bytes_of(std::int32_t{20'001}) + bytes_of(std::int32_t{20'002}), {});
    add("", {}).lists.push_back({.offsets = {0, 0, 0, 0}, .present = {1, 0, 1}});
    add(bytes_of(std::int64_t{0}) + bytes_of(std::int64_t{1}) + bytes_of(std::int64_t{1000}), {});
  }
  ParquetValues& add(const std::string& numbers, std::vector<std::uint8_t> present) {
    ParquetValues& added = values.emplace_back();
    added.rows = added.slots = 3;
    added.numbers.resize(numbers.size());
    std::ranges::copy(std::as_bytes(std::span(numbers)), added.numbers.data());
    added.present = std::move(present);
    return added;
  }

  Result<RowFilter> filter(std::string_view text) const {
    STOKER_ASSIGN_OR_RETURN(condition, parse_predicate(text));
    return RowFilter::create(condition, leaves);
  }
  // "110": the first two rows match.
  std::string rows(std::string_view text) const {
    const auto found = filter(text);
    if (!found.ok()) return std::string(found.status().message());
    std::vector<ParquetValues> wanted;
    for (const std::size_t leaf : found->leaves()) wanted.push_back(values[leaf]);
    std::string taken;
    for (std::uint64_t row = 0; row < 3; ++row) taken += found->matches(wanted, row) ? '1' : '0';
    return taken;
  }
};

TEST(RowFilter, selects_rows_where_the_condition_is_true) {
  const Table table;
  EXPECT_EQ(table.rows("n = 1"), "100");
  EXPECT_EQ(table.rows("4 < n"), "010");
  EXPECT_EQ(table.rows("n != 1"), "010") << "unknown is not true";
  EXPECT_EQ(table.rows("not n = 1"), "010");
  EXPECT_EQ(table.rows("n is null"), "001");
  EXPECT_EQ(table.rows("n in (5, 7) or n IS NULL"), "011");
  EXPECT_EQ(table.rows("n not in (5, 7)"), "100");
  EXPECT_EQ(table.rows("n between 1 and 4.5"), "100");
  EXPECT_EQ(table.rows("n > 0 and b"), "100");
  EXPECT_EQ(table.rows("b = false"), "010");
  EXPECT_EQ(table.rows("t like '_pp%'"), "100");
  EXPECT_EQ(table.rows("t like 'b_'"), "010") << "a character, not a byte";
  EXPECT_EQ(table.rows("t not like '%e' and n = 5"), "010");
  EXPECT_EQ(table.rows("t >= 'b' or \"n\" < f"), "010");
  EXPECT_EQ(table.rows("d = '2024-10-04' or d > '2024-10-05'"), "101");
  EXPECT_EQ(table.rows("m > '1970-01-01 00:00:00.0005'"), "011") << "between two of its units";
  EXPECT_EQ(table.rows("l is not null"), "101");
}

TEST(RowFilter, unknown_and_false_is_false_and_unknown_or_true_is_true) {
  const Table table;
  EXPECT_EQ(table.rows("not (n = 1 and b)"), "010") << "unknown and true is unknown";
  EXPECT_EQ(table.rows("not (n = 1 and b = false)"), "111") << "unknown and false is false";
  EXPECT_EQ(table.rows("n = 9 or b"), "101");
  EXPECT_EQ(table.rows("not (n = 9 and n != 9)"), "110");
}

TEST(RowFilter, nan_is_unequal_to_all_and_literals_are_rounded_to_the_column_type) {
  const Table table;
  EXPECT_EQ(table.rows("f = 0.1"), "100");
  EXPECT_EQ(table.rows("f != 0.1"), "010");
  EXPECT_EQ(table.rows("f > 0 or f <= 0"), "100");
  EXPECT_EQ(table.rows("not f > 0"), "010");
  EXPECT_EQ(table.rows("f is nan"), "010");
  EXPECT_EQ(table.rows("f is not nan"), "100");
}

TEST(RowFilter, reports_the_position_of_an_error) {
  const Table table;
  EXPECT_EQ(table.rows(""), "--where: is empty");
  EXPECT_EQ(table.rows("n ="), "--where: ends where a column, a number or a text is expected");
  EXPECT_EQ(table.rows("n = 1 b"), "--where: character 7, 'b': 'and', 'or' or the end is expected here");
  EXPECT_EQ(table.rows("n & b"), "--where: character 3, '&': write and, or, not");
  EXPECT_EQ(table.rows("n = null"),
            "--where: character 5, 'null': no value equals null: write 'is null' or 'is not null'");
  EXPECT_EQ(table.rows("t = \"apple\""),
            "--where: character 5, '\"apple\"': no such column (one of: n, f, t, b, d, l, m) (text needs "
            "single quotes)");
  EXPECT_EQ(table.rows("n = 'x'"), "--where: character 5, ''x'': n is of type int64: a number is expected");
  EXPECT_EQ(table.rows("t > 3"),
            "--where: character 5, '3': t is of type text: a text in single quotes is expected");
  EXPECT_EQ(table.rows("l = 3"),
            "--where: character 1, 'l': is of type list of int64, which supports only 'is null'");
  EXPECT_EQ(table.rows("n"),
            "--where: character 1, 'n': is of type int64: a comparison is expected after it");
  EXPECT_EQ(table.rows("n = t"), "--where: character 5, 't': is of type text, but n is int64");
  EXPECT_EQ(
      table.rows("d = 'tomorrow'"),
      "--where: character 5, ''tomorrow'': d is of type date: write it as in '2026-11-23' or '2026-11-23 "
      "14:05:00'");
  EXPECT_EQ(table.rows("d = '2026-02-30'").substr(0, 12), "--where: cha");
  EXPECT_EQ(table.rows("1 = 1"), "--where: character 1, '1': is not compared with a column");
  EXPECT_EQ(table.rows("n is nan"), "--where: character 1, 'n': is of type int64, which is never NaN");
  EXPECT_EQ(table.rows("t = 'x"), "--where: character 5, ''': the quote is not closed");
  EXPECT_EQ(table.rows(std::string(200, '(')),
            "--where: character 101, '(': is nested too deeply (at most 100)");
  EXPECT_EQ(table.rows("n = 1e"), "--where: character 5, '1e': is not a number");
}

// A group with n from 3 to 7 and f from 0 to 1.
bool may_match(std::string_view text, std::optional<std::uint64_t> missing = 0) {
  const Table table;
  const auto filter = table.filter(text);
  EXPECT_TRUE(filter.ok()) << filter.status().to_string();
  std::vector<ParquetRange> ranges;
  for (const std::size_t leaf : filter->leaves()) {
    ParquetRange range{
        .min = bytes_of(std::int64_t{3}), .max = bytes_of(std::int64_t{7}), .null_count = missing};
    if (leaf == 1) range = {.min = bytes_of(0.0F), .max = bytes_of(1.0F), .null_count = missing};
    if (leaf == 2) range = {.min = "b", .max = "d", .null_count = missing};
    if (leaf > 2) range = {};
    ranges.push_back(range);
  }
  return filter->may_match(ranges, 10);
}

TEST(RowFilter, prunes_groups_without_a_matching_row) {
  EXPECT_TRUE(may_match("n = 3") && may_match("n >= 7") && may_match("n != 3"));
  EXPECT_FALSE(may_match("n = 2") || may_match("n < 3") || may_match("n > 7.5") ||
               may_match("n in (1, 2, 8)"));
  EXPECT_FALSE(may_match("not (n > 2)") || may_match("n = 2 and b") || may_match("n between 8 and 9"));
  EXPECT_TRUE(may_match("n = 2 or b"));
  EXPECT_FALSE(may_match("n is null"));
  EXPECT_TRUE(may_match("n is null", 1) && may_match("n is null", std::nullopt));
  EXPECT_FALSE(may_match("n > 0", 10)) << "all are missing";
  EXPECT_FALSE(may_match("n is not null", 10));
  EXPECT_FALSE(may_match("t = 'a'") || may_match("t > 'e'"));
  EXPECT_TRUE(may_match("t > 'c'"));
  EXPECT_FALSE(may_match("f > 2") || may_match("f = 2"));
  EXPECT_TRUE(may_match("not (f <= 1)")) << "a NaN is in no range";
  EXPECT_TRUE(may_match("f is nan") && may_match("f != 0"));
  EXPECT_TRUE(may_match("b") && may_match("l is null"));
}

TEST(RowFilter, converts_timestamps_to_the_column_unit) {
  EXPECT_EQ(parse_timestamp("1970-01-02", 1), parquet::Number(std::int64_t{1}));
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:01.5Z", 86'400'000), parquet::Number(std::int64_t{1500}));
  EXPECT_EQ(parse_timestamp("1969-12-31 23:59:59", 86'400'000'000),
            parquet::Number(std::int64_t{-1'000'000}));
  for (const std::string_view wrong :
       {"", "1970", "1970-13-01", "1970-01-01 24:00", "1970-01-01x", "1970-01-01 1:00",
        "1970-01-01 00:00:00.", "9999-01-01 00:00:00.1234567890"})
    EXPECT_FALSE(parse_timestamp(wrong, 86'400'000'000'000)) << wrong;
  EXPECT_FALSE(parse_timestamp("9999-01-01", 86'400'000'000'000)) << "no int64 of nanoseconds";
}

}  // namespace
}  // namespace stoker::sources
