#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "report/html/page.h"
#include "report/json.h"
#include "report/node_tables.h"
#include "report/text.h"

namespace stoker::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A run of one attempt, whose files a test writes one by one.
class SampledRun {
 public:
  explicit SampledRun(std::string_view job = "name: test\n")
      : run_(*record::RunFolder::create(box_ / "runs", {.name = "test"}, "name: test\n")) {
    put("attempts/1/job.yaml", job);
    put("attempts/1/events-node-0000.jsonl",
        "{\"time\":0.5,\"kind\":\"attempt_started\",\"node\":0,\"host\":\"h\",\"pid\":1,\"pid_start\":1,"
        "\"boot\":\"b\",\"world_size\":2}\n"
        "{\"time\":100.5,\"kind\":\"attempt_ended\",\"node\":0,\"outcome\":\"done\",\"exit_code\":0}\n");
  }
  void put(std::string_view name, std::string_view content) {
    const Path file = run_.folder() / name;
    ASSERT_TRUE(make_directories(file.parent_path()).ok());
    ASSERT_TRUE(write_file(file, content).ok());
  }
  void node(int number, std::string_view host, std::string_view csv) {
    put(format("attempts/1/system-{:04}.csv", number), csv);
    put(format("attempts/1/events-sampler-{:04}.jsonl", number),
        format("{{\"time\":1,\"kind\":\"node_sampled\",\"node\":{},\"host\":\"{}\",\"cpus\":4,\"sources\":"
               "[\"energy: cpu: RAPL package-0; node: pm_counters energy\"]}}\n",
               number, host));
  }
  RunFacts facts() const { return collect_run_facts(run_, {.now = 4e9}); }

 private:
  TempDirectory box_;
  record::RunFolder run_;
};

constexpr std::string_view kHeader =
    "time,cgroup_memory_limit_bytes,cgroup_oom_kills,job_cpus,shared.read_bytes_per_s,ranks.cpu_s,"
    "ranks.cpu_cores,ranks.rss_bytes,energy.cpu_j,gpu0.busy_percent,gpu0.energy_j,sampler_cpu_s\n";

TEST(Nodes, means_peaks_and_totals_of_each_node_are_exact) {
  SampledRun run;
  run.node(
      0, "n1",
      format("{}1,8000,0,4,nan,0,nan,1000,0,50,0,0\n11,8000,0,4,100,20,2,3000,500,70,900,0.01\n", kHeader));
  run.node(
      1, "n2",
      format("{}1,8000,1,4,nan,0,nan,100,0,10,0,0\n11,8000,3,4,300,10,1,200,250,10,100,0.01\n", kHeader));
  const RunFacts facts = run.facts();
  ASSERT_EQ(facts.nodes.size(), 2u);
  const NodeFacts& first = facts.nodes[0];
  EXPECT_EQ(first.host, "n1");
  EXPECT_EQ(first.seconds, 10);
  EXPECT_EQ(first.ranks_cpu_s, 20);
  EXPECT_EQ(first.used("cpu_cores").mean, 2);
  EXPECT_EQ(first.used("memory_bytes").peak, 3000);
  EXPECT_EQ(first.used("memory_bytes").mean, 2000);
  EXPECT_EQ(first.used("shared_read_bytes_per_s").total, 1000);
  EXPECT_TRUE(std::isnan(first.used("network_sent_bytes_per_s").mean));
  EXPECT_EQ(first.energy.cpu_j, 500);
  EXPECT_EQ(first.energy.gpu_j, 900);
  EXPECT_EQ(facts.nodes[1].oom_kills, 2);
  EXPECT_EQ(facts.efficiency->cpu_used_s, 30);
  EXPECT_EQ(facts.efficiency->cpu_reserved_s, 80);
  EXPECT_EQ(facts.efficiency->memory_peak, 3000);
  EXPECT_EQ(facts.efficiency->memory_node, "n1");
  EXPECT_TRUE(facts.efficiency->is_memory_limit);
  EXPECT_EQ(facts.efficiency->gpus, 2u);
  EXPECT_EQ(facts.efficiency->gpu_busy_mean, 35);
  const std::string text = to_plain_text(std::vector{facts});
  EXPECT_THAT(text, HasSubstr("efficiency (attempts/*/system-*.csv, job.yaml)"));
  EXPECT_THAT(text, HasSubstr("killed for memory"));
  const Table energy = energy_table(facts);
  EXPECT_THAT(energy.rows, ElementsAre(ElementsAre("CPUs", "750 J", "75.0 W", "2",
                                                   "RAPL package-0, with other jobs of the node"),
                                       ElementsAre("GPUs", "1 000 J", "100 W", "2", "NVML, energy counter")));
}

TEST(Nodes, efficiency_compares_with_what_the_job_asked_for) {
  SampledRun run("name: test\nrun: \"true\"\nresources: {nodes: 1, memory_per_node: 8GB, time: 1000s}\n");
  run.node(
      0, "n1",
      format("{}1,nan,nan,4,nan,0,nan,1000,0,50,0,0\n11,nan,nan,4,100,20,2,2e9,nan,70,nan,0\n", kHeader));
  const Efficiency use = *run.facts().efficiency;
  EXPECT_EQ(use.memory_asked, 8e9);
  EXPECT_FALSE(use.is_memory_limit);
  EXPECT_EQ(share_of(use.memory_peak, use.memory_asked), 0.25);
  EXPECT_EQ(use.seconds, 100);
  EXPECT_EQ(use.time_limit, 1000);
  EXPECT_TRUE(std::isnan(share_of(1, 0)));
  EXPECT_TRUE(std::isnan(share_of(1, NAN)));
}

TEST(Nodes, many_nodes_are_summarized_with_the_worst_named_and_charts_as_envelopes) {
  SampledRun run;
  for (int n = 0; n < 20; ++n) {
    run.node(n, format("n{}", n),
             format("time,job_cpu_percent,ranks.cpu_cores\n1,50,nan\n2,{},{}\n", 3 * n, n == 7 ? 0.5 : 4.0));
  }
  const RunFacts facts = run.facts();
  const Table table = nodes_table(facts);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.rows[0], ElementsAre("mean of 20", "3.83", "39 %"));
  EXPECT_THAT(table.rows[1], ElementsAre("lowest", "0.500 (n7)", "25 % (n0)"));
  EXPECT_THAT(table.rows[2], ElementsAre("highest", "4.00 (n0)", "54 % (n19)"));
  const Table quantities = node_quantities_table(facts);
  EXPECT_EQ(quantities.columns.size(), 4u);
  EXPECT_THAT(quantities.rows[0], ElementsAre("cores used", "3.83", "0.500 (n7)", "4.00 (n0)"));
  ASSERT_EQ(facts.system.size(), 1u);
  EXPECT_EQ(facts.system[0].title, "Use of the job's cores");
  EXPECT_EQ(facts.system[0].summarized, 20u);
  ASSERT_EQ(facts.system[0].series.size(), 3u);
  EXPECT_EQ(facts.system[0].series[0].name, "lowest");
  EXPECT_EQ(facts.system[0].series[2].y.back(), 57);
  EXPECT_THAT(to_html(std::vector{facts}), HasSubstr("mean of 20"));
  EXPECT_THAT(to_plain_text(std::vector{facts}), HasSubstr("use of the job's cores  all 20  "));
  EXPECT_THAT(to_json(std::vector{facts}), HasSubstr("\"host\":\"n19\""));
}

TEST(Nodes, hostile_samples_give_no_nonsense) {
  SampledRun run;
  run.node(0, "n1\\u0007",
           "time,job_cpus,ranks.cpu_s,ranks.rss_bytes,energy.cpu_j,net.x.sent_bytes_per_s\n"
           "1,-4,-1e300,1e300,-5,1e308\nnan,inf,nan,-inf,nan,nan\n9e18,4,1e308,-7,1e308,-1e308\n0,x,1\n");
  const RunFacts facts = run.facts();
  ASSERT_EQ(facts.nodes.size(), 1u);
  const std::string text = to_plain_text(std::vector{facts});
  EXPECT_THAT(text, HasSubstr("1 damaged line skipped"));
  EXPECT_THAT(to_json(std::vector{facts}), Not(HasSubstr("inf")));
  EXPECT_THAT(to_html(std::vector{facts}), Not(HasSubstr("nan")));
  EXPECT_EQ(facts.nodes[0].seconds, 0);
  EXPECT_TRUE(std::isnan(facts.nodes[0].used("memory_bytes").peak));
  EXPECT_FALSE(facts.nodes[0].energy.cpu_j.has_value());
}

TEST(Nodes, a_run_without_samples_has_no_tables) {
  SampledRun run;
  const RunFacts facts = run.facts();
  EXPECT_FALSE(facts.efficiency.has_value());
  EXPECT_THAT(nodes_table(facts).rows, IsEmpty());
  EXPECT_THAT(efficiency_table(facts).rows, IsEmpty());
  EXPECT_THAT(energy_table(facts).rows, IsEmpty());
  EXPECT_THAT(to_json(std::vector{facts}), HasSubstr("\"efficiency\":null"));
}

}  // namespace
}  // namespace stoker::report
