#include "base/table.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Table, columns_of_numbers_are_right_aligned) {
  EXPECT_EQ(table_text({"RUN", "SIZE", "STATE"}, {{"a", "12.9 MB", "done"}, {"bcd", "5 kB", "lost"}}),
            "RUN      SIZE   STATE\n"
            "a     12.9 MB   done\n"
            "bcd      5 kB   lost\n");
}

TEST(Table, a_missing_number_keeps_the_column_numeric) {
  EXPECT_EQ(table_text({"N"}, {{"100"}, {"-"}, {""}}), "  N\n100\n  -\n\n");
}

TEST(Table, width_counts_characters_and_lines_end_without_blanks) {
  EXPECT_EQ(table_text({"A", "B"}, {{"é", "x"}, {"ee", ""}}), "A    B\né    x\nee\n");
}

TEST(Table, header_without_rows) { EXPECT_EQ(table_text({"NAME", "N"}, {}), "NAME   N\n"); }

}  // namespace
}  // namespace stoker
