#include "stage/back_copy.h"

#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kNeverStops = [] { return false; };

class BackCopyTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(make_directories(box_ / "node").ok()); }
  Path on_node(std::string_view name) const { return box_ / "node" / name; }
  Path back(std::string_view name) const { return box_ / "back" / name; }
  // `age`: seconds since the file was written.
  void write(std::string_view name, std::string_view text, int age = 100) const {
    ASSERT_TRUE(make_directories(on_node(name).parent_path()).ok());
    ASSERT_TRUE(write_file(on_node(name), text).ok());
    const timespec time{::time(nullptr) - age, 0};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, on_node(name).c_str(), times, 0), 0);
  }
  StageOutRound changed() { return copy_.copy_changed(kNeverStops); }

  TempDirectory box_;
  StageRequest request_{.unpack = {}, .copy = {}, .back = {"results/", "best"}};
  BackCopy copy_{request_, box_ / "node", box_ / "back"};
};

TEST_F(BackCopyTest, each_round_copies_what_has_changed) {
  write("results/step-1/model", "one");
  write("best", "7");
  const StageOutRound first = changed();
  ASSERT_TRUE(first.problem.ok()) << first.problem.to_string();
  EXPECT_EQ(first.copied.files, 2u);
  EXPECT_EQ(first.copied.bytes, 4u);
  EXPECT_EQ(*read_file(back("results/step-1/model")), "one");
  EXPECT_EQ(changed().copied.files, 0u);
  write("results/step-2/model", "second");
  write("best", "8", 50);
  EXPECT_EQ(changed().copied.files, 2u);
  EXPECT_EQ(*read_file(back("results/step-2/model")), "second");
  EXPECT_EQ(*read_file(back("best")), "8");
  // What the ranks remove stays.
  ASSERT_TRUE(remove_tree(on_node("results/step-1")).ok());
  EXPECT_TRUE(copy_.copy_rest().problem.ok());
  EXPECT_EQ(*read_file(back("results/step-1/model")), "one");
  EXPECT_EQ(copy_.total().files, 3u);
  EXPECT_EQ(copy_.total().bytes, 10u);
  EXPECT_THAT(*list_directory(box_ / "back"), ElementsAre("best", "results"));
}

TEST_F(BackCopyTest, a_folder_in_which_a_file_is_being_written_appears_when_it_is_complete) {
  write("results/step-1/model", "one");
  write("results/step-2/optimizer", "complete");
  write("results/step-2/model", "half", 0);
  const StageOutRound first = changed();
  EXPECT_THAT(first.written, ElementsAre("results/step-2/model"));
  EXPECT_FALSE(path_exists(back("results/step-2/model")));
  EXPECT_EQ(*read_file(back("results/step-1/model")), "one");
  write("results/step-2/model", "whole");
  EXPECT_THAT(changed().written, IsEmpty());
  EXPECT_EQ(*read_file(back("results/step-2/model")), "whole");
  EXPECT_EQ(*read_file(back("results/step-2/optimizer")), "complete");
}

TEST_F(BackCopyTest, the_last_round_does_not_wait) {
  write("results/log", "a line\n", 0);
  EXPECT_EQ(changed().copied.files, 0u);
  const StageOutRound last = copy_.copy_rest();
  ASSERT_TRUE(last.problem.ok()) << last.problem.to_string();
  EXPECT_THAT(last.missing, ElementsAre("best"));
  EXPECT_EQ(*read_file(back("results/log")), "a line\n");
}

TEST_F(BackCopyTest, kinds_may_change_between_rounds) {
  write("results/a", "a file");
  EXPECT_EQ(changed().copied.files, 1u);
  ASSERT_TRUE(remove_file(on_node("results/a")).ok());
  write("results/a/b", "below");
  EXPECT_EQ(changed().copied.files, 1u);
  EXPECT_EQ(*read_file(back("results/a/b")), "below");
  ASSERT_TRUE(remove_tree(on_node("results/a")).ok());
  ASSERT_EQ(::symlink("elsewhere", on_node("results/a").c_str()), 0);
  EXPECT_EQ(changed().copied.files, 1u);
  EXPECT_EQ(std::filesystem::read_symlink(back("results/a")), "elsewhere");
}

TEST_F(BackCopyTest, modes_arrive_and_a_stop_leaves_the_rest) {
  write("results/run.sh", "#!/bin/sh\n");
  ASSERT_EQ(::chmod(on_node("results/run.sh").c_str(), 0755), 0);
  EXPECT_EQ(copy_.copy_changed([] { return true; }).copied.files, 0u);
  EXPECT_EQ(changed().copied.files, 1u);
  struct stat info{};
  ASSERT_EQ(::stat(back("results/run.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
}

TEST_F(BackCopyTest, results_behind_links_that_point_outside_are_refused_and_others_copied) {
  request_.back = {"results/passwd", "best"};
  ASSERT_EQ(::symlink("/etc", on_node("results").c_str()), 0);
  write("best", "7");
  const StageOutRound last = copy_.copy_rest();
  EXPECT_EQ(last.problem.message(), "stage.back: 'results/passwd' is outside the staged folder");
  EXPECT_EQ(*read_file(back("best")), "7");
}

TEST_F(BackCopyTest, a_target_that_cannot_be_written_is_a_problem_and_a_later_round_succeeds) {
  write("best", "7");
  ASSERT_TRUE(write_file(box_ / "back", "a file in the way").ok());
  EXPECT_FALSE(changed().problem.ok());
  ASSERT_TRUE(remove_file(box_ / "back").ok());
  EXPECT_TRUE(changed().problem.ok());
  EXPECT_EQ(*read_file(back("best")), "7");
}

}  // namespace
}  // namespace stoker::stage
