#include "rank/checkpoint_presence.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

TEST(CheckpointPresence, any_entry_is_a_checkpoint) {
  TempDirectory box;
  const Environment environment = {{"STOKER_CHECKPOINT_DIR", (box / "checkpoints").string()}};
  EXPECT_FALSE(has_any_checkpoint(environment));  // the command makes it
  ASSERT_TRUE(make_directory(box / "checkpoints").ok());
  EXPECT_FALSE(has_any_checkpoint(environment));
  ASSERT_TRUE(write_file(box / "checkpoints/model.pt", "x").ok());
  EXPECT_TRUE(has_any_checkpoint(environment));
}

TEST(CheckpointPresence, uncommitted_step_is_no_checkpoint) {
  TempDirectory box;
  ASSERT_TRUE(make_directory(box / ".step-7.0a1b2c3d.1").ok());
  const Environment environment = {{"STOKER_CHECKPOINT_DIR", box.path().string()}};
  EXPECT_FALSE(has_any_checkpoint(environment));
  ASSERT_TRUE(make_directory(box / "step-7").ok());
  EXPECT_TRUE(has_any_checkpoint(environment));
}

TEST(CheckpointPresence, unknown_folder_trusts_the_exit_code) {
  EXPECT_TRUE(has_any_checkpoint({}));
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "file", "x").ok());
  EXPECT_TRUE(has_any_checkpoint({{"STOKER_CHECKPOINT_DIR", (box / "file").string()}}));
}

}  // namespace
}  // namespace stoker::rank
