#include "observe/metrics/log_metrics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

LogMetrics reader(std::string_view regex = "") { return *LogMetrics::create(regex); }

TEST(LogMetricsTest, trainer_lines_use_the_step_of_the_progress_bar) {
  LogMetrics metrics = reader();
  EXPECT_FALSE(metrics.read("  0%|          | 0/300 [00:00<?, ?it/s]"));
  EXPECT_FALSE(metrics.read(" 33%|███▎      | 100/300 [00:10<00:20,  9.5it/s]"));
  const auto line = metrics.read("{'loss': 0.5, 'grad_norm': '1.25', 'learning_rate': 5e-05, 'epoch': 0.33}");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 100);
  EXPECT_THAT(line->values, ElementsAre(Pair("loss", 0.5), Pair("grad_norm", 1.25),
                                        Pair("learning_rate", 5e-05), Pair("epoch", 0.33)));
  EXPECT_FALSE(metrics.read(" 50%|█████     | 5/10 [00:01<00:01,  4.1it/s]")) << "the bar of an evaluation";
  EXPECT_EQ(metrics.read("{'eval_loss': nan, 'epoch': 0.33}")->step, 100);
}

TEST(LogMetricsTest, bars_of_downloads_and_evaluations_have_no_steps) {
  LogMetrics metrics = reader();
  EXPECT_FALSE(metrics.read("Map: 100%|██| 9000/9000 [00:01<00:00, 9.5 examples/s]"));
  EXPECT_FALSE(metrics.read("Loading checkpoint shards: 100%|██| 2/2 [00:01<00:00,  1.1it/s]"));
  EXPECT_FALSE(metrics.read(" 10%|█ | 30/300 [00:01<00:09,  9.5it/s]"));
  EXPECT_EQ(metrics.read("Validating:  50%|█ | 5/10 [00:01<00:01, 4.1it/s, val_loss=0.5]")->step, 30);
  EXPECT_EQ(metrics.read("{'loss': 0.5}")->step, 30);
}

TEST(LogMetricsTest, a_bar_for_each_epoch_continues_the_steps) {
  LogMetrics metrics = reader();
  EXPECT_EQ(metrics.read("train: 100%|██| 100/100 [00:01<00:00, 9it/s, loss=0.5]")->step, 100);
  EXPECT_FALSE(metrics.read("train:   0%|  | 0/100 [00:00<?, ?it/s]"));
  EXPECT_EQ(metrics.read("train:  10%|█ | 10/100 [00:01<00:09, 9it/s, loss=0.4]")->step, 110);
}

TEST(LogMetricsTest, without_a_bar_lines_are_counted) {
  LogMetrics metrics = reader();
  EXPECT_EQ(metrics.read("{'loss': 0.5}")->step, 1);
  EXPECT_EQ(metrics.read("{'loss': 0.4}")->step, 2);
}

TEST(LogMetricsTest, json_lines_have_their_step) {
  LogMetrics metrics = reader();
  const auto line =
      metrics.read(R"({"step": 20, "train": {"x": [1, 2]}, "loss": NaN, "name": "a, b", "ok": true})");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 20);
  EXPECT_EQ(line->values.size(), 1u);
  EXPECT_TRUE(std::isnan(line->values[0].second));
}

TEST(LogMetricsTest, other_json_lines_are_no_metrics) {
  LogMetrics metrics = reader();
  for (const std::string_view line :
       {R"({"level": "info", "port": 8080})", "{}", "{", "{'a'", "{'a':", "{'a': 1", "{'loss': 1} and more",
        "{'loss'; 1}", "{'loss': }", "{1: 2}", "{'loss': 'low'}"}) {
    EXPECT_FALSE(metrics.read(line)) << line;
  }
}

TEST(LogMetricsTest, bars_of_lightning_count_steps_over_epochs) {
  LogMetrics metrics = reader();
  const auto line = metrics.read(
      "Epoch 2:  45%|████▌     | 45/100 [00:01<00:01, 33.2it/s, v_num=0, train_loss=0.543, val acc=90.5%]");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 245);
  EXPECT_THAT(line->values, ElementsAre(Pair("train_loss", 0.543), Pair("val acc", 90.5)));
  EXPECT_EQ(metrics.read("Epoch 1/3: 10%|#| 10/100 [00:01<00:01, 3it/s, loss=1]")->step, 10);
}

TEST(LogMetricsTest, keras_lines_count_steps_over_epochs) {
  LogMetrics metrics = reader();
  EXPECT_FALSE(metrics.read("Epoch 3/10"));
  const auto line =
      metrics.read("\x1b[1m 45/100\x1b[0m \x1b[32m━━━━\x1b[0m 1s 12ms/step - accuracy: 0.5 - loss: 6.0e-01");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 245);
  EXPECT_THAT(line->values, ElementsAre(Pair("accuracy", 0.5), Pair("loss", 0.6)));
  const auto last =
      metrics.read("100/100 - 2s - 15ms/step - loss: 0.69 - val_loss: 0.7 - learning_rate: 0.01");
  EXPECT_EQ(last->step, 300);
  EXPECT_EQ(last->values.size(), 3u);
  EXPECT_FALSE(metrics.read("3/4 of the files are read"));
}

TEST(LogMetricsTest, named_groups_of_an_expression_are_metrics) {
  LogMetrics metrics = reader(R"(Step \[(?P<step>\d+)/\d+\], Loss: (?P<loss>[^,]+)(?:, Acc:(?P<acc>\S+))?)");
  const auto line = metrics.read("Epoch [1/5], Step [100/500], Loss: 0.25, Acc:0.5");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->step, 100);
  EXPECT_THAT(line->values, ElementsAre(Pair("acc", 0.5), Pair("loss", 0.25)));
  EXPECT_EQ(metrics.read("Step [200/500], Loss: inf")->values.size(), 1u);
  EXPECT_FALSE(metrics.read("{'loss': 1}"));
  LogMetrics greedy = reader(R"(loss (?P<loss>\S+))");
  EXPECT_EQ(greedy.read("(loss 0.5), step 3")->values[0].second, 0.5);
  EXPECT_FALSE(LogMetrics::create("(").ok());
}

TEST(LogMetricsTest, lines_end_at_carriage_returns_and_long_ones_are_dropped) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  const auto visit = [&](std::string_view line) { lines.emplace_back(line); };
  splitter.feed("a\rb\n\nc", visit);
  splitter.feed("d\b\b", visit);
  splitter.feed(std::string(100'000, 'x'), visit);
  splitter.feed("\ne\n", visit);
  EXPECT_THAT(lines, ElementsAre("a", "b", "cd", "e"));
}

}  // namespace
}  // namespace stoker::observe
