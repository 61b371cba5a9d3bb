#include "stoker/metrics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/comm/test_ranks.h"

namespace stoker::train {
namespace {

using testing::ElementsAre;

TEST(Metrics, means_are_weighted_and_shares_are_parts_of_the_whole) {
  Metrics metrics;
  metrics.add_mean("loss", 2, 3);
  metrics.add_mean("loss", 6, 1);
  metrics.add_ratio("top1", 3, 4);
  metrics.add_ratio("top1", 0, 4);
  EXPECT_EQ(metrics.value("loss"), 3);
  EXPECT_EQ(metrics.value("top1"), 0.375);
  EXPECT_TRUE(std::isnan(metrics.value("other")));
  metrics.reset();
  EXPECT_TRUE(std::isnan(metrics.value("loss")));
}

TEST(Metrics, counts_add_up_in_bins_and_matrices) {
  Metrics metrics;
  for (const double value : {-5.0, 0.0, 0.99, 1.0, 9.0}) {
    EXPECT_TRUE(metrics.add_to_histogram("gradient", value, 0, 2, 2).ok());
  }
  EXPECT_THAT(metrics.counts("gradient"), ElementsAre(3, 2));
  EXPECT_TRUE(metrics.add_to_confusion("classes", 0, 1, 2).ok());
  EXPECT_TRUE(metrics.add_to_confusion("classes", 0, 1, 2).ok());
  EXPECT_THAT(metrics.counts("classes"), ElementsAre(0, 2, 0, 0));
}

TEST(Metrics, wrong_sizes_and_classes_are_errors) {
  Metrics metrics;
  const double counts[] = {1, 2};
  EXPECT_TRUE(metrics.add_counts("bins", counts).ok());
  EXPECT_EQ(metrics.add_counts("bins", std::span(counts, 1)).message(),
            "metric 'bins': 1 counts do not match its size");
  EXPECT_EQ(metrics.add_to_confusion("classes", 0, 7, 3).message(),
            "metric 'classes': prediction 7 for class 0 is out of range (of 3 classes)");
  EXPECT_EQ(metrics.add_to_confusion("bins", 0, 0, 3).message(),
            "metric 'bins': is not a matrix of 3 classes");
  EXPECT_EQ(metrics.add_to_histogram("bins", 0, 0, 1, 5).message(),
            "metric 'bins': is not a histogram of 5 bins");
  EXPECT_EQ(metrics.add_to_histogram("new", std::nan(""), 0, 1, 5).message(),
            "metric 'new': the value is not a number");
}

TEST(Metrics, ranks_with_different_names_do_not_wait_for_each_other) {
  const auto statuses = on_ranks(3, [](ProcessGroup& group) -> Status {
    const int rank = group.rank().value;
    Metrics metrics;
    metrics.add_mean("loss", rank, rank + 1);
    if (rank == 1) metrics.add_mean("head 2", 5);
    if (rank != 0) STOKER_RETURN_IF_ERROR(metrics.add_to_histogram("bins", rank, 0, 3, 3));
    for (int round = 0; round < 2; ++round) {
      STOKER_ASSIGN_OR_RETURN(all, metrics.all_reduce(group));
      if (all.metrics.value("loss") != (0.0 * 1 + 1.0 * 2 + 2.0 * 3) / 6) return internal("loss");
      if (metrics.value("loss") != rank) return internal("the rank's own loss");
      if (all.metrics.value("head 2") != 5) return internal("head 2");
      if (all.metrics.counts("bins") != std::vector<double>{0, 1, 1}) return internal("bins");
      if (all.partial != std::vector<std::string>{"'bins' only on ranks 1, 2", "'head 2' only on rank 1"}) {
        return internal("{}", join(all.partial, "; "));
      }
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(Metrics, counts_of_two_sizes_fail_on_every_rank) {
  const auto statuses = on_ranks(2, [](ProcessGroup& group) -> Status {
    Metrics metrics;
    STOKER_RETURN_IF_ERROR(metrics.add_to_histogram("x", 1, 0, 3, 3 + group.rank().value));
    return metrics.all_reduce(group).status();
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.message(), "metric 'x': 4 counts on rank 1, 3 on an earlier rank");
  }
}

}  // namespace
}  // namespace stoker::train
