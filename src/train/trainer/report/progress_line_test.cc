#include "train/trainer/report/progress_line.h"

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

TEST(ProgressLine, contains_position_loss_and_speed) {
  const ProgressStats facts{.epoch = 1,
                            .epochs = 90,
                            .step = 390,
                            .steps = 391,
                            .world_size = 2,
                            .seconds_left = 7871,
                            .totals = {.samples = 1280,
                                       .loss_sum = 1280 * 6.412,
                                       .top1 = 40,
                                       .seconds = 2.126,
                                       .data_s = 0.0085,
                                       .communication_s = 0.234}};
  EXPECT_EQ(progress_line(facts),
            "epoch 1/90   step 390/391   loss 6.41   top-1 3.1 %   1 204 img/s   data 0.4 %   comm 11 %   "
            "ETA 2 h 11 min");
}

TEST(ProgressLine, of_the_last_step_has_no_time_left) {
  const ProgressStats facts{.epoch = 2,
                            .epochs = 2,
                            .step = 4,
                            .steps = 4,
                            .totals = {.samples = 10, .loss_sum = 0.123, .top1 = 10, .seconds = 1}};
  EXPECT_EQ(progress_line(facts),
            "epoch 2/2   step 4/4   loss 0.012   top-1 100 %   10 img/s   data 0.0 %   comm 0.0 %");
}

TEST(ProgressLine, of_an_epoch_without_validation_does_not_mention_it) {
  EXPECT_EQ(epoch_line({.epoch = 2, .epochs = 3, .seconds = 12.4, .train_loss = 1.5, .train_top1 = 0.5}),
            "epoch 2/3   12 s   loss 1.50   top-1 50 %");
}

TEST(ProgressLine, of_an_epoch_with_validation) {
  EXPECT_EQ(epoch_line({.epoch = 3,
                        .epochs = 3,
                        .seconds = 12.4,
                        .train_loss = 1.5,
                        .train_top1 = 0.5,
                        .validated = true,
                        .val_loss = 1.25,
                        .val_top1 = 0.048,
                        .val_top5 = 0.137}),
            "epoch 3/3   12 s   loss 1.50   top-1 50 %   validation: loss 1.25   top-1 4.8 %   top-5 14 %");
}

TEST(ProgressLine, names_the_unit_of_a_sample) {
  EXPECT_NE(progress_line({.unit = "rows", .totals = {.samples = 8, .seconds = 2}}).find("   4 rows/s   "),
            std::string::npos);
}

TEST(GpuMemoryLine, is_read_back_from_a_trainings_output) {
  EXPECT_EQ(gpu_memory_line(std::uint64_t{49} << 28), "GPU memory: 12.250 GiB at most");
  EXPECT_EQ(gpu_memory_in("epoch 1/1\n" + gpu_memory_line(std::uint64_t{49} << 28) + "\n"),
            std::uint64_t{49} << 28);
  EXPECT_EQ(gpu_memory_in("epoch 1/1\n"), 0u);
  EXPECT_EQ(gpu_memory_in("GPU memory: much"), 0u);
  EXPECT_EQ(gpu_memory_in("GPU memory: -3 GiB"), 0u);
}

}  // namespace
}  // namespace stoker::train
