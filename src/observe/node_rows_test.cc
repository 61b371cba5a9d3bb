#include "observe/node_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;

LiveNode node(int number, double cores) {
  LiveNode live{.node = number, .host = format("n{}", number), .values = {}, .energy = {}};
  live.values[measure_index("cpu_cores")] = cores;
  return live;
}

TEST(NodeRows, few_nodes_have_a_row_each_with_the_recorded_columns_only) {
  LiveNode first = node(0, 3.14);
  first.cpus = 16;
  first.values[measure_index("memory_bytes")] = 3e9;
  first.memory_limit_bytes = 8e9;
  first.oom_kills = 2;
  first.power_w = 412.4;
  LiveNode second = node(1, -5);
  second.host = "";
  second.age_s = 40;
  const NodeRows table = rows_of({first, second});
  EXPECT_THAT(table.header, ElementsAre("NODE", "CORES", "MEMORY", "POWER"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("n0", "3.1 of 16", "3.00 GB of 8.00 GB, 2 killed", "412 W"),
                                      ElementsAre("node 1 (40 s behind)", "-", "-", "-")));
}

TEST(NodeRows, many_nodes_are_summarized_with_the_extreme_ones_named) {
  std::vector<LiveNode> nodes;
  for (int i = 0; i < 17; ++i) nodes.push_back(node(i, i == 9 ? 1 : i == 12 ? 9 : 4));
  const NodeRows table = rows_of(nodes);
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("mean of 17", "4.1"), ElementsAre("lowest", "1.0 n9"),
                                      ElementsAre("highest", "9.0 n12")));
}

TEST(NodeRows, values_that_no_machine_has_are_left_out) {
  for (const NodeMeasure& measure : kNodeMeasures) {
    for (const double value : {-1.0, 1e30, std::numeric_limits<double>::quiet_NaN()})
      EXPECT_EQ(measure_text(measure, value), "-");
  }
  EXPECT_TRUE(rows_of({}).rows.empty());
  EXPECT_TRUE(rows_of({LiveNode{.host = "", .values = {}, .energy = {}}}).rows.empty());
}

TEST(GpuLines, name_the_node_where_there_are_several_and_only_problems_of_many) {
  LiveRun run;
  run.nodes = {node(0, 1), node(1, 1)};
  run.gpus = {{.node = 1,
               .number = 3,
               .busy_percent = 93,
               .memory_bytes = 2e9,
               .memory_total_bytes = 8e9,
               .power_w = 300,
               .throttle_reasons = 4,
               .xids = {79, 79}}};
  EXPECT_THAT(gpu_lines(run),
              ElementsAre("GPU 3 of n1  93 % busy, 2.00 GB of 8.00 GB, 300 W, throttled: power limit, "
                          "Xid 79: it has fallen off the bus"));
  run.gpus[0].xids.clear();
  for (int i = 0; i < 17; ++i) run.gpus.push_back({.node = 0, .number = i});
  run.gpus[5].throttle_reasons = 64;
  EXPECT_THAT(gpu_lines(run),
              ElementsAre(testing::StartsWith("GPU 4 of n0  - busy"), "17 GPUs without a problem"));
}

}  // namespace
}  // namespace stoker::observe
