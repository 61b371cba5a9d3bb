#include "track/comet/folder_zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::track {
namespace {

class ZippedFolder : public ::testing::Test {
 protected:
  ZippedFolder() {
    EXPECT_TRUE(make_directories(box_ / "in/images").ok());
    EXPECT_TRUE(write_file(box_ / "in/b.json", "{}\n").ok());
    EXPECT_TRUE(write_file(box_ / "in/images/a.png", std::string(3 << 20, 'x')).ok());
    EXPECT_TRUE(write_file(box_ / "in/empty", "").ok());
  }
  TempDirectory box_;
};

TEST_F(ZippedFolder, has_the_same_bytes_each_time) {
  ASSERT_TRUE(zip_folder(box_ / "in", box_ / "one.zip").ok());
  ASSERT_TRUE(zip_folder(box_ / "in", box_ / "two.zip").ok());
  EXPECT_EQ(*read_file(box_ / "one.zip"), *read_file(box_ / "two.zip"));
  EXPECT_THAT(*list_directory(box_.path()), testing::ElementsAre("in", "one.zip", "two.zip"));
}

TEST_F(ZippedFolder, replaces_an_older_archive_only_when_it_is_complete) {
  ASSERT_TRUE(write_file(box_ / "one.zip", "older").ok());
  EXPECT_FALSE(zip_folder(box_ / "absent", box_ / "one.zip").ok());
  EXPECT_EQ(*read_file(box_ / "one.zip"), "older");
  ASSERT_TRUE(zip_folder(box_ / "in", box_ / "one.zip").ok());
  EXPECT_TRUE(read_file(box_ / "one.zip")->starts_with("PK"));
}

}  // namespace
}  // namespace stoker::track
