#include "diagnose/use/usage.h"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Curve = std::function<double(int second)>;

// Samples of a node, one per second for five minutes by default.
NodeUsage use_of(const std::vector<std::pair<std::string, Curve>>& columns, int seconds = 300) {
  NodeUsage use{.node = 0, .file = "system-0000.csv", .samples = {}, .steps = {}, .asked = {}};
  use.samples.columns = {"time"};
  use.samples.values.resize(columns.size() + 1);
  for (const auto& [name, curve] : columns) use.samples.columns.push_back(name);
  for (int second = 0; second < seconds; ++second) {
    use.samples.values[0].push_back(1000 + second);
    for (std::size_t c = 0; c < columns.size(); ++c)
      use.samples.values[c + 1].push_back(second == 0 ? std::nan("") : columns[c].second(second));
  }
  return use;
}

std::vector<std::string> texts(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& each : findings) all.push_back(each.rule + ": " + each.what.english());
  return all;
}

Curve always(double value) {
  return [value](int) { return value; };
}

TEST(Use, gpus_that_never_work_are_counted) {
  NodeUsage use = use_of({{"gpu0.busy_percent", always(90)},
                          {"gpu1.busy_percent", always(0)},
                          {"gpu2.busy_percent", always(88)},
                          {"gpu3.busy_percent", always(1)}});
  use.asked.gpus_per_rank = 1;
  use.asked.ranks_per_node = 4;
  const auto found = node_usage_findings(use);
  EXPECT_THAT(texts(found), ElementsAre("gpus-unused: 2 of 4 GPUs of node 0 were never used"));
  EXPECT_EQ(found[0].evidence.at(0).text, "GPU 1, 3: at most 1 % busy");
  // The remaining GPUs of the node belong to other jobs.
  use.asked.ranks_per_node = 2;
  EXPECT_THAT(node_usage_findings(use), IsEmpty());
  use.asked.gpus_per_rank = 0;
  EXPECT_THAT(node_usage_findings(use), IsEmpty());
}

TEST(Use, a_gpu_that_is_too_hot_is_reported) {
  const Curve hot = [](int second) { return second % 4 == 0 ? 0x24 : 0; };
  const auto found =
      node_usage_findings(use_of({{"gpu0.throttle_reasons", always(0)}, {"gpu1.throttle_reasons", hot}}));
  EXPECT_THAT(texts(found),
              ElementsAre("gpu-throttled: GPU 1 of node 0 runs below its clock 25 % of the time: it "
                          "is too hot, or its power supply is too weak"));
}

TEST(Use, a_gpu_at_its_power_limit_is_normal) {
  EXPECT_THAT(node_usage_findings(use_of({{"gpu0.throttle_reasons", always(0x4)}})), IsEmpty());
}

TEST(Use, a_gpu_that_waits_repeatedly_is_reported) {
  const auto swinging = [](int second) { return second / 10 % 2 == 0 ? 20.0 : 95.0; };
  EXPECT_THAT(
      texts(node_usage_findings(use_of({{"gpu0.busy_percent", swinging}}))),
      ElementsAre("gpu-swings: GPU 0 of node 0 alternates between 20 % and 95 %: it waits repeatedly"));
  // One validation or a slow start is no alternation; neither is half load.
  EXPECT_THAT(
      node_usage_findings(use_of({{"gpu0.busy_percent", [](int s) { return s < 100 ? 5.0 : 95.0; }}})),
      IsEmpty());
  EXPECT_THAT(node_usage_findings(use_of({{"gpu0.busy_percent", always(60)}})), IsEmpty());
  EXPECT_THAT(node_usage_findings(use_of({{"gpu0.busy_percent", swinging}}, 50)), IsEmpty());
}

TEST(Use, requested_but_idle_cpus_are_reported) {
  NodeUsage use = use_of({{"rank0.cpu_cores", always(1.3)}, {"rank1.cpu_cores", always(1.1)}});
  use.asked.cpus_per_rank = 8;
  const auto found = node_usage_findings(use);
  EXPECT_THAT(texts(found), ElementsAre("cpus-idle: ranks of node 0 use 1.3 of their 8 CPUs"));
  EXPECT_EQ(found[0].level, Level::advice);
  EXPECT_THAT(found[0].cure.english(), HasSubstr("cpus_per_rank: 2}"));
  use.asked.cpus_per_rank = 2;
  EXPECT_THAT(node_usage_findings(use), IsEmpty());
  // Short bursts are normal usage.
  NodeUsage bursts = use_of({{"rank0.cpu_cores", [](int s) { return s % 10 == 0 ? 8.0 : 1.0; }}});
  bursts.asked.cpus_per_rank = 8;
  EXPECT_THAT(node_usage_findings(bursts), IsEmpty());
}

TEST(Use, growing_memory_is_reported_with_the_time_until_it_is_full) {
  const double gigabyte = 1e9;
  // An exiting process frees its memory.
  const Curve leak = [&](int second) { return second > 297 ? 1e6 : 2 * gigabyte + second * 10e6; };
  NodeUsage use = use_of({{"rank0.rss_bytes", leak},
                          {"host_memory_bytes", [&](int s) { return 4 * gigabyte + s * 10e6; }},
                          {"host_memory_total_bytes", always(16 * gigabyte)}});
  EXPECT_THAT(texts(node_usage_findings(use)),
              ElementsAre("memory-grows: memory of rank 0 grows by 593 MB a minute, from 2.60 GB to 4.97 GB, "
                          "memory full in 15 min 00 s"));
  use.steps.columns = {"time"};
  use.steps.values = {{1000, 1002, 1004}};
  EXPECT_THAT(texts(node_usage_findings(use)).at(0), HasSubstr("grows by 19.8 MB a step"));
  // Caches that fill up and alternating usage are no growth.
  EXPECT_THAT(node_usage_findings(use_of(
                  {{"rank0.rss_bytes", [&](int s) { return (2 + std::min(1.0, s / 150.0)) * gigabyte; }}})),
              IsEmpty());
  EXPECT_THAT(
      node_usage_findings(use_of({{"rank0.rss_bytes", [&](int s) { return (2 + s / 10 % 5) * gigabyte; }}})),
      IsEmpty());
  EXPECT_THAT(
      node_usage_findings(use_of({{"rank0.rss_bytes", [&](int s) { return 2 * gigabyte + s * 1e5; }}})),
      IsEmpty());
}

TEST(Use, waiting_for_data_is_reported_by_its_share) {
  record::MetricTable steps;
  steps.columns = {"data_s", "step_s"};
  steps.values = {std::vector<double>(100, 0.04), std::vector<double>(100, 0.1)};
  const auto found = step_findings("metrics-0000.csv", steps);
  EXPECT_THAT(texts(found), ElementsAre("data-wait: 40 % of a step waits for data"));
  EXPECT_EQ(found[0].evidence.at(0).where, "metrics-0000.csv");
  steps.values[0].assign(100, 0.01);
  EXPECT_THAT(step_findings("", steps), IsEmpty());
  EXPECT_THAT(step_findings("", {}), IsEmpty());
}

TEST(Use, communication_outside_the_backward_pass_is_reported_by_its_share) {
  record::MetricTable steps;
  steps.columns = {"communication_s", "step_s"};
  steps.values = {std::vector<double>(100, 0.07), std::vector<double>(100, 0.1)};
  EXPECT_THAT(texts(step_findings("metrics-0000.csv", steps)),
              ElementsAre("communication-wait: 70 % of a step is communication between the ranks"));
  steps.values[0].assign(100, 0.03);
  EXPECT_THAT(step_findings("", steps), IsEmpty());
}

TEST(Use, a_logged_metric_that_stays_nan_is_reported_with_its_step) {
  TempDirectory box;
  const record::Attempt attempt(box.path(), 1);
  ASSERT_TRUE(write_file(box / "points-0000.csv",
                         ",1,0.5,loss\n,2,nan,loss\n,3,nan,loss\n,1,nan,val\n"
                         ",1,nan,lr\n,2,1,lr\n")
                  .ok());
  const auto found = usage_findings(attempt);
  EXPECT_THAT(texts(found), ElementsAre("metric-not-finite: loss is NaN from step 2"));
  EXPECT_EQ(found[0].evidence.at(0).where, "points-0000.csv");
}

TEST(Use, a_finding_on_several_nodes_is_reported_once) {
  TempDirectory box;
  const auto run = record::RunFolder::create(box.path(), {.name = "x"}, "name: x\nrun: x\n");
  ASSERT_TRUE(run.ok());
  const auto attempt = run->start_attempt("name: x\nrun: x\nresources: {nodes: 2, cpus_per_rank: 4}\n");
  ASSERT_TRUE(attempt.ok());
  EXPECT_THAT(usage_findings(*attempt), IsEmpty());
  for (const int node : {0, 1}) {
    std::string csv = format("time,rank{}.cpu_cores\n", node);
    for (int i = 0; i < 100; ++i) csv += format("{},0.5\n", 1000 + i);
    ASSERT_TRUE(write_file(attempt->system(node), csv).ok());
  }
  EXPECT_THAT(texts(usage_findings(*attempt)),
              ElementsAre("cpus-idle: ranks of node 0 use 0.5 of their 4 CPUs"));
}

}  // namespace
}  // namespace stoker::diagnose
