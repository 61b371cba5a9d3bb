#include "sources/table_path.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "sources/tables/filter/leaf_kind.h"
#include "sources/tables/table_tree.h"

namespace stoker::sources {
namespace {

using Type = parquet::ParquetLeaf::Type;

PartitionColumn column(Type type, std::optional<std::string> text, std::int64_t number = 0) {
  return {.leaf = {.name = "k", .type = type, .logical = type == Type::bytes ? "text" : ""},
          .text = std::move(text),
          .number = number};
}

TEST(TablePath, parses_key_and_value_of_a_folder_name) {
  const auto shown = [](std::string_view folder) {
    const auto key = parse_partition_key(folder);
    return key ? key->name + "|" + key->value.value_or("missing") : "none";
  };
  EXPECT_EQ(shown("year=2024"), "year|2024");
  EXPECT_EQ(shown("a%20b=x%3Dy%2fz=1"), "a b|x=y/z=1");
  EXPECT_EQ(shown("k=100%"), "k|100%");
  EXPECT_EQ(shown("k=%4"), "k|%4");
  EXPECT_EQ(shown("k=%zz%41"), "k|%zzA");
  EXPECT_EQ(shown("k="), "k|");
  EXPECT_EQ(shown("k=__HIVE_DEFAULT_PARTITION__"), "k|missing");
  EXPECT_EQ(shown("=k"), "none");
  EXPECT_EQ(shown("train"), "none");
  EXPECT_EQ(shown(""), "none");
}

TEST(TablePath, repeats_the_value_in_every_row) {
  parquet::ParquetValues values;
  put_values(column(Type::int32, "-7", -7), 5000, values);
  EXPECT_EQ(values.numbers.size(), 20'000U);
  EXPECT_EQ(number_at(values, column(Type::int32, "").leaf, 4999).whole(), -7);
  put_values(column(Type::bytes, std::string(100, 'x')), 5000, values);
  ASSERT_EQ(values.texts.size(), 5000U);
  EXPECT_EQ(values.texts[4999], std::string(100, 'x'));
  EXPECT_TRUE(values.is_row_present(4999));
  put_values(column(Type::bytes, std::nullopt), 3, values);
  ASSERT_EQ(values.texts.size(), 3U);
  EXPECT_FALSE(values.is_row_present(2));
  put_values(column(Type::int64, std::nullopt), 0, values);
  EXPECT_EQ(values.slots, 0U);
}

TEST(TablePath, reports_the_value_as_statistics) {
  const auto known = range_of(column(Type::int64, "3", 3), 9);
  EXPECT_EQ(known.min, std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(known.max, known.min);
  EXPECT_EQ(known.null_count, 0U);
  const auto missing = range_of(column(Type::bytes, std::nullopt), 9);
  EXPECT_FALSE(missing.min);
  EXPECT_EQ(missing.null_count, 9U);
}

TEST(TableTree, prunes_files_by_their_path) {
  const TempDirectory box;
  for (const char* const folder : {"y=1/c=a", "y=2/c=b", "y=2/_tmp", "y=3"}) {
    ASSERT_TRUE(make_directories(box / folder).ok());
    ASSERT_TRUE(write_file(box / folder / "p.parquet", "").ok());
  }
  EXPECT_TRUE(is_table_tree(box.path()));
  EXPECT_FALSE(is_table_tree(box / "y=3"));
  const auto names = [&](const std::string& where) {
    const auto tree = list_tables(box.path(), where);
    std::string text = tree.ok() ? "" : tree.status().to_string();
    for (std::size_t i = 0; tree.ok() && i < tree->tables.size(); ++i)
      text += tree->tables[i].path.name + " ";
    return text;
  };
  EXPECT_EQ(names(""), "y=1/c=a/p.parquet y=2/c=b/p.parquet y=3/p.parquet ");
  EXPECT_EQ(names("y >= 2 and x = 7"), "y=2/c=b/p.parquet y=3/p.parquet ");
  EXPECT_EQ(names("y >= 2 or x = 7"), "y=1/c=a/p.parquet y=2/c=b/p.parquet y=3/p.parquet ");
  EXPECT_EQ(names("not (c like 'a%' or x = 7)"), "y=2/c=b/p.parquet ");
  EXPECT_EQ(names("c is null"), "y=3/p.parquet ");
  EXPECT_EQ(names("c != 'a' and x > y"), "y=2/c=b/p.parquet ");
  EXPECT_EQ(names("c = 1"),
            box.path().string() +
                ": --where: character 5, '1': c is of type text: a text in single quotes is expected");
}

}  // namespace
}  // namespace stoker::sources
