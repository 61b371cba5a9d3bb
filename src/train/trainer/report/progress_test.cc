#include "train/trainer/report/progress.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::train {
namespace {

class Listener final : public TrainerLog {
 public:
  void progress(std::string_view line) override { lines.emplace_back(line); }
  void info(std::string_view) override { FAIL(); }
  void warn(std::string_view) override { FAIL(); }

  std::vector<std::string> lines;
};

RankEnvironment rank(int number) {
  RankEnvironment environment;
  environment.rank = Rank{number};
  environment.world_size = WorldSize{2};
  return environment;
}

job::TrainOptions two_epochs_printed_every_two_steps() {
  job::TrainOptions train;
  train.epochs = 2;
  train.print_every = 2;
  return train;
}

StepRow step_of_a_second(std::int64_t epoch, std::int64_t step, double loss) {
  return {.epoch = epoch, .step = step, .samples = 8, .loss = loss, .top1 = 0.5, .step_s = 1};
}

TEST(ProgressReporter, reports_every_print_every_steps_and_at_epoch_end) {
  const job::TrainOptions train = two_epochs_printed_every_two_steps();
  Listener log;
  ProgressReporter progress(train, rank(0), "img", log);
  for (int step = 1; step <= 3; ++step) progress.step(step_of_a_second(0, step, step), step, 3);
  ASSERT_EQ(log.lines.size(), 2U);
  // Each line covers the steps since the last line; the ETA uses all steps.
  EXPECT_EQ(log.lines[0],
            "epoch 1/2   step 2/3   loss 1.50   top-1 50 %   16 img/s   data 0.0 %   comm 0.0 %   ETA 4.0 s");
  EXPECT_EQ(log.lines[1],
            "epoch 1/2   step 3/3   loss 3.00   top-1 50 %   16 img/s   data 0.0 %   comm 0.0 %   ETA 3.0 s");
}

TEST(ProgressReporter, ends_with_the_requested_steps) {
  job::TrainOptions train = two_epochs_printed_every_two_steps();
  train.steps = 5;
  Listener log;
  ProgressReporter progress(train, rank(0), "img", log);
  for (int step = 1; step <= 2; ++step) progress.step(step_of_a_second(0, step, 1), step, 3);
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_TRUE(log.lines[0].ends_with("ETA 3.0 s")) << log.lines[0];
}

TEST(ProgressReporter, other_ranks_are_summed_but_not_printed) {
  const job::TrainOptions train = two_epochs_printed_every_two_steps();
  Listener log;
  ProgressReporter progress(train, rank(1), "img", log);
  for (int step = 1; step <= 3; ++step) progress.step(step_of_a_second(0, step, 1), step, 3);
  EXPECT_TRUE(log.lines.empty());
  EXPECT_EQ(progress.attempt().steps, 3);
  EXPECT_EQ(progress.attempt().seconds, 3);
}

}  // namespace
}  // namespace stoker::train
