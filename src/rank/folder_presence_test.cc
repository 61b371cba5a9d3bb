#include "rank/folder_presence.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr FolderIdentity kOpened{.device = 7, .inode = 100};

MonoTime at(Duration since_start) { return MonoTime(since_start); }

// runs/x/attempts/1, opened by a supervisor.
struct ObservedRun {
  TempDirectory box;
  Path folder = box / "runs/x";
  Path attempt = folder / "attempts/1";
  FolderPresence presence;

  ObservedRun() {
    EXPECT_TRUE(make_directories(attempt).ok());
    presence = FolderPresence(attempt);
  }
};

TEST(FolderPresence, identity_and_error_decide) {
  EXPECT_EQ(judge_folder(kOpened, {.identity = kOpened}), FolderState::present);
  EXPECT_EQ(judge_folder(kOpened, {.identity = {7, 101}}), FolderState::replaced);
  EXPECT_EQ(judge_folder(kOpened, {.identity = {8, 100}}), FolderState::replaced);
  for (const int gone : {ENOENT, ENOTDIR, ESTALE}) {
    EXPECT_EQ(judge_folder(kOpened, {.error = gone}), FolderState::removed);
    EXPECT_EQ(judge_folder(kOpened, {.error = gone, .moved_to = "/y"}), FolderState::moved);
  }
  for (const int unknown : {EIO, EACCES, ETIMEDOUT, ENOMEM})
    EXPECT_EQ(judge_folder(kOpened, {.error = unknown}), FolderState::present);
}

TEST(FolderPresence, folder_in_its_place_is_no_loss) {
  ObservedRun run;
  for (int s = 0; s < 5; ++s) EXPECT_FALSE(run.presence.check(at(s * 1s)));
  EXPECT_FALSE(run.presence.check_now());
}

TEST(FolderPresence, removal_is_reported_once_by_the_second_check) {
  ObservedRun run;
  EXPECT_FALSE(run.presence.check(at(0s)));
  ASSERT_TRUE(remove_tree(run.folder).ok());
  EXPECT_FALSE(run.presence.check(at(1s)));
  EXPECT_FALSE(run.presence.check(at(1500ms)));  // too early for another check
  const auto loss = run.presence.check(at(2s));
  ASSERT_TRUE(loss);
  EXPECT_EQ(describe_loss(*loss), format("run folder {}: was removed during the run; "
                                         "logs, events, metrics and checkpoints in it are lost",
                                         run.folder.string()));
  EXPECT_EQ(undo_command(*loss), "");
  EXPECT_FALSE(run.presence.check(at(3s)));
  EXPECT_FALSE(run.presence.check_now());
}

TEST(FolderPresence, absence_of_one_check_is_no_loss) {
  ObservedRun run;
  ASSERT_TRUE(rename_path(run.folder, run.box / "away").ok());
  EXPECT_FALSE(run.presence.check(at(1s)));
  ASSERT_TRUE(rename_path(run.box / "away", run.folder).ok());
  EXPECT_FALSE(run.presence.check(at(2s)));
  EXPECT_FALSE(run.presence.check_now());
}

TEST(FolderPresence, moved_folder_is_named_with_the_command_that_moves_it_back) {
  ObservedRun run;
  const std::string moved = (run.box / "kept here").string();
  ASSERT_TRUE(rename_path(run.folder, moved).ok());
  const auto loss = run.presence.check_now();
  ASSERT_TRUE(loss);
  EXPECT_EQ(describe_loss(*loss),
            format("run folder {}: was moved to {} during the run; new files are not written there",
                   run.folder.string(), moved));
  EXPECT_EQ(undo_command(*loss), format("mv '{}' {}", moved, run.folder.string()));
}

TEST(FolderPresence, different_folder_of_the_same_name_is_a_replacement) {
  ObservedRun run;
  ASSERT_TRUE(rename_path(run.folder, run.box / "away").ok());
  ASSERT_TRUE(make_directories(run.attempt).ok());
  const auto loss = run.presence.check_now();
  ASSERT_TRUE(loss);
  EXPECT_EQ(describe_loss(*loss),
            format("run folder {}: was replaced during the run; its logs, events and metrics are in {}",
                   run.folder.string(), (run.box / "away").string()));
  EXPECT_EQ(undo_command(*loss), "");
}

TEST(FolderPresence, removal_of_the_attempts_alone_is_a_loss) {
  ObservedRun run;
  ASSERT_TRUE(remove_tree(run.folder / "attempts").ok());
  const auto loss = run.presence.check_now();
  ASSERT_TRUE(loss);
  EXPECT_EQ(describe_loss(*loss),
            format("attempt folder {}: was removed during the run; logs, events and metrics in it are lost",
                   run.attempt.string()));
}

}  // namespace
}  // namespace stoker::rank
