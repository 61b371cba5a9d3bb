#include "checkpoint/diff/step_diff.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

// A step of a small model with chosen values, saved by `world` ranks.
struct SmallStep {
  std::vector<float> weight = {3, 4, 0, 0, 0, 0};
  std::vector<float> mean = {1, 3};
  std::vector<float> variance = {2, 2};
  std::vector<std::int64_t> seen = {7};
  Shape shape = {3, 2};
  bool has_seen = true;
  StateValues state;

  void save(const Sandbox& box, std::int64_t step, int world) const {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < world; ++rank) {
      ranks.emplace_back([&, rank] {
        auto saver = Saver::create(box.options(rank, world));
        ASSERT_TRUE(saver.ok()) << saver.status().to_string();
        StepContents contents;
        contents.step = Step{step};
        contents.parameters = {{"bn.running_mean", DType::f32, {2}, std::as_bytes(std::span(mean))},
                               {"bn.running_var", DType::f32, {2}, std::as_bytes(std::span(variance))},
                               {"fc.weight", DType::f32, shape, std::as_bytes(std::span(weight))}};
        if (has_seen) contents.parameters.push_back({"seen", DType::i64, {}, std::as_bytes(std::span(seen))});
        contents.optimizer = {{"state.fc.weight.step", DType::i64, {}, std::as_bytes(std::span(seen))}};
        contents.state = state;
        ASSERT_TRUE((*saver)->save(contents).ok());
        ASSERT_TRUE((*saver)->finish(Deadline::after(60s)).ok());
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
};

class DiffSteps : public testing::Test {
 protected:
  StepDiff diff(const SmallStep& first, const SmallStep& second, StepDiffOptions options = {}) {
    first.save(box, 1, 1);
    second.save(box, 2, 2);
    NoProgress progress;
    auto made = diff_steps(box.step(1), box.step(2), options, progress);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(*made) : StepDiff{};
  }
  static const TensorDiff& of(const StepDiff& diff, std::string_view name) {
    for (const TensorDiff& tensor : diff.tensors)
      if (tensor.name == name) return tensor;
    static const TensorDiff none;
    ADD_FAILURE() << "no tensor " << name;
    return none;
  }

  Sandbox box;
};

TEST_F(DiffSteps, the_world_size_of_the_save_makes_no_difference) {
  box.save_well(1, {1});
  ToyModel model(100);
  const Sandbox other;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      auto saver = Saver::create(other.options(rank, 3));
      ASSERT_TRUE((*saver)->save(model.contents(Step{1})).ok());
      ASSERT_TRUE((*saver)->finish(Deadline::after(60s)).ok());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  NoProgress progress;
  const auto made = diff_steps(box.step(1), other.step(1), {.with_optimizer = true}, progress);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(made->tensors.size(), 11u);
  EXPECT_EQ(made->count(TensorChange::same), 11u);
  EXPECT_TRUE(made->is_same());
}

TEST_F(DiffSteps, norms_and_distance_of_a_changed_tensor) {
  SmallStep second;
  second.weight = {3, 4, 0, 0, 0, -1};
  const StepDiff found = diff({}, second);
  EXPECT_FALSE(found.is_same());
  EXPECT_EQ(found.tensors.size(), 4u);
  EXPECT_EQ(found.count(TensorChange::same), 3u);
  const TensorDiff& weight = of(found, "fc.weight");
  EXPECT_EQ(weight.change, TensorChange::changed);
  EXPECT_EQ(weight.first_norm, 5);
  EXPECT_DOUBLE_EQ(weight.second_norm, std::sqrt(26.0));
  EXPECT_EQ(weight.distance, 1);
  EXPECT_EQ(weight.largest, 1);
  EXPECT_DOUBLE_EQ(weight.relative(), 0.2);
}

TEST_F(DiffSteps, non_finite_elements_are_counted_and_excluded_from_norms) {
  SmallStep second;
  second.weight = {3, std::numeric_limits<float>::quiet_NaN(), 1, 0,
                   0, std::numeric_limits<float>::infinity()};
  const TensorDiff weight = of(diff({}, second), "fc.weight");
  EXPECT_EQ(weight.not_finite, 2u);
  EXPECT_EQ(weight.first_norm, 3);
  EXPECT_EQ(weight.distance, 1);
}

TEST_F(DiffSteps, a_tensor_that_was_zero_has_no_relative_change) {
  SmallStep first;
  first.weight.assign(6, 0);
  EXPECT_TRUE(std::isinf(of(diff(first, {}), "fc.weight").relative()));
}

TEST_F(DiffSteps, different_shapes_and_missing_tensors_are_reported) {
  SmallStep second;
  second.shape = {6};
  second.has_seen = false;
  const StepDiff found = diff({}, second);
  EXPECT_EQ(of(found, "fc.weight").change, TensorChange::different_form);
  EXPECT_EQ(of(found, "fc.weight").second.shape, (Shape{6}));
  EXPECT_EQ(of(found, "seen").change, TensorChange::only_in_first);
}

TEST_F(DiffSteps, a_tensor_only_in_the_second) {
  SmallStep first;
  first.has_seen = false;
  EXPECT_EQ(of(diff(first, {}), "seen").change, TensorChange::only_in_second);
}

TEST_F(DiffSteps, the_optimizer_is_compared_on_request) {
  SmallStep second;
  second.seen = {9};
  const TensorDiff step = of(diff({}, second, {.with_optimizer = true}), "state.fc.weight.step");
  EXPECT_EQ(step.part, StepPart::optimizer);
  EXPECT_EQ(step.largest, 2);
}

TEST_F(DiffSteps, batch_norms_and_state_are_compared) {
  SmallStep first;
  first.state.set("epoch", std::int64_t{1});
  first.state.set("gone", true);
  SmallStep second;
  second.state.set("epoch", std::int64_t{2});
  second.state.set("new", std::string("text"));
  second.mean = {2, 4};
  second.variance = {1, 2};
  const StepDiff found = diff(first, second);
  ASSERT_EQ(found.batch_norms.size(), 1u);
  EXPECT_EQ(found.batch_norms[0].layer, "bn");
  EXPECT_EQ(found.batch_norms[0].first_mean, 2);
  EXPECT_EQ(found.batch_norms[0].second_mean, 3);
  EXPECT_EQ(found.batch_norms[0].second_variance, 1.5);
  std::vector<std::string> values;
  for (const ValueDiff& value : found.state)
    values.push_back(format("{}|{}|{}", value.name, value.first, value.second));
  EXPECT_THAT(values, testing::UnorderedElementsAre("epoch|1|2", "gone|true|", "new||\"text\""));
}

TEST_F(DiffSteps, damaged_and_missing_steps_are_errors) {
  SmallStep{}.save(box, 1, 1);
  NoProgress progress;
  EXPECT_EQ(diff_steps(box.step(1), box.step(5), {}, progress).error().to_string(),
            box.step(5).string() + ": no such checkpoint");
  std::string bytes = *read_file(box.file(1, 0));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file(box.file(1, 0), bytes).ok());
  const auto made = diff_steps(box.step(1), box.step(1), {}, progress);
  EXPECT_EQ(made.status().code(), Code::corrupt);
  EXPECT_THAT(std::string(made.status().message()), testing::HasSubstr("damaged between bytes"));
}

}  // namespace
}  // namespace stoker::checkpoint
