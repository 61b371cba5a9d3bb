#include "launch/start/links.h"

#include <gmock/gmock.h>

#include "launch/sandbox.h"
#include "record/metrics.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

job::Job chain(Duration link) {
  job::Job job;
  job.chain.until = job::Until::done;
  job.chain.time_per_link = link;
  job.checkpoint.before_end = 2min;
  return job;
}

TEST(Links, no_chain_has_no_links) { EXPECT_EQ(count_links(job::Job(), std::nullopt).count, 0); }

TEST(Links, explicit_number_takes_precedence) {
  job::Job job = chain(20h);
  job.chain.links = 7;
  job.resources.time = 60h;
  EXPECT_EQ(count_links(job, EpochEstimate{100, 10, "r"}).count, 7);
}

TEST(Links, total_time_is_divided_by_useful_time_per_link) {
  job::Job job = chain(20h);
  job.resources.time = 60h;
  EXPECT_EQ(count_links(job, std::nullopt).count, 4);  // 3 links of 19 h 58 min are not quite 60 h
  job.resources.time = 59h;
  EXPECT_EQ(count_links(job, std::nullopt).count, 3);
  EXPECT_EQ(count_links(job, std::nullopt).why, "resources.time: 2d11h");
}

TEST(Links, measured_links_are_limited_by_total_time) {
  job::Job job = chain(10h);
  const EpochEstimate estimate{3600, 88, "r1"};  // 88 hours
  const Links links = count_links(job, estimate);
  EXPECT_EQ(links.count, 11);
  EXPECT_EQ(links.why, "88 epochs of 1 h 00 min as in run r1, plus one spare");
  job.resources.time = 40h;
  EXPECT_EQ(count_links(job, estimate).count, 5);
  EXPECT_EQ(count_links(job, EpochEstimate{3600, 0, "r1"}).count, 1);
}

TEST(Links, unknown_duration_uses_ten_links_with_a_note) {
  const Links links = count_links(chain(20h), std::nullopt);
  EXPECT_EQ(links.count, 10);
  EXPECT_EQ(links.why, "duration unknown: set resources.time or chain.links");
}

TEST(Links, epochs_are_measured_in_earlier_runs_of_the_same_job) {
  TempDirectory box;
  const auto load = [&](const std::string& more) {
    STOKER_CHECK(
        write_file(box / "job.yaml",
                   "name: main\ntrain: {model: resnet18, epochs: 90, batch: 32, optimizer: {lr: 0.1}}\n"
                   "data: {train: {source: d}}\n" +
                       more)
            .ok());
    return *job::load(box / "job.yaml", {.current_directory = box.path()});
  };
  const job::Job job = load("chain: {until: done, time_per_link: 1h}\n");
  EXPECT_FALSE(estimate_epochs(job, std::nullopt).has_value());
  record::RunDescription what;
  what.name = "main";
  what.world_size = 1;
  const auto run = record::RunFolder::create(box / "runs", what, to_yaml(load("")));
  ASSERT_TRUE(run.ok());
  const auto attempt = run->start_attempt("");
  auto epochs = record::MetricWriter::create(attempt->epochs(), record::kEpochColumns);
  ASSERT_TRUE(epochs.ok());
  ASSERT_TRUE(epochs->append(std::vector<double>{0, 9, 1, 0, 0, 0, 0, 100, 1, 0}).ok());
  ASSERT_TRUE(epochs->append(std::vector<double>{1, 9, 1, 0, 0, 0, 0, 140, 1, 0}).ok());
  const auto fresh = estimate_epochs(job, std::nullopt);
  ASSERT_TRUE(fresh.has_value());
  EXPECT_DOUBLE_EQ(fresh->epoch_seconds, 120);
  EXPECT_DOUBLE_EQ(fresh->epochs_left, 90);
  EXPECT_EQ(fresh->from, run->id());
  EXPECT_DOUBLE_EQ(estimate_epochs(job, *run)->epochs_left, 88);
  EXPECT_FALSE(
      estimate_epochs(load("chain: {until: done, time_per_link: 1h}\nresources: {nodes: 2}\n"), std::nullopt)
          .has_value());
}

}  // namespace
}  // namespace stoker::launch
