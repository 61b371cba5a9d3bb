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
    STOKER_CHECK(folder.ok());
    return std::move(*folder);
  }
  std::vector<std::string> local() const { return *list_directory(in("local")); }
  // A process that creates a run's folder with a file in it, and is killed.
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

TEST_F(Node, stages_in) {
  ASSERT_TRUE(write_file(in("large"), "12345").ok());
  const StageRequest wanted{.unpack = {}, .copy = {in("large")}, .back = {}};
  NodeFolder folder = create("r");
  EXPECT_EQ(folder.path(), in("local/stoker-r"));
  const auto staged = stage_in(wanted, folder.path(), progress_);
  ASSERT_TRUE(staged.ok()) << staged.status().to_string();
  EXPECT_EQ(staged->files, 1u);
  ASSERT_TRUE(std::move(folder).remove().ok());
  EXPECT_THAT(local(), IsEmpty());
}

TEST_F(Node, deletes_folders_of_killed_processes) {
  leave_behind("r");
  EXPECT_THAT(local(), ElementsAre("stoker-r"));
  leave_behind("other");
  EXPECT_THAT(local(), ElementsAre("stoker-other"));
  leave_behind("r");
  const NodeFolder folder = create("r");
  EXPECT_THAT(local(), ElementsAre("stoker-r"));
  EXPECT_FALSE(path_exists(folder.path() / "half"));
}

TEST_F(Node, keeps_a_folder_in_use) {
  const NodeFolder first = create("r");
  const NodeFolder second = create("r");
  EXPECT_EQ(second.path(), in("local/stoker-r.2"));
  EXPECT_THAT(local(), ElementsAre("stoker-r", "stoker-r.2"));
}

TEST_F(Node, leaves_folders_of_other_users_alone) {
  ASSERT_TRUE(make_directories(in("local/stoker-mine/data")).ok());
  ASSERT_TRUE(make_directories(in("local/stoker-mine2")).ok());
  const NodeFolder folder = create("r");
  EXPECT_THAT(local(), ElementsAre("stoker-mine", "stoker-mine2", "stoker-r"));
}

TEST_F(Node, later_runs_do_not_delete_kept_folders) {
  NodeFolder folder = create("r");
  ASSERT_TRUE(write_file(folder.path() / "best", "7").ok());
  const auto kept = std::move(folder).keep();
  ASSERT_TRUE(kept.ok()) << kept.status().to_string();
  const NodeFolder next = create("r");
  EXPECT_EQ(*read_file(*kept / "best"), "7");
}

TEST(NodeLocalBase, is_on_the_local_disk_of_the_node) {
  EXPECT_EQ(node_local_base("", {{"SLURM_TMPDIR", "/local/7"}, {"TMPDIR", "/t"}}), "/local/7");
  EXPECT_EQ(node_local_base("", {{"TMPDIR", "/t"}}), "/t");
  EXPECT_EQ(node_local_base("", {}), "/tmp");
  EXPECT_EQ(node_local_base("/nvme", {{"SLURM_TMPDIR", "/local/7"}}), "/nvme");
}

}  // namespace
}  // namespace stoker::stage
