#include "explain/preflight/room.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::explain {
namespace {

TEST(Room, the_lesser_of_disk_and_quota_counts) {
  const Room disk{.bytes = 100_MiB, .files = 1000, .bytes_by = "on the disk", .files_by = "on the disk"};
  const Room same = room_within(disk, {.used = 1_MiB, .most = 1_GiB, .files = 1, .most_files = {}});
  EXPECT_EQ(same.bytes, 100_MiB);
  EXPECT_EQ(same.bytes_by, "on the disk");
  const Room less = room_within(disk, {.used = 9_MiB, .most = 10_MiB, .files = 40, .most_files = 50});
  EXPECT_EQ(less.bytes, 1_MiB);
  EXPECT_EQ(less.bytes_by, "of your quota");
  EXPECT_EQ(less.files, 10u);
  EXPECT_EQ(less.files_by, "of your quota");
  const Room over = room_within(disk, {.used = 20_MiB, .most = 10_MiB, .files = 60, .most_files = 50});
  EXPECT_EQ(over.bytes, 0_MiB);
  EXPECT_EQ(over.files, 0u);
}

TEST(Room, a_folder_has_some_and_one_that_is_not_there_is_told) {
  const TempDirectory box;
  const auto room = room_of(box.path(), Deadline::after(std::chrono::seconds(5)));
  ASSERT_TRUE(room.ok());
  EXPECT_GT(room->bytes, 0_MiB);
  EXPECT_EQ(room_of(box / "none", Deadline::after(std::chrono::seconds(5))).status().code(), Code::not_found);
}

}  // namespace
}  // namespace stoker::explain
