#include "sweep/storage/storage_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::sweep {
namespace {

using testing::StartsWith;

TEST(StorageUrl, names_the_file_and_the_study) {
  const auto journal = parse_storage_url("journal:///shared/a b.log#my study");
  ASSERT_TRUE(journal.ok()) << journal.status().to_string();
  EXPECT_EQ(journal->url, "journal:///shared/a b.log");
  EXPECT_EQ(journal->study, "my study");
  EXPECT_EQ(journal->file, "/shared/a b.log");
  EXPECT_EQ(parse_storage_url("sqlite:////tmp/a.db")->file, "/tmp/a.db");
  EXPECT_EQ(parse_storage_url("postgresql://u@h/d#x")->file, "");
}

TEST(StorageUrl, other_schemes_and_relative_paths_are_refused) {
  EXPECT_EQ(parse_storage_url("postgres://h/d").status().to_string(),
            "postgres://h/d: 'postgres' is no storage of studies; did you mean 'postgresql'?");
  for (const char* text : {"journal://a.log", "sqlite:///a.db", "sqlite://", "journal://", "sqlite://a"})
    EXPECT_THAT(std::string(parse_storage_url(text).status().message()), testing::HasSubstr("absolute"))
        << text;
}

TEST(StorageUrl, a_password_is_not_shown) {
  EXPECT_EQ(shown_url("postgresql://ana:secret@host:5432/d#x"), "postgresql://ana:***@host:5432/d#x");
  EXPECT_EQ(shown_url("postgresql://ana@host:5432/d"), "postgresql://ana@host:5432/d");
  EXPECT_EQ(shown_url("journal:///a.log"), "journal:///a.log");
}

TEST(StorageUrl, sqlite_works_on_local_filesystems_and_needs_a_folder) {
  TempDirectory folder;
  EXPECT_TRUE(check_storage(*parse_storage_url(format("sqlite:///{}/a.db", folder.path()))).ok());
  EXPECT_TRUE(check_storage(*parse_storage_url("journal:///no/folder/a.log")).ok());
  EXPECT_THAT(check_storage(*parse_storage_url("sqlite:////no/folder/a.db")).to_string(),
              StartsWith("/no/folder: no such"));
}

}  // namespace
}  // namespace stoker::sweep
