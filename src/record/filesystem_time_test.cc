#include "record/filesystem_time.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::record {
namespace {

TEST(FilesystemTime, is_that_of_files_written_before_and_after) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "before", "").ok());
  const auto now = filesystem_time(box.path());
  ASSERT_TRUE(now.ok());
  ASSERT_TRUE(write_file(box / "after", "").ok());
  EXPECT_GE(*now, *modified_at(box / "before"));
  EXPECT_LE(*now, *modified_at(box / "after"));
  EXPECT_THAT(*list_directory(box.path()), testing::SizeIs(2));
  EXPECT_EQ(filesystem_time(box / "none").status().code(), Code::not_found);
}

TEST(FilesystemTime, a_file_from_the_future_is_as_silent_as_an_old_one) {
  TempDirectory box;
  const Path file = box / "lease";
  ASSERT_TRUE(write_file(file, "").ok());
  const double now = *filesystem_time(box.path());
  EXPECT_TRUE(is_recent(file, now, 60));
  for (const double offset : {-3600.0, 3600.0}) {
    const timespec time{static_cast<time_t>(now + offset), 0};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    EXPECT_FALSE(is_recent(file, now, 60)) << offset;
  }
  EXPECT_FALSE(is_recent(box / "none", now, 60));
}

}  // namespace
}  // namespace stoker::record
