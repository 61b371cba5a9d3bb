#include "checkpoint/layout.h"

#include <gtest/gtest.h>

namespace stoker::checkpoint {
namespace {

TEST(Layout, each_run_has_its_directory) {
  EXPECT_EQ(directory_of_run(std::nullopt, "runs/a"), Path("runs/a/checkpoints"));
  EXPECT_EQ(directory_of_run(Path("/scratch/ckpt"), "runs/a"), Path("/scratch/ckpt/a"));
  EXPECT_EQ(directory_of_run(Path("/scratch/ckpt"), "runs/a/"), Path("/scratch/ckpt/a"));
}

TEST(Layout, a_step_has_exactly_one_name) {
  EXPECT_EQ(step_folder_name(Step{200}), "step-200");
  EXPECT_EQ(step_of_folder("step-200"), Step{200});
  EXPECT_EQ(step_of_folder("step-0"), Step{0});
  for (const char* name : {"step-", "step-007", "step--1", "step-1x", "step-1.tmp", "Step-1", ".step-1",
                           "step-99999999999999999999"}) {
    EXPECT_EQ(step_of_folder(name), std::nullopt) << name;
  }
}

TEST(Layout, pending_and_removed_folders_are_hidden_and_contain_their_step) {
  EXPECT_EQ(pending_folder_name(Step{200}, "2", 7), ".step-200.2.7");
  EXPECT_EQ(hidden_folder(".step-200.2.7")->step, Step{200});
  EXPECT_FALSE(hidden_folder(".step-200.2.7")->is_removed);
  EXPECT_TRUE(hidden_folder(removed_folder_name(Step{3}))->is_removed);
  for (const char* name : {"step-200", ".step-200", ".step-x.1.2", ".other", ".step-02.1.2"}) {
    EXPECT_FALSE(hidden_folder(name)) << name;
  }
}

TEST(Layout, save_names_are_unique) {
  EXPECT_EQ(save_name("run-a", "2", Step{200}, 0), "run-a/2/200.0");
  EXPECT_EQ(save_name("run-a", "2", Step{200}, 1), "run-a/2/200.1");
}

TEST(Layout, files_are_named_like_pytorch_shards) {
  EXPECT_EQ(shard_path(StepPart::model, Rank{0}), "model/shard-00001-model-00001-of-00001.safetensors");
  EXPECT_EQ(shard_path(StepPart::optimizer, Rank{41}),
            "optimizer/shard-00042-optimizer-00001-of-00001.safetensors");
  EXPECT_EQ(part_of_path(shard_path(StepPart::optimizer, Rank{1})), StepPart::optimizer);
}

TEST(Layout, a_path_outside_the_step_has_no_part) {
  for (const char* path :
       {"../model/shard-1.safetensors", "model/../shard-1.safetensors", "model/x/shard-1.safetensors",
        "/model/shard-1.safetensors", "model/shard-1", "model/other.safetensors", ""}) {
    EXPECT_EQ(part_of_path(path), std::nullopt) << path;
  }
}

TEST(Layout, a_plain_word_has_no_dot_or_slash) {
  EXPECT_TRUE(is_plain_word("2026-11-21_a"));
  for (const char* text : {"", "a.b", "a/b", "..", "a b"}) EXPECT_FALSE(is_plain_word(text)) << text;
  EXPECT_FALSE(is_plain_word(std::string(65, 'a')));
}

}  // namespace
}  // namespace stoker::checkpoint
