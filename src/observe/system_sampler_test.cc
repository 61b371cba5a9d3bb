#include "observe/system_sampler.h"

#include <cmath>
#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "observe/fake_nvml.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// A /proc folder for the test.
class FakeProc {
 public:
  const Path& path() const { return box_.path(); }
  void put(std::string_view name, std::string_view content) {
    const Path file = box_ / name;
    ASSERT_TRUE(make_directories(file.parent_path()).ok());
    ASSERT_TRUE(write_file(file, content).ok());
  }
  void process(int pid, int parent, int user_ticks, int pages, std::string_view name = "python") {
    put(format("{}/stat", pid), format("{} ({}) S {} 1 1 0 -1 0 0 0 0 0 {} 10 20 30 20 0 4 0 99 0 {} 0\n",
                                       pid, name, parent, user_ticks, pages));
  }
  void io(int pid, int asked, int read, int write) {
    put(format("{}/io", pid),
        format("rchar: {}\nwchar: 1\nread_bytes: {}\nwrite_bytes: {}\n", asked, read, write));
  }
  void host(int busy, int idle) {
    put("stat", format("cpu  {} 0 0 {} 0 0 0 0 0 0\ncpu0 1 2 3\n", busy, idle));
    put("meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  400 kB\n");
  }

 private:
  TempDirectory box_;
};

TEST(Proc, reads_process_usage_despite_a_hostile_name) {
  FakeProc proc;
  proc.process(7, 1, 100, 5, "a) S 1 (b\n");
  proc.io(7, 300, 200, 100);
  const auto use = read_process(proc.path(), 7);
  ASSERT_TRUE(use.has_value());
  EXPECT_DOUBLE_EQ(use->cpu_s, 160.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(use->rss_bytes, 5u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(use->asked_bytes, 300u);
  EXPECT_EQ(use->read_bytes, 200u);
  EXPECT_EQ(use->write_bytes, 100u);
}

TEST(Proc, damaged_or_absent_files_give_no_values) {
  FakeProc proc;
  EXPECT_FALSE(read_process(proc.path(), 7).has_value());
  EXPECT_FALSE(read_host(proc.path()).has_value());
  EXPECT_FALSE(read_cgroup_memory(proc.path(), proc.path()).has_value());
  for (std::string_view content : {"", "7", "7 (x", "7 (x)", "7 (x) ", "7 (x) S 1 2 3"}) {
    proc.put("7/stat", content);
    EXPECT_FALSE(read_process(proc.path(), 7).has_value()) << content;
  }
}

TEST(Proc, host_usage_counts_iowait_as_idle) {
  FakeProc proc;
  proc.put("stat", "cpu  100 10 20 500 70 1 2 3 50 50\n");
  proc.put("meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
  const auto host = read_host(proc.path());
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(host->total_s, 706 / ticks);
  EXPECT_DOUBLE_EQ(host->busy_s, 136 / ticks);
  EXPECT_EQ(host->memory_used_bytes, 600u * 1024);
}

TEST(Proc, reads_cgroup_memory_of_both_versions_and_in_a_container) {
  FakeProc proc;
  TempDirectory groups;
  const auto put = [&](std::string_view name, std::string_view content) {
    ASSERT_TRUE(make_directories((groups / name).parent_path()).ok());
    ASSERT_TRUE(write_file(groups / name, content).ok());
  };
  proc.put("self/cgroup", "0::/user.slice/job\n");
  put("user.slice/job/memory.current", "4096\n");
  put("user.slice/job/memory.max", "max\n");
  EXPECT_EQ(read_cgroup_memory(proc.path(), groups.path())->used_bytes, 4096u);
  EXPECT_EQ(read_cgroup_memory(proc.path(), groups.path())->limit_bytes, std::nullopt);
  proc.put("self/cgroup", "0::/not/visible/here\n");
  put("memory.current", "8192\n");
  put("memory.max", "16384\n");
  EXPECT_EQ(read_cgroup_memory(proc.path(), groups.path())->limit_bytes, 16384u);
  proc.put("self/cgroup", "9:cpu,cpuacct:/x\n7:memory:/slurm/job_1\n0::/\n");
  put("memory/slurm/job_1/memory.usage_in_bytes", "100\n");
  put("memory/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read_cgroup_memory(proc.path(), groups.path())->used_bytes, 100u);
  EXPECT_EQ(read_cgroup_memory(proc.path(), groups.path())->limit_bytes, std::nullopt);
}

TEST(Proc, tree_contains_descendants_even_with_a_cycle) {
  FakeProc proc;
  proc.process(10, 1, 0, 0);
  proc.process(11, 10, 0, 0);
  proc.process(12, 11, 0, 0);
  proc.process(13, 1, 0, 0);
  proc.put("notes/stat", "x");
  EXPECT_THAT(tree_of(10, read_parents(proc.path())), ElementsAre(10, 11, 12));
  EXPECT_THAT(tree_of(1, {{1, 2}, {2, 1}, {3, 3}}), UnorderedElementsAre(1, 2));
}

TEST(SystemSampler, rows_contain_rates_since_the_previous_row) {
  FakeProc proc;
  TempDirectory box;
  const int ticks = static_cast<int>(::sysconf(_SC_CLK_TCK));
  proc.host(0, 0);
  proc.process(10, 1, 0, 1);
  proc.io(10, 0, 0, 0);
  proc.process(11, 10, 0, 2);
  auto sampler = SystemSampler::create(box / "system.csv", {{3, 10}},
                                       {.proc = proc.path(), .cgroup_root = box.path(), .wants_gpus = false});
  ASSERT_TRUE(sampler.ok());
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  proc.host(3 * ticks, ticks);
  proc.process(10, 1, ticks, 1);
  proc.io(10, 6000, 4000, 2000);
  proc.process(11, 10, 2 * ticks, 2);
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
}

TEST(SystemSampler, an_ended_rank_has_empty_cells) {
  FakeProc proc;
  TempDirectory box;
  proc.host(0, 0);
  auto sampler =
      SystemSampler::create(box / "system.csv", {{0, 10}}, {.proc = proc.path(), .wants_gpus = false});
  ASSERT_TRUE(sampler->sample(1000, 5).ok());
  EXPECT_TRUE(std::isnan(record::read_metrics(box / "system.csv")->column("rank0.rss_bytes")[0]));
}

TEST(SystemSampler, rows_contain_the_values_of_each_gpu) {
  const FakeNvml nvml("gpus 2\n1.throttle 36\n1.temperature -\n");
  FakeProc proc;
  TempDirectory box;
  auto sampler = SystemSampler::create(box / "system.csv", {}, {.proc = proc.path(), .nvml = nvml.library()});
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
