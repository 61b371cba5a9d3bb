#include "stage/node.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace stoker::stage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Node : public ::testing::Test {
 protected:
  Path in(std::string_view name) const { return box_ / name; }
  NodeFolder create(const std::string& run) const {
    auto folder = NodeFolder::create(in("local"), run);
    CHECK(folder.ok());
    return std::move(*folder);
  }
  std::vector<std::string> local() const { return *list_directory(in("local")); }
  // A process that makes a run's folder, something in it, and is killed.
  void leave_behind(const std::string& run) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto folder = NodeFolder::create(in("local"), run);
      (void)write_file(folder->path() / "half", "half");
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }

  TempDirectory box_;
  NoProgress progress_;
};

TEST_F(Node, brings_what_is_wanted_and_takes_back_what_is_there) {
  ASSERT_TRUE(write_file(in("large"), "12345").ok());
  const Wanted wanted{.unpack = {}, .copy = {in("large")}, .back = {"results/", "none", "a/b"}};
  NodeFolder folder = create("r");
  EXPECT_EQ(folder.path(), in("local/stoker-r"));
  const auto brought = stage_in(wanted, folder.path(), progress_);
  ASSERT_TRUE(brought.ok()) << brought.status().to_string();
  EXPECT_EQ(brought->files, 1u);
  ASSERT_TRUE(make_directories(folder.path() / "results").ok() && make_directories(folder.path() / "a").ok());
  ASSERT_TRUE(write_file(folder.path() / "results/best", "7").ok());
  ASSERT_TRUE(write_file(folder.path() / "a/b", "8").ok());
  std::vector<std::string> missing;
  const auto back = stage_back(wanted, folder.path(), in("back"), &missing, progress_);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->files, 2u);
  EXPECT_THAT(missing, ElementsAre("none"));
  EXPECT_EQ(*read_file(in("back/results/best")), "7");
  EXPECT_EQ(*read_file(in("back/a/b")), "8");
  ASSERT_TRUE(std::move(folder).remove().ok());
  EXPECT_THAT(local(), IsEmpty());
}

TEST_F(Node, what_a_killed_process_left_is_removed_by_the_next_one) {
  leave_behind("r");
  EXPECT_THAT(local(), ElementsAre("stoker-r"));
  leave_behind("other");
  EXPECT_THAT(local(), ElementsAre("stoker-other"));
  leave_behind("r");
  const NodeFolder folder = create("r");
  EXPECT_THAT(local(), ElementsAre("stoker-r"));
  EXPECT_FALSE(path_exists(folder.path() / "half"));
}

TEST_F(Node, a_folder_that_somebody_uses_is_left_alone) {
  const NodeFolder first = create("r");
  const NodeFolder second = create("r");
  EXPECT_EQ(second.path(), in("local/stoker-r.2"));
  EXPECT_THAT(local(), ElementsAre("stoker-r", "stoker-r.2"));
}

TEST_F(Node, folders_of_others_are_left_alone) {
  ASSERT_TRUE(make_directories(in("local/stoker-mine/data")).ok());
  ASSERT_TRUE(make_directories(in("local/stoker-mine2")).ok());
  const NodeFolder folder = create("r");
  EXPECT_THAT(local(), ElementsAre("stoker-mine", "stoker-mine2", "stoker-r"));
}

TEST_F(Node, what_is_kept_no_later_run_removes) {
  NodeFolder folder = create("r");
  ASSERT_TRUE(write_file(folder.path() / "best", "7").ok());
  const auto kept = std::move(folder).keep();
  ASSERT_TRUE(kept.ok()) << kept.status().to_string();
  const NodeFolder next = create("r");
  EXPECT_EQ(*read_file(*kept / "best"), "7");
}

TEST_F(Node, nothing_is_taken_back_through_a_link_that_leads_out) {
  const NodeFolder folder = create("r");
  ASSERT_TRUE(::symlink("/etc", (folder.path() / "results").c_str()) == 0);
  ASSERT_TRUE(write_file(folder.path() / "best", "7").ok());
  std::vector<std::string> missing;
  EXPECT_EQ(stage_back({.unpack = {}, .copy = {}, .back = {"results/passwd", "best"}}, folder.path(),
                       in("back"), &missing, progress_)
                .status()
                .to_string(),
            "stage.back: 'results/passwd' leads out of the staged folder");
  EXPECT_EQ(*read_file(in("back/best")), "7");  // the others are taken back all the same
}

TEST(BaseOnNode, is_on_the_nodes_own_disk) {
  EXPECT_EQ(base_on_node("", {{"SLURM_TMPDIR", "/local/7"}, {"TMPDIR", "/t"}}), "/local/7");
  EXPECT_EQ(base_on_node("", {{"TMPDIR", "/t"}}), "/t");
  EXPECT_EQ(base_on_node("", {}), "/tmp");
  EXPECT_EQ(base_on_node("/nvme", {{"SLURM_TMPDIR", "/local/7"}}), "/nvme");
}

}  // namespace
}  // namespace stoker::stage
