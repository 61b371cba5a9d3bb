#include "track/push/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::track {
namespace {

TEST(PushLeaseFile, is_refused_while_its_owner_lives) {
  TempDirectory box;
  const auto first = PushLease::take(box / "csv.lock");
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  const auto second = PushLease::take(box / "csv.lock");
  ASSERT_EQ(second.status().code(), Code::exists);
  EXPECT_THAT(second.status().message(), testing::StartsWith(format("process {} on ", ::getpid())));
}

TEST(PushLeaseFile, leaves_no_file) {
  TempDirectory box;
  {
    EXPECT_TRUE(PushLease::take(box / "csv.lock").ok());
  }
  EXPECT_THAT(*list_directory(box.path()), testing::IsEmpty());
}

TEST(PushLeaseFile, of_a_killed_process_is_taken_over_at_once) {
  TempDirectory box;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lease = PushLease::take(box / "csv.lock");
    ::_exit(lease.ok() ? 0 : 1);  // without the destructor
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(path_exists(box / "csv.lock"));
  EXPECT_TRUE(PushLease::take(box / "csv.lock").ok());
}

TEST(PushLeaseFile, of_a_different_machine_is_taken_over_after_its_silence) {
  TempDirectory box;
  const Path file = box / "csv.lock";
  ASSERT_TRUE(write_file(file, R"({"host":"n7","pid":1,"pid_start":1,"boot":"other"})").ok());
  EXPECT_EQ(PushLease::take(file).status().message(), "process 1 on n7 already sends this run");
  const timespec long_ago[] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), long_ago, 0), 0);
  EXPECT_TRUE(PushLease::take(file).ok());
}

}  // namespace
}  // namespace stoker::track
