#include "preflight/free_space.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::preflight {
namespace {

TEST(FreeSpace, the_smaller_of_disk_and_quota_applies) {
  const FreeSpace disk{
      .bytes = 100_MiB, .files = 1000, .bytes_limited_by = "on the disk", .files_limited_by = "on the disk"};
  const FreeSpace same =
      within_quota(disk, {.used = 1_MiB, .bytes_limit = 1_GiB, .files = 1, .files_limit = {}});
  EXPECT_EQ(same.bytes, 100_MiB);
  EXPECT_EQ(same.bytes_limited_by, "on the disk");
  const FreeSpace less =
      within_quota(disk, {.used = 9_MiB, .bytes_limit = 10_MiB, .files = 40, .files_limit = 50});
  EXPECT_EQ(less.bytes, 1_MiB);
  EXPECT_EQ(less.bytes_limited_by, "of your quota");
  EXPECT_EQ(less.files, 10u);
  EXPECT_EQ(less.files_limited_by, "of your quota");
  const FreeSpace over =
      within_quota(disk, {.used = 20_MiB, .bytes_limit = 10_MiB, .files = 60, .files_limit = 50});
  EXPECT_EQ(over.bytes, 0_MiB);
  EXPECT_EQ(over.files, 0u);
}

TEST(FreeSpace, a_missing_folder_is_an_error) {
  const TempDirectory box;
  const auto space = free_space_of(box.path(), Deadline::after(std::chrono::seconds(5)));
  ASSERT_TRUE(space.ok());
  EXPECT_GT(space->bytes, 0_MiB);
  EXPECT_EQ(free_space_of(box / "none", Deadline::after(std::chrono::seconds(5))).status().code(),
            Code::not_found);
}

}  // namespace
}  // namespace stoker::preflight
