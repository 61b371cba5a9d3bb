// Constraints between the trainer's settings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "job/job.h"

namespace stoker::job {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kData = "data: {train: {source: packed}}\n";

struct JobSandbox {
  TempDirectory folder;

  Result<Job> load_train(std::string_view train) {
    const Path path = folder / "job.yaml";
    EXPECT_TRUE(write_file(path, format("train: {}\n{}", train, kData)).ok());
    return load(path);
  }
};

// The first line of the error, without the position.
std::string mistake_of(std::string_view train) {
  JobSandbox box;
  const std::string text(box.load_train(train).status().message());
  const std::size_t key = text.find(" train.");
  return key == std::string::npos ? text : text.substr(key + 1, text.find('\n') - key - 1);
}

TEST(TrainOptions, every_model_has_a_name) {
  for (int i = 0; i <= static_cast<int>(ModelKind::mlp); ++i) {
    const std::string word(to_text(static_cast<ModelKind>(i)));
    JobSandbox box;
    const auto job = box.load_train(format("{{model: {}, classes: 10}}", word));
    ASSERT_TRUE(job.ok()) << job.status().to_string();
    EXPECT_EQ(to_text(job->train->model), word);
  }
}

TEST(TrainOptions, all_of_them_load_back_from_the_effective_file) {
  JobSandbox box;
  const auto job = box.load_train(R"({model: resnet34, heads: 3, stochastic_depth: 0.2, accumulate: 4,
    find_unused_parameters: true, drop_last: true, clip_norm: 1, ema: 0.999, label_smoothing: 0.1, mixup: 0.2, cutmix: 1,
    device: cpu, cuda_graph: never, precision: bf16, channels_last: true, deterministic: true, tf32: true,
    optimizer: {kind: lars, lr: 2, lr_scaling: square-root, trust_coefficient: 0.02, exclude_bias_and_norm: true, beta1: 0.8, beta2: 0.9,
                epsilon: 1e-6},
    schedule: {kind: step, drop_at: [30, 60.5], factor: 0.5, warmup: 0.05},
    mlp: {hidden: [32, 16], columns: [age, "height"]}, gpt: {layers: 2, heads: 2, width: 8, length: 9, stored: u8}})");
  ASSERT_TRUE(job.ok()) << job.status().to_string();
  EXPECT_EQ(job->train->optimizer.kind, OptimizerKind::lars);
  EXPECT_EQ(job->train->schedule.drop_at, (std::vector<double>{30, 60.5}));
  EXPECT_EQ(job->train->gpt.stored, DType::u8);
  ASSERT_TRUE(write_file(box.folder / "again.yaml", to_yaml(*job)).ok());
  const auto again = load(box.folder / "again.yaml");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, *job) << to_yaml(*job);
}

TEST(TrainOptions, the_array_of_a_table_loads_back) {
  JobSandbox box;
  EXPECT_EQ(box.load_train("{model: mlp}")->train->mlp.component, std::nullopt);
  const auto job = box.load_train("{model: mlp, mlp: {component: features.npy}}");
  ASSERT_TRUE(job.ok()) << job.status().to_string();
  EXPECT_EQ(job->train->mlp.component, "features.npy");
  ASSERT_TRUE(write_file(box.folder / "again.yaml", to_yaml(*job)).ok());
  const auto again = load(box.folder / "again.yaml");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, *job) << to_yaml(*job);
}

TEST(TrainOptions, an_order_by_windows_loads_back_with_its_window) {
  JobSandbox box;
  EXPECT_EQ(box.load_train("{model: resnet18}")->train->window, std::nullopt);
  EXPECT_EQ(box.load_train("{model: resnet18, shuffle: by_shard}")->train->window, 16u);
  EXPECT_EQ(box.load_train("{model: resnet18, shuffle: by_chunk}")->train->window, 256u);
  const auto job = box.load_train("{model: resnet18, shuffle: by_chunk, window: 32, chunk_cache: 8MiB}");
  ASSERT_TRUE(job.ok()) << job.status().to_string();
  EXPECT_EQ(job->train->shuffle, Shuffle::by_chunk);
  EXPECT_EQ(job->train->chunk_cache, 8_MiB);
  ASSERT_TRUE(write_file(box.folder / "again.yaml", to_yaml(*job)).ok());
  const auto again = load(box.folder / "again.yaml");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, *job) << to_yaml(*job);
}

TEST(TrainOptions, the_defaults_of_other_kinds_load_back_too) {
  JobSandbox box;
  const auto job = box.load_train("{model: gpt, classes: 256, optimizer: {kind: adamw, lr: 0.001}}");
  ASSERT_TRUE(job.ok()) << job.status().to_string();
  ASSERT_TRUE(write_file(box.folder / "again.yaml", to_yaml(*job)).ok());
  const auto again = load(box.folder / "again.yaml");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, *job);
}

TEST(TrainOptions, only_one_cycle_has_a_warmup_by_default) {
  JobSandbox box;
  EXPECT_EQ(box.load_train("{model: resnet18}")->train->schedule.warmup, 0.3);
  EXPECT_EQ(box.load_train("{model: resnet18, schedule: {kind: cosine}}")->train->schedule.warmup, 0);
  EXPECT_EQ(
      box.load_train("{model: resnet18, schedule: {kind: cosine, warmup: 0.1}}")->train->schedule.warmup,
      0.1);
}

TEST(TrainOptions, all_cifar_models_use_small_images) {
  JobSandbox box;
  EXPECT_EQ(box.load_train("{model: cifar-resnet56}")->train->image.size, 32u);
  EXPECT_EQ(box.load_train("{model: vit-s16}")->train->image.size, 224u);
  EXPECT_EQ(box.load_train("{model: mlp}")->train->mlp.hidden, (std::vector<double>{256, 256}));
}

TEST(TrainOptions, keep_best_requires_validation) {
  const std::string file = "train: {model: resnet18, validate_every: 1}\ncheckpoint: {keep_best: 2}\n";
  JobSandbox box;
  const Path path = box.folder / "job.yaml";
  ASSERT_TRUE(write_file(path, file + "data: {train: {source: a}, validation: {source: b}}\n").ok());
  EXPECT_TRUE(load(path).ok());
  ASSERT_TRUE(write_file(path, file + std::string(kData)).ok());
  EXPECT_THAT(std::string(load(path).status().message()),
              HasSubstr("checkpoint.keep_best: requires validation "
                        "(train.validation_data, validate_every)"));
}

TEST(TrainOptions, refuses_contradictions) {
  EXPECT_EQ(mistake_of("{model: resnet18, optimizer: {kind: adamw}}"),
            "train.optimizer.lr: required (train.optimizer.kind: adamw)");
  EXPECT_EQ(mistake_of("{model: gpt}"),
            "train.classes: the size of the vocabulary is required (train.model: gpt)");
  EXPECT_EQ(mistake_of("{model: vit-s16, heads: 2}"),
            "train.heads: applies only to residual networks (train.model: vit-s16)");
  EXPECT_EQ(mistake_of("{model: mlp, stochastic_depth: 0.1}"),
            "train.stochastic_depth: applies only to residual networks (train.model: mlp)");
  EXPECT_EQ(mistake_of("{model: mlp, mixup: 0.1}"), "train.mixup: applies only to images (train.model: mlp)");
  EXPECT_EQ(mistake_of("{model: mlp, cutmix: 0.1}"),
            "train.cutmix: applies only to images (train.model: mlp)");
  EXPECT_EQ(mistake_of("{model: resnet18, mixup: 0.01}"), "train.mixup: 0.01 is below 0.05 (0 to disable)");
  EXPECT_EQ(mistake_of("{model: mlp, channels_last: true}"),
            "train.channels_last: applies only to images (train.model: mlp)");
  EXPECT_EQ(mistake_of("{model: vit-s16, image: {size: 100, validation_resize: 112}}"),
            "train.image.size: 100 is not a multiple of 16 (train.model: vit-s16)");
  EXPECT_EQ(mistake_of("{model: gpt, classes: 9, gpt: {width: 64, heads: 5}}"),
            "train.gpt.width: 64 is not divisible by train.gpt.heads (5)");
  EXPECT_EQ(mistake_of("{model: mlp, mlp: {hidden: [12.5]}}"), "train.mlp.hidden: expected whole numbers");
  EXPECT_EQ(mistake_of("{model: mlp, mlp: {columns: [age], component: x.npy}}"),
            "train.mlp.component: applies only to arrays, but train.mlp.columns selects JSON numbers");
  EXPECT_EQ(mistake_of("{model: resnet18, window: 32}"),
            "train.window: applies only to by_shard and by_chunk (train.shuffle: every_epoch)");
  EXPECT_EQ(mistake_of("{model: resnet18, schedule: {kind: step, drop_at: [60, 30]}}"),
            "train.schedule.drop_at: must be ascending");
}

}  // namespace
}  // namespace stoker::job
