#include "codec/csv.h"

#include <gtest/gtest.h>

namespace stoker::codec {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text, char separator = ',') {
  CsvReader reader(text, separator, "list.csv");
  Rows rows;
  for (;;) {
    auto row = reader.next();
    if (!row.ok() || !row->has_value()) return rows;
    rows.push_back(**row);
  }
}

TEST(Csv, splits_lines_and_fields) {
  EXPECT_EQ(rows_of("a,b\nc,d\n"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(rows_of("a,b\r\nc,d"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(rows_of("\xEF\xBB\xBF"
                    "a\tb c",
                    '\t'),
            (Rows{{"a", "b c"}}));
  EXPECT_EQ(rows_of("a,,\n\n\r\n,b"), (Rows{{"a", "", ""}, {"", "b"}}));
  EXPECT_EQ(rows_of(""), Rows{});
}

TEST(Csv, keeps_quoted_fields_verbatim) {
  EXPECT_EQ(rows_of("\"a,\"\"b\"\"\n c\",d\r\n\"\",e"), (Rows{{"a,\"b\"\n c", "d"}, {"", "e"}}));
}

TEST(Csv, counts_lines_inside_quotes) {
  CsvReader reader("\"a\nb\",1\n\nc,2\n", ',', "list.csv");
  ASSERT_TRUE(reader.next().ok());
  EXPECT_EQ(reader.line(), 1u);
  ASSERT_TRUE(reader.next().ok());
  EXPECT_EQ(reader.line(), 4u);
}

TEST(Csv, stays_at_the_end_after_an_error) {
  CsvReader reader("a\nb\"c\nd\n", ',', "list.csv");
  ASSERT_TRUE(reader.next().ok());
  EXPECT_EQ(reader.next().error().message(), "list.csv:2: a quote inside a field without quotes");
  const auto after = reader.next();
  ASSERT_TRUE(after.ok());
  EXPECT_FALSE(after->has_value());
}

}  // namespace
}  // namespace stoker::codec
