#include "observe/system_sampler.h"

#include <cmath>
#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "observe/fake_nvml.h"
#include "observe/node/node_tree.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(Proc, reads_process_usage_despite_a_hostile_name) {
  NodeTree node;
  node.proc("7/stat", "7 (a) S 1 (b\n) S 1 1 1 0 -1 0 0 0 0 0 100 10 20 30 20 0 4 0 99 0 5 0\n");
  node.io(7, 300, 200, 100);
  const auto use = read_process(node.roots().proc, 7);
  ASSERT_TRUE(use.has_value());
  EXPECT_DOUBLE_EQ(use->cpu_s, 160.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(use->rss_bytes, 5u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(use->asked_bytes, 300u);
  EXPECT_EQ(use->read_bytes, 200u);
  EXPECT_EQ(use->write_bytes, 100u);
  EXPECT_EQ(use->read_calls, 3u);
  EXPECT_EQ(use->write_calls, 2u);
}

TEST(Proc, damaged_or_absent_files_give_no_values) {
  NodeTree node;
  EXPECT_FALSE(read_process(node.roots().proc, 7).has_value());
  EXPECT_FALSE(read_host_memory(node.roots().proc).has_value());
  for (std::string_view content : {"", "7", "7 (x", "7 (x)", "7 (x) ", "7 (x) S 1 2 3"}) {
    node.proc("7/stat", content);
    EXPECT_FALSE(read_process(node.roots().proc, 7).has_value()) << content;
  }
}

TEST(Proc, tree_contains_descendants_even_with_a_cycle) {
  NodeTree node;
  node.process(10, 1, 0, 0);
  node.process(11, 10, 0, 0);
  node.process(12, 11, 0, 0);
  node.process(13, 1, 0, 0);
  node.proc("notes/stat", "x");
  EXPECT_THAT(tree_of(10, read_parents(node.roots().proc)), ElementsAre(10, 11, 12));
  EXPECT_THAT(tree_of(1, {{1, 2}, {2, 1}, {3, 3}}), UnorderedElementsAre(1, 2));
}

TEST(SystemSampler, rows_contain_rates_since_the_previous_row) {
  NodeTree node;
  TempDirectory box;
  const int ticks = static_cast<int>(::sysconf(_SC_CLK_TCK));
  node.host(0, 0);
  node.process(10, 1, 0, 1);
  node.io(10, 0, 0, 0);
  node.process(11, 10, 0, 2);
  auto sampler =
      SystemSampler::create(box / "system.csv", {{3, 10}}, {.roots = node.roots(), .wants_gpus = false});
  ASSERT_TRUE(sampler.ok());
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  node.host(3 * ticks, ticks);
  node.process(10, 1, ticks, 1);
  node.io(10, 6000, 4000, 2000);
  node.process(11, 10, 2 * ticks, 2);
  ASSERT_TRUE(sampler->sample(1002, 7).ok());
  const auto table = record::read_metrics(box / "system.csv");
  ASSERT_EQ(table->rows(), 2u);
  const auto second = [&](std::string_view name) { return table->column(name)[1]; };
  EXPECT_TRUE(std::isnan(table->column("rank3.cpu_cores")[0]));
  EXPECT_TRUE(std::isnan(table->column("host_cpu_percent")[0]));
  EXPECT_EQ(second("time"), 1002);
  EXPECT_EQ(second("host_cpu_percent"), 75);
  EXPECT_EQ(second("host_memory_bytes"), 600 * 1024);
  EXPECT_TRUE(std::isnan(second("cgroup_memory_bytes")));
  EXPECT_EQ(second("rank3.cpu_cores"), 1.5);
  EXPECT_EQ(second("rank3.rss_bytes"), 3.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(second("rank3.read_bytes_per_s"), 2000);
  EXPECT_EQ(second("rank3.write_bytes_per_s"), 1000);
  EXPECT_EQ(second("rank3.asked_bytes_per_s"), 3000);
  EXPECT_EQ(second("rank3.read_calls_per_s"), 30);
  EXPECT_EQ(second("ranks.cpu_cores"), 1.5);
  EXPECT_EQ(second("ranks.cpu_s"), 3);
}

TEST(SystemSampler, a_row_has_the_nodes_own_counters) {
  NodeTree node;
  TempDirectory box;
  const int ticks = static_cast<int>(::sysconf(_SC_CLK_TCK));
  node.host(0, 0);
  node.process(10, 1, 0, 1);
  node.proc("10/status", "Name:\tpython\nCpus_allowed_list:\t0\n");
  node.proc("net/dev", "  eth0: 100 0 0 0 0 0 0 0 50 0\n");
  node.sys("class/net/eth0/mtu", "1500");
  node.proc("fs/lustre/llite/x/stats", "snapshot_time 1\nread_bytes 1 samples [bytes] 1 1 1000\n");
  node.proc("diskstats", " 254 0 vda 1 1 2 1 1 1 4 1 0 1 1\n");
  node.sys("block/vda/size", "1");
  node.sys("cray/pm_counters/energy", "100 J\n");
  node.proc("self/cgroup", "0::/job_4\n");
  node.sys("fs/cgroup/job_4/memory.current", "4096\n");
  node.sys("fs/cgroup/job_4/memory.events", "oom_kill 0\n");
  node.sys("fs/cgroup/job_4/cpu.stat", "usage_usec 1000000\n");
  auto sampler =
      SystemSampler::create(box / "system.csv", {{0, 10}}, {.roots = node.roots(), .wants_gpus = false});
  ASSERT_TRUE(sampler.ok());
  EXPECT_EQ(sampler->sources().cpus, 1);
  EXPECT_THAT(sampler->sources().texts, ElementsAre("memory: cgroup v2 /job_4", "network: net.eth0",
                                                    "energy: node: pm_counters energy"));
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  node.host(ticks, 3 * ticks);
  node.proc("net/dev", "  eth0: 300 0 0 0 0 0 0 0 20 0\n");  // one counter has wrapped
  node.proc("fs/lustre/llite/x/stats",
            "snapshot_time 1\nread_bytes 1 samples [bytes] 1 1 5000\nopen 8 samples [regs]\n");
  node.proc("diskstats", " 254 0 vda 1 1 4 1 1 1 4 1 0 1 1\n");
  node.sys("cray/pm_counters/energy", "700 J\n");
  node.sys("fs/cgroup/job_4/memory.events", "oom_kill 1\n");
  node.sys("fs/cgroup/job_4/cpu.stat", "usage_usec 2500000\n");
  ASSERT_TRUE(sampler->sample(1002, 7).ok());
  const auto table = record::read_metrics(box / "system.csv");
  const auto second = [&](std::string_view name) { return table->column(name)[1]; };
  EXPECT_EQ(second("job_cpus"), 1);
  EXPECT_EQ(second("job_cpu_percent"), 25);
  EXPECT_EQ(second("cgroup_cpu_cores"), 0.75);
  EXPECT_EQ(second("cgroup_oom_kills"), 1);
  EXPECT_EQ(second("net.eth0.received_bytes_per_s"), 100);
  EXPECT_TRUE(std::isnan(second("net.eth0.sent_bytes_per_s")));
  EXPECT_EQ(second("shared.read_bytes_per_s"), 2000);
  EXPECT_EQ(second("shared.opens_per_s"), 4);
  EXPECT_EQ(second("local.read_bytes_per_s"), 512);
  EXPECT_EQ(second("energy.node_j"), 600);
  EXPECT_FALSE(table->has("energy.cpu_j"));
}

TEST(SystemSampler, a_child_found_late_counts_as_much_as_it_used_in_the_interval) {
  NodeTree node;
  TempDirectory box;
  const int ticks = static_cast<int>(::sysconf(_SC_CLK_TCK));
  node.host(0, 0);
  node.proc("uptime", "100.00 50.00\n");
  node.process(10, 1, 0, 1);
  auto sampler =
      SystemSampler::create(box / "system.csv", {{0, 10}}, {.roots = node.roots(), .wants_gpus = false});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(sampler->sample(1000 + i, 1e6 * i).ok());
  // Four seconds old, and busy since then. The tree adds 60 ticks to the user's.
  node.process(11, 10, 4 * ticks - 60, 1, 96 * ticks);
  ASSERT_TRUE(sampler->sample(1005, 4e6 + 1).ok());
  const auto table = record::read_metrics(box / "system.csv");
  EXPECT_EQ(table->column("rank0.cpu_cores")[5], 1);
  EXPECT_EQ(table->column("ranks.cpu_s")[5], 4);
}

TEST(SystemSampler, a_successor_continues_the_file_with_the_same_columns_only) {
  NodeTree node;
  TempDirectory box;
  const Path file = box / "system.csv";
  const SamplerOptions options{.roots = node.roots(), .wants_gpus = false};
  ASSERT_TRUE(SystemSampler::create(file, {{0, 10}, {1, 11}}, options)->sample(1000, 5).ok());
  ASSERT_TRUE(SystemSampler::create(file, {{1, 11}, {0, 10}}, options)->sample(1001, 6).ok());
  EXPECT_THAT(record::read_metrics(file)->column("time"), ElementsAre(1000, 1001));
  const auto other = SystemSampler::create(file, {{0, 10}}, options);
  EXPECT_EQ(other.status().message(), file.string() + ": has other columns");
}

TEST(SystemSampler, a_large_node_has_columns_of_its_first_ranks_and_the_sum_of_all) {
  NodeTree node;
  TempDirectory box;
  std::vector<RankProcess> ranks;
  for (int r = 0; r < 200; ++r) {
    node.process(1000 + r, 1, 0, 1);
    ranks.push_back({r, 1000 + r});
  }
  auto sampler =
      SystemSampler::create(box / "system.csv", ranks, {.roots = node.roots(), .wants_gpus = false});
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  const auto table = record::read_metrics(box / "system.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_TRUE(table->has("rank63.rss_bytes"));
  EXPECT_FALSE(table->has("rank64.rss_bytes"));
  EXPECT_EQ(table->column("ranks.rss_bytes")[0], 200.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
}

TEST(SystemSampler, hostile_files_of_a_process_give_no_nonsense_rate) {
  NodeTree node;
  TempDirectory box;
  node.process(10, 1, 0, 1);
  node.proc("10/io", "rchar: 1\nread_bytes: 5\nwrite_bytes: 5\nsyscr: 1\nsyscw: 1\n");
  auto sampler =
      SystemSampler::create(box / "system.csv", {{0, 10}}, {.roots = node.roots(), .wants_gpus = false});
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  node.proc("10/io",
            "rchar: 18446744073709551615\nread_bytes: -4\nwrite_bytes: 99999999999999999999\nsyscr: x\n");
  node.proc("10/stat", "10 (python) S 1 1 1 0 -1 0 0 0 0 0 18446744073709551615 0 0 0 20 0 4 0 9 0 1 0\n");
  ASSERT_TRUE(sampler->sample(1001, 6).ok());
  node.proc("10/io", "truncat");
  ASSERT_TRUE(sampler->sample(1002, 7).ok());
  const auto table = record::read_metrics(box / "system.csv");
  const auto value = [&](std::string_view name, std::size_t row) { return table->column(name)[row]; };
  EXPECT_TRUE(std::isnan(value("rank0.asked_bytes_per_s", 1)));
  EXPECT_EQ(value("rank0.read_bytes_per_s", 1), 0);
  EXPECT_EQ(value("rank0.write_bytes_per_s", 1), 0);
  EXPECT_TRUE(std::isnan(value("rank0.cpu_cores", 1)));
  EXPECT_EQ(value("ranks.cpu_s", 1), 0);
  EXPECT_TRUE(std::isnan(value("rank0.read_bytes_per_s", 2)));
}

TEST(SystemSampler, the_pause_grows_with_the_cost_of_a_sample) {
  using std::chrono::milliseconds;
  EXPECT_EQ(pause_after(milliseconds(1000), 0.004), milliseconds(1000));
  EXPECT_EQ(pause_after(milliseconds(1000), 0.008), milliseconds(2000));
  EXPECT_EQ(pause_after(milliseconds(10000), 0.008), milliseconds(10000));
  EXPECT_EQ(pause_after(milliseconds(100), 0.008), milliseconds(100));  // chosen by the user
}

TEST(SystemSampler, an_ended_rank_has_empty_cells) {
  NodeTree node;
  TempDirectory box;
  node.host(0, 0);
  auto sampler =
      SystemSampler::create(box / "system.csv", {{0, 10}}, {.roots = node.roots(), .wants_gpus = false});
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  EXPECT_TRUE(std::isnan(record::read_metrics(box / "system.csv")->column("rank0.rss_bytes")[0]));
}

TEST(SystemSampler, rows_contain_the_values_of_each_gpu) {
  const FakeNvml nvml("gpus 2\n1.throttle 36\n1.temperature -\n");
  NodeTree node;
  TempDirectory box;
  auto sampler =
      SystemSampler::create(box / "system.csv", {}, {.roots = node.roots(), .nvml = nvml.library()});
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  const auto table = record::read_metrics(box / "system.csv");
  EXPECT_EQ(table->column("gpu0.busy_percent")[0], 93);
  EXPECT_EQ(table->column("gpu0.memory_total_bytes")[0], 8000);
  EXPECT_EQ(table->column("gpu0.sm_clock_mhz")[0], 1980);
  EXPECT_EQ(table->column("gpu0.memory_clock_mhz")[0], 2619);
  EXPECT_EQ(table->column("gpu0.temperature_c")[0], 65);
  EXPECT_EQ(table->column("gpu1.throttle_reasons")[0], 36);
  EXPECT_EQ(table->column("gpu1.ecc_errors")[0], 0);
  EXPECT_TRUE(std::isnan(table->column("gpu1.temperature_c")[0]));
}

TEST(SystemSampler, energy_of_a_gpu_counts_from_the_first_sample) {
  const FakeNvml nvml("gpus 2\n0.energy 500\n1.energy -\n");
  NodeTree node;
  TempDirectory box;
  auto sampler =
      SystemSampler::create(box / "system.csv", {}, {.roots = node.roots(), .nvml = nvml.library()});
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  nvml.play("gpus 2\n0.energy 3000\n1.energy -\n");
  ASSERT_TRUE(sampler->sample(1001, 6).ok());
  const auto table = record::read_metrics(box / "system.csv");
  EXPECT_THAT(table->column("gpu0.energy_j"), ElementsAre(0, 2.5));
  EXPECT_TRUE(std::isnan(table->column("gpu1.energy_j")[1]));
}

TEST(SystemSampler, an_xid_error_just_before_the_end_is_found) {
  const FakeNvml nvml("");
  TempDirectory box;
  auto thread = SamplerThread::start(box / "system.csv", {{0, ::getpid()}},
                                     {.nvml = nvml.library(), .every = std::chrono::hours(1)});
  ASSERT_TRUE(thread.ok());
  ASSERT_EQ((*thread)->gpus().size(), 1u);
  nvml.play("xid.0 79\n");
  (*thread)->stop();
  const std::vector<GpuXid> xids = (*thread)->take_xids();
  ASSERT_EQ(xids.size(), 1u);
  EXPECT_EQ(xids[0].code, 79);
  EXPECT_TRUE((*thread)->take_xids().empty());
}

TEST(SystemSampler, a_thread_samples_this_process_and_stops_at_once) {
  TempDirectory box;
  {
    auto thread =
        SamplerThread::start(box / "system.csv", {{0, ::getpid()}}, {.every = std::chrono::milliseconds(20)});
    ASSERT_TRUE(thread.ok());
    const Deadline patience = Deadline::after(std::chrono::seconds(20));
    while (record::read_metrics(box / "system.csv")->rows() < 3 && !patience.passed()) ::usleep(5000);
  }
  const auto table = record::read_metrics(box / "system.csv");
  ASSERT_GE(table->rows(), 3u);
  EXPECT_GT(table->column("rank0.rss_bytes")[1], 1e5);
  EXPECT_GE(table->column("rank0.cpu_cores")[1], 0);
  EXPECT_GT(table->column("host_memory_total_bytes")[0], 1e8);
}

TEST(SystemSampler, a_sample_costs_less_than_half_a_percent_of_its_second) {
  TempDirectory box;
  auto sampler = SystemSampler::create(box / "system.csv", {{0, ::getpid()}, {1, ::getpid()}});
  ASSERT_TRUE(sampler.ok());
  constexpr int kSamples = 50;
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < kSamples; ++i) ASSERT_TRUE(sampler->sample(i, i).ok());
  ::getrusage(RUSAGE_SELF, &after);
  const auto seconds = [](const rusage& use) {
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  };
  EXPECT_LT((seconds(after) - seconds(before)) / kSamples, 0.005);
}

}  // namespace
}  // namespace stoker::observe
