#include "checkpoint/retention/retention.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

// A directory with steps 1 to 6; each test gets a copy.
class Pruning : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    saved_ = new Sandbox();
    saved_->keep_last = 0;
    saved_->save_well(1, {1, 2, 3, 4, 5, 6});
  }
  static void TearDownTestSuite() { delete std::exchange(saved_, nullptr); }
  void SetUp() override {
    std::filesystem::copy(saved_->directory(), box.directory(), std::filesystem::copy_options::recursive);
  }

  // "6 newest, 5 removed"
  std::string plan(const RetentionPolicy& rule) {
    NoProgress progress;
    const auto made = plan_pruning(box.directory(), rule, Depth::bytes, progress);
    if (!made.ok()) return made.error().to_string();
    std::string text;
    for (const PlannedStep& planned : *made)
      text += format("{}{} {}", text.empty() ? "" : ", ", planned.step.step, to_text(planned.reason));
    return text;
  }
  void damage(std::int64_t step) {
    std::string bytes = *read_file(box.file(step, 0));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    ASSERT_TRUE(write_file(box.file(step, 0), bytes).ok());
  }
  // Changes the time at which a step was written.
  void date(std::int64_t step, double written) {
    const Path path = box.step(step) / kManifestName;
    StepManifest manifest = *read_manifest(box.step(step));
    manifest.written = written;
    ASSERT_TRUE(write_file(path, manifest_text(manifest)).ok());
  }

  static Sandbox* saved_;
  Sandbox box;
};
Sandbox* Pruning::saved_ = nullptr;

TEST_F(Pruning, keeps_the_newest) {
  EXPECT_EQ(plan({.keep_last = 2}), "6 newest, 5 newest, 4 removed, 3 removed, 2 removed, 1 removed");
  EXPECT_EQ(plan({.keep_last = 9}), "6 newest, 5 newest, 4 newest, 3 newest, 2 newest, 1 newest");
}

TEST_F(Pruning, a_damaged_step_does_not_count_and_is_not_removed_before_older_ones) {
  damage(6);
  damage(2);
  EXPECT_EQ(plan({.keep_last = 1}),
            "6 invalid, but newer than kept steps, 5 newest, 4 removed, 3 removed, 2 removed, 1 removed");
}

TEST_F(Pruning, nothing_is_removed_if_no_step_is_valid) {
  for (const int step : {1, 2, 3, 4, 5, 6}) damage(step);
  EXPECT_EQ(plan({.keep_last = 1}),
            "6 invalid, but newer than kept steps, 5 invalid, but newer than kept steps, 4 invalid, but "
            "newer than kept steps, 3 invalid, but newer than kept steps, "
            "2 invalid, but newer than kept steps, 1 invalid, but newer than kept steps");
}

TEST_F(Pruning, keeps_the_first_valid_step_of_each_interval) {
  const double hour = 3600;
  for (int step = 1; step <= 6; ++step)
    date(step, 1000 * hour + 0.4 * hour * (step - 1));  // 0, 0.4, 0.8, 1.2, 1.6, 2
  EXPECT_EQ(plan({.keep_last = 1, .keep_every = std::chrono::hours(1)}),
            "6 newest, 5 removed, 4 first of its interval, 3 removed, 2 removed, 1 first of its interval");
  damage(1);
  damage(4);
  EXPECT_EQ(plan({.keep_last = 1, .keep_every = std::chrono::hours(1)}),
            "6 newest, 5 first of its interval, 4 removed, 3 removed, 2 first of its interval, 1 removed");
}

TEST_F(Pruning, keeps_the_best_by_a_metric) {
  // The sandbox's lr is 0.1 of the step, so step 1 has the lowest; a loss with the same numbers.
  EXPECT_EQ(plan({.keep_last = 1, .keep_best = 2, .metric = "lr"}),
            "6 newest, 5 best, 4 removed, 3 removed, 2 removed, 1 removed");
  for (int step = 1; step <= 5; ++step) {
    StepManifest manifest = *read_manifest(box.step(step));
    manifest.state.set("val_loss", step == 4 ? std::nan("") : 0.5 * (step - 3) * (step - 3));
    ASSERT_TRUE(write_file(box.step(step) / kManifestName, manifest_text(manifest)).ok());
  }
  EXPECT_EQ(plan({.keep_last = 1, .keep_best = 1, .metric = "val_loss"}),
            "6 newest, 5 removed, 4 removed, 3 best, 2 removed, 1 removed");
  EXPECT_EQ(plan({.keep_last = 1, .keep_best = 2, .metric = "val_loss"}),
            "6 newest, 5 removed, 4 removed, 3 best, 2 best, 1 removed");
  damage(3);
  EXPECT_EQ(plan({.keep_last = 1, .keep_best = 1, .metric = "val_loss"}),
            "6 newest, 5 removed, 4 removed, 3 removed, 2 best, 1 removed");
  EXPECT_EQ(plan({.keep_last = 1, .keep_best = 3, .metric = "nosuch"}),
            "6 newest, 5 removed, 4 removed, 3 removed, 2 removed, 1 removed");
}

TEST(Retention, lower_is_better_for_losses_and_errors) {
  for (const char* name : {"val_loss", "Loss", "top1_error", "perplexity"})
    EXPECT_TRUE(is_lower_better(name)) << name;
  for (const char* name : {"val_top1", "accuracy", "auc"}) EXPECT_FALSE(is_lower_better(name)) << name;
}

TEST_F(Pruning, a_step_of_a_newer_stoker_does_not_count_as_valid) {
  std::string text = *read_file(box.step(6) / kManifestName);
  const std::size_t version = text.find("\"version\": 1");
  ASSERT_NE(version, std::string::npos);
  text[version + 11] = '9';
  const std::size_t digits = text.find("\"crc32c\": \"") + 11;
  text.replace(digits, 8, "00000000");
  text.replace(digits, 8, format("{:08x}", crc32c(std::as_bytes(std::span(text)))));
  ASSERT_TRUE(write_file(box.step(6) / kManifestName, text).ok());
  EXPECT_EQ(plan({.keep_last = 1}),
            "6 invalid, but newer than kept steps, 5 newest, 4 removed, 3 removed, 2 removed, 1 removed");
}

// Only a full read, which a save does not wait for, detects the damage in step 6.
TEST_F(Pruning, after_a_save_counts_from_the_saved_step_downwards) {
  damage(6);
  const auto removed = prune_steps(box.directory(), {.keep_last = 2}, Step{4}, {});
  ASSERT_TRUE(removed.ok()) << removed.status().to_string();
  EXPECT_EQ(*removed, (std::vector<Path>{box.step(2), box.step(1)}));
  EXPECT_EQ(box.list(), "3 valid, 4 valid, 5 valid, 6 valid");
}

TEST_F(Pruning, after_a_save_newer_steps_are_not_among_the_best) {
  damage(6);
  const RetentionPolicy best{.keep_last = 1, .keep_best = 2, .metric = "lr"};  // higher is better
  ASSERT_TRUE(prune_steps(box.directory(), best, Step{5}, box.step(1)).ok());
  EXPECT_EQ(box.list(), "1 valid, 4 valid, 5 valid, 6 valid");
}

TEST_F(Pruning, stops_on_request) {
  class Stop final : public Progress {
   public:
    void report(const ProgressState&) override {}
    bool stop_requested() const override { return true; }
  } stop;
  EXPECT_EQ(plan_pruning(box.directory(), {}, Depth::bytes, stop).status().code(), Code::cancelled);
}

TEST_F(Pruning, an_empty_directory_has_no_plan) {
  NoProgress progress;
  EXPECT_TRUE(plan_pruning(box.directory() / "none", {}, Depth::bytes, progress)->empty());
}

}  // namespace
}  // namespace stoker::checkpoint
