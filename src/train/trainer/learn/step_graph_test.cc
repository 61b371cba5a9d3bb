#include "train/trainer/learn/step_graph.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace stoker::train {
namespace {

const GraphSituation kAlone{.device = at::Device(at::kCUDA, 0)};

job::TrainOptions plain() {
  job::TrainOptions train;
  train.accumulate = 1;
  train.heads = 1;
  return train;
}

template <typename Change>
std::string obstacle(Change change) {
  job::TrainOptions train = plain();
  change(train);
  return capture_obstacle(train, kAlone);
}

TEST(StepGraph, every_obstacle_is_named_by_its_setting) {
  EXPECT_EQ(obstacle([](auto&) {}), "");
  EXPECT_EQ(obstacle([](auto& train) { train.cuda_graph = job::CudaGraphs::never; }),
            "train.cuda_graph is never");
  EXPECT_EQ(obstacle([](auto& train) { train.deterministic = true; }), "train.deterministic is true");
  EXPECT_EQ(obstacle([](auto& train) { train.accumulate = 4; }), "train.accumulate is 4");
  EXPECT_EQ(obstacle([](auto& train) { train.mixup = 0.2; }), "train.mixup chooses new shares in each step");
  EXPECT_EQ(obstacle([](auto& train) { train.heads = 2; }), "train.heads is 2: each step uses another one");
  EXPECT_EQ(capture_obstacle(plain(), {}), "train.device is the CPU");
  EXPECT_EQ(capture_obstacle(plain(), {kAlone.device, true, true}), "ranks share a GPU");
}

BatchTensors batch_of(std::int64_t samples) {
  return {at::zeros({samples, 3, 8, 8}), at::zeros({samples}, at::kLong)};
}

TEST(StepGraph, accepts_batches_of_the_first_size_after_the_warm_up) {
  for (const auto& [has_peers, warm_up] : {std::pair{false, 3}, std::pair{true, 11}}) {
    StepGraph graph(plain(), {kAlone.device, has_peers, false});
    for (int i = 0; i < warm_up; ++i) {
      EXPECT_FALSE(graph.accepts(batch_of(8))) << i;
      graph.count_eager(batch_of(8));
      graph.count_eager(batch_of(5));  // an epoch's last batch
    }
    EXPECT_TRUE(graph.accepts(batch_of(8)));
    EXPECT_FALSE(graph.accepts(batch_of(5)));
    graph.give_up();
    EXPECT_FALSE(graph.accepts(batch_of(8)));
  }
}

}  // namespace
}  // namespace stoker::train
