#include "inspect/export/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#endif

#include "inspect/export/sqlite_api_internal.h"

namespace stoker::inspect {
namespace {

TEST(SqliteApi, prototypes_match_the_header) {
#if __has_include(<sqlite3.h>)
#define STOKER_SQLITE_COMPARE(result, name, parameters) \
  static_assert(std::is_same_v<decltype(SqliteApi::name), decltype(&::name)>);
  STOKER_SQLITE_FUNCTIONS(STOKER_SQLITE_COMPARE)
#undef STOKER_SQLITE_COMPARE
  static_assert(kSqliteOk == SQLITE_OK && kSqliteFull == SQLITE_FULL && kSqliteRow == SQLITE_ROW &&
                kSqliteDone == SQLITE_DONE && kSqliteOpenReadWrite == SQLITE_OPEN_READWRITE &&
                kSqliteOpenCreate == SQLITE_OPEN_CREATE);
#else
  GTEST_SKIP() << "sqlite3.h is not installed";
#endif
}

TEST(SqliteDatabase, writes_rows_and_finds_the_first) {
  const TempDirectory folder;
  const Path path = folder / "x.sqlite";
  ASSERT_TRUE(write_file(path, "not a database").ok());
  auto database = SqliteDatabase::create(path);
  ASSERT_TRUE(database.ok()) << database.status().to_string();
  ASSERT_TRUE(database->execute("CREATE TABLE t (number INTEGER, name TEXT)").ok());
  const auto insert = database->prepare("INSERT INTO t VALUES (?, ?)");
  ASSERT_TRUE(insert.ok());
  for (const std::string_view name : {"b", "a", "a"}) {
    const SqliteValue row[] = {std::int64_t{7}, name};
    ASSERT_TRUE(database->insert(*insert, row).ok());
  }
  EXPECT_EQ(*database->first_text("SELECT name FROM t GROUP BY name HAVING count(*) > 1"), "a");
  EXPECT_EQ(*database->first_text("SELECT name FROM t WHERE number = 8"), std::nullopt);
  EXPECT_THAT(database->execute("CREATE").to_string(), ::testing::HasSubstr("x.sqlite: SQLite: "));
  ASSERT_TRUE(database->finish().ok());
  EXPECT_TRUE(read_file(path)->starts_with("SQLite format 3"));
}

TEST(SqliteDatabase, missing_folder_is_an_error) {
  const auto database = SqliteDatabase::create("/nonexistent/x.sqlite");
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.status().code(), Code::not_found) << database.status().to_string();
}

}  // namespace
}  // namespace stoker::inspect
