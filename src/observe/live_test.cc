#include "observe/live.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "record/events.h"
#include "record/run_events.h"
#include "stoker/time.h"

namespace stoker::observe {
namespace {

class Box {
 public:
  Box() : attempt(folder_.path(), 1) {}
  void write(const Path& file, const std::string& text) { STOKER_CHECK(write_file(file, text).ok()); }

 private:
  TempDirectory folder_;

 public:
  record::Attempt attempt;
};

std::string steps(std::string_view rows) {
  return format("time,epoch,step,samples,data_s,forward_s,backward_s,communication_s,step_s\n{}", rows);
}

TEST(Live, a_rank_has_a_speed_and_time_shares) {
  Box box;
  box.write(
      box.attempt.metrics(0),
      steps("100,0,1,32,0.1,0.2,0.5,0.1,1\n101,0,2,32,0.1,0.2,0.5,0.1,1\n102,0,3,32,0.4,0.2,0.2,0.1,1\n"));
  box.write(box.attempt.metrics(1), steps("100,0,1,32,0.1,0.2,0.5,0.1,1\n102,0,2,32,0.1,0.2,0.5,0.1,1\n"));
  const LiveRun run = read_live_run(box.attempt, 2, 103);
  ASSERT_EQ(run.ranks.size(), 2u);
  EXPECT_EQ(run.ranks[0].step, 3);
  EXPECT_DOUBLE_EQ(*run.ranks[0].steps_per_s, 1.0);
  EXPECT_DOUBLE_EQ(*run.ranks[1].steps_per_s, 0.5);
  EXPECT_DOUBLE_EQ(*run.samples_per_s(), 32 + 16);
  EXPECT_NEAR(*run.ranks[0].shares[0], 0.2, 1e-9);
  EXPECT_FALSE(run.ranks[0].shares[5].has_value());  // it records no checkpoint_s
}

TEST(Live, uses_the_beacon_if_it_is_ahead_of_the_metrics) {
  Box box;
  box.write(box.attempt.metrics(0), steps("100,0,1,32,0.1,0.2,0.5,0.1,1\n"));
  auto beacon = record::Beacon::create(box.attempt.beacon(0), 0);
  ASSERT_TRUE(beacon.ok());
  beacon->at(2, 7);
  beacon->enter(record::Phase::backward);
  const double now = unix_seconds(RealClock().wall());
  const LiveRun run = read_live_run(box.attempt, 1, now + 10);
  EXPECT_EQ(run.ranks[0].step, 7);
  EXPECT_EQ(run.ranks[0].epoch, 2);
  EXPECT_EQ(run.ranks[0].beacon->phase, record::Phase::backward);
  EXPECT_GE(*run.ranks[0].silent_s, 9.0);
}

TEST(Live, machine_usage_comes_from_its_samples) {
  Box box;
  box.write(box.attempt.system(0),
            "time,host_cpu_percent,rank0.cpu_cores,rank0.rss_bytes,gpu0.busy_percent,gpu0.memory_bytes,gpu0."
            "power_w\n"
            "100,55,1.5,1000,93,2000,300\n");
  auto events = record::EventWriter::open(box.attempt.node_events(0));
  ASSERT_TRUE(events.ok());
  ASSERT_TRUE(write_event(*events, record::RankStarted{.rank = 0, .host = "n1", .pid = 7}).ok());
  const LiveRun run = read_live_run(box.attempt, 1, 101);
  ASSERT_EQ(run.nodes.size(), 1u);
  EXPECT_EQ(run.nodes[0].value("host_cpu_percent"), 55);
  EXPECT_EQ(run.nodes[0].value("cpu_cores"), 1.5) << "recorded by an earlier version";
  EXPECT_EQ(run.ranks[0].cpu_cores, 1.5);
  EXPECT_EQ(run.ranks[0].host, "n1");
  ASSERT_EQ(run.gpus.size(), 1u);
  EXPECT_EQ(run.gpus[0].busy_percent, 93);
}

TEST(Live, gpus_have_their_state_and_errors) {
  Box box;
  box.write(box.attempt.system(0),
            "time,gpu0.busy_percent,gpu0.memory_total_bytes,gpu0.sm_clock_mhz,gpu0.temperature_c,"
            "gpu0.throttle_reasons,gpu1.busy_percent\n"
            "100,93,8000,1980,65,36,nan\n");
  auto events = record::EventWriter::open(box.attempt.node_events(0));
  ASSERT_TRUE(events.ok());
  ASSERT_TRUE(write_event(*events, record::GpuFault{.gpu = 1, .code = 79}).ok());
  ASSERT_TRUE(write_event(*events, record::GpuFault{.node = 1, .gpu = 0, .code = 13}).ok());
  const LiveRun run = read_live_run(box.attempt, 1, 101);
  ASSERT_EQ(run.gpus.size(), 2u);
  EXPECT_EQ(run.gpus[0].memory_total_bytes, 8000);
  EXPECT_EQ(run.gpus[0].sm_clock_mhz, 1980);
  EXPECT_EQ(run.gpus[0].temperature_c, 65);
  EXPECT_EQ(run.gpus[0].throttle_reasons, 36);
  EXPECT_TRUE(run.gpus[0].xids.empty()) << "the error is of a different node";
  EXPECT_EQ(run.gpus[1].throttle_reasons, std::nullopt) << "recorded by an earlier version";
  EXPECT_EQ(run.gpus[1].xids, std::vector<int>{79});
}

TEST(Live, every_node_has_its_last_sample) {
  Box box;
  box.write(box.attempt.system(0), "time,host_memory_total_bytes,rank0.cpu_cores\n100,9000,0.5\n");
  box.write(box.attempt.system(3),
            "time,job_cpus,cgroup_memory_limit_bytes,cgroup_oom_kills,net.a.received_bytes_per_s,"
            "net.b.received_bytes_per_s,shared.read_bytes_per_s,energy.cpu_j,ranks.cpu_cores,ranks.rss_bytes,"
            "rank1.cpu_cores,gpu0.busy_percent,gpu0.energy_j,gpu1.busy_percent,gpu1.energy_j\n"
            "100,4,8000,0,1,1,1,10,1,1,0.5,10,100,20,100\n"
            "104,4,8000,1,10,20,7,50,3.5,4000,2.5,30,500,90,900\n");
  auto events = record::EventWriter::open(box.attempt.sampler_events(3));
  ASSERT_TRUE(events.ok());
  ASSERT_TRUE(
      write_event(*events, record::NodeSampled{.node = 3, .host = "n4", .cpus = 4, .sources = {}}).ok());
  const LiveRun run = read_live_run(box.attempt, 2, 106);
  ASSERT_EQ(run.nodes.size(), 2u);
  EXPECT_EQ(run.nodes[0].memory_limit_bytes, 9000);
  const LiveNode& node = run.nodes[1];
  EXPECT_EQ(node.node, 3);
  EXPECT_EQ(node.host, "n4");
  EXPECT_EQ(node.age_s, 2);
  EXPECT_EQ(node.cpus, 4);
  EXPECT_EQ(node.value("cpu_cores"), 3.5);
  EXPECT_EQ(node.value("memory_bytes"), 4000);
  EXPECT_EQ(node.memory_limit_bytes, 8000);
  EXPECT_EQ(node.oom_kills, 1);
  EXPECT_EQ(node.value("network_received_bytes_per_s"), 30);
  EXPECT_EQ(node.value("shared_read_bytes_per_s"), 7);
  EXPECT_EQ(node.value("fabric_sent_bytes_per_s"), std::nullopt);
  EXPECT_EQ(node.value("gpu_busy_percent"), 60);
  EXPECT_EQ(node.energy.cpu_j, 50);
  EXPECT_EQ(node.energy.gpu_j, 1400);
  EXPECT_EQ(node.power_w, (40 + 400 + 800) / 4.0);
  EXPECT_EQ(run.ranks[1].cpu_cores, 2.5);
  EXPECT_EQ(run.gpus.size(), 2u);
}

TEST(Live, missing_records_give_unset_values) {
  Box box;
  box.write(box.attempt.metrics(0), "rubbish");
  box.write(box.attempt.beacon(0), "rubbish");
  const LiveRun run = read_live_run(box.attempt, 3, 100, 2);
  EXPECT_EQ(run.ranks.size(), 2u);
  EXPECT_FALSE(run.ranks[0].step.has_value());
  EXPECT_FALSE(run.samples_per_s().has_value());
}

}  // namespace
}  // namespace stoker::observe
