#include "rank/saved.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

TEST(Saved, whatever_is_in_the_folder_of_checkpoints_is_one) {
  TempDirectory box;
  const Environment environment = {{"STOKER_CHECKPOINT_DIR", (box / "checkpoints").string()}};
  EXPECT_FALSE(has_saved(environment));  // the command makes it
  ASSERT_TRUE(make_directory(box / "checkpoints").ok());
  EXPECT_FALSE(has_saved(environment));
  ASSERT_TRUE(write_file(box / "checkpoints/model.pt", "x").ok());
  EXPECT_TRUE(has_saved(environment));
}

TEST(Saved, a_step_that_was_never_committed_is_none) {
  TempDirectory box;
  ASSERT_TRUE(make_directory(box / ".step-7.0a1b2c3d.1").ok());
  const Environment environment = {{"STOKER_CHECKPOINT_DIR", box.path().string()}};
  EXPECT_FALSE(has_saved(environment));
  ASSERT_TRUE(make_directory(box / "step-7").ok());
  EXPECT_TRUE(has_saved(environment));
}

TEST(Saved, where_nobody_can_tell_the_commands_word_counts) {
  EXPECT_TRUE(has_saved({}));
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "file", "x").ok());
  EXPECT_TRUE(has_saved({{"STOKER_CHECKPOINT_DIR", (box / "file").string()}}));
}

}  // namespace
}  // namespace stoker::rank
