#include "record/work_lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::record {
namespace {

TEST(WorkLease, is_refused_while_its_owner_lives) {
  TempDirectory box;
  const auto first = WorkLease::take(box / "csv.lock", "sends this run");
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  const auto second = WorkLease::take(box / "csv.lock", "sends this run");
  ASSERT_EQ(second.status().code(), Code::exists);
  EXPECT_THAT(second.status().message(), testing::StartsWith(format("process {} on ", ::getpid())));
}

TEST(WorkLease, leaves_no_file) {
  TempDirectory box;
  {
    EXPECT_TRUE(WorkLease::take(box / "csv.lock", "sends this run").ok());
  }
  EXPECT_THAT(*list_directory(box.path()), testing::IsEmpty());
}

TEST(WorkLease, of_a_killed_process_is_taken_over_at_once) {
  TempDirectory box;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lease = WorkLease::take(box / "csv.lock", "sends this run");
    ::_exit(lease.ok() ? 0 : 1);  // without the destructor
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(path_exists(box / "csv.lock"));
  EXPECT_TRUE(WorkLease::take(box / "csv.lock", "sends this run").ok());
}

TEST(WorkLease, of_a_different_machine_is_taken_over_after_its_silence) {
  TempDirectory box;
  const Path file = box / "csv.lock";
  ASSERT_TRUE(write_file(file, R"({"host":"n7","pid":1,"pid_start":1,"boot":"other"})").ok());
  EXPECT_EQ(WorkLease::take(file, "sends this run").status().message(),
            "process 1 on n7 already sends this run");
  const timespec long_ago[] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), long_ago, 0), 0);
  EXPECT_TRUE(WorkLease::take(file, "sends this run").ok());
}

TEST(WorkLease, of_a_different_machine_whose_clock_was_ahead_is_taken_over_too) {
  TempDirectory box;
  const Path file = box / "csv.lock";
  ASSERT_TRUE(write_file(file, R"({"host":"n7","pid":1,"pid_start":1,"boot":"other"})").ok());
  const timespec in_years[] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), in_years, 0), 0);
  EXPECT_TRUE(WorkLease::take(file, "sends this run").ok());
}

TEST(WorkLease, of_a_container_on_this_machine_is_that_of_a_different_machine) {
  TempDirectory box;
  const Path file = box / "csv.lock";
  const std::string owner =
      format(R"({{"host":"n7","pid":1,"pid_start":1,"boot":"{}"}})", this_process().boot);
  ASSERT_TRUE(write_file(file, owner).ok());
  EXPECT_EQ(WorkLease::take(file, "sends this run").status().message(),
            "process 1 on n7 already sends this run");
}

TEST(WorkLease, that_was_taken_over_is_not_refreshed_or_removed) {
  TempDirectory box;
  const Path file = box / "csv.lock";
  {
    const auto lease = WorkLease::take(file, "works");
    ASSERT_TRUE(lease.ok() && lease->refresh().ok());
    ASSERT_TRUE(write_file(file, R"({"host":"n7","pid":1,"pid_start":1,"boot":"other"})").ok());
    EXPECT_EQ(lease->refresh().code(), Code::exists);
  }
  EXPECT_TRUE(path_exists(file));
}

TEST(WorkLease, a_damaged_file_is_replaced_after_its_silence) {
  TempDirectory box;
  const Path file = box / "csv.lock";
  for (const char* text : {"", "{", "[]", R"({"host":1})", R"({"host":"a","pid":"x"})"}) {
    ASSERT_TRUE(write_file(file, text).ok());
    const timespec long_ago[] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), long_ago, 0), 0);
    EXPECT_TRUE(WorkLease::take(file, "works").ok()) << text;
  }
}

}  // namespace
}  // namespace stoker::record
