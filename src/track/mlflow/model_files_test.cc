#include "track/mlflow/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::track {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelFilesTest : public ::testing::Test {
 protected:
  void put(const Path& file) {
    ASSERT_TRUE(make_directories((box_.path() / file).parent_path()).ok());
    ASSERT_TRUE(write_file(box_.path() / file, "x").ok());
  }
  ModelChoice newest() { return {.name = "m", .path = {}, .checkpoints = box_.path()}; }

  TempDirectory box_;
};

TEST_F(ModelFilesTest, the_highest_complete_step_gives_its_model) {
  for (const char* step : {"step-20", "step-100"}) {
    put(Path(step) / "manifest.json");
    put(Path(step) / "model/shard-00001-model-00001-of-00001.safetensors");
    put(Path(step) / "optimizer/shard-00001-optimizer-00001-of-00001.safetensors");
  }
  put("step-300/model/incomplete.safetensors");
  put(".step-400.1.0/manifest.json");
  const auto model = find_model_files(newest());
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->label, "step-100");
  EXPECT_THAT(model->files,
              ElementsAre("manifest.json", "model/shard-00001-model-00001-of-00001.safetensors"));
}

TEST_F(ModelFilesTest, of_other_formats_the_newest_counts) {
  put("old.pt");
  put("new/a/weights.bin");
  std::filesystem::create_symlink("/etc/passwd", box_ / "new/link");
  std::filesystem::last_write_time(box_ / "old.pt", std::filesystem::file_time_type::min());
  const auto model = find_model_files(newest());
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->label, "new");
  EXPECT_THAT(model->files, ElementsAre("a/weights.bin"));
}

TEST_F(ModelFilesTest, a_path_may_be_a_file) {
  put("out/best.pt");
  const auto model = find_model_files({.name = "m", .path = box_ / "out/best.pt", .checkpoints = {}});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->label, "best.pt");
  EXPECT_EQ(model->folder, box_ / "out");
  EXPECT_THAT(model->files, ElementsAre("best.pt"));
}

TEST_F(ModelFilesTest, a_missing_model_is_named) {
  EXPECT_THAT(std::string(find_model_files(newest()).error().message()), HasSubstr("no checkpoint in "));
  EXPECT_THAT(
      std::string(
          find_model_files({.name = "m", .path = box_ / "x.pt", .checkpoints = {}}).error().message()),
      HasSubstr("x.pt does not exist (record.mlflow_register_path)"));
  ASSERT_TRUE(make_directory(box_ / "empty").ok());
  EXPECT_THAT(
      std::string(
          find_model_files({.name = "m", .path = box_ / "empty", .checkpoints = {}}).error().message()),
      HasSubstr("empty has no files"));
}

}  // namespace
}  // namespace stoker::track
