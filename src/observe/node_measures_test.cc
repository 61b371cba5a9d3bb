#include "observe/node_measures.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;

record::MetricTable table(std::string_view text) { return *record::parse_metrics("t.csv", text); }
const NodeMeasure& measure(std::string_view key) { return kNodeMeasures[measure_index(key)]; }

TEST(NodeMeasures, columns_of_a_node_are_put_together) {
  const auto samples = table(
      "time,ranks.cpu_cores,rank0.cpu_cores,net.a.received_bytes_per_s,net.b.received_bytes_per_s,"
      "gpu0.busy_percent,gpu1.busy_percent,local.read_bytes_per_s,rank0.read_bytes_per_s\n"
      "1,nan,nan,nan,nan,10,nan,nan,nan\n2,3,1,5,nan,10,30,7,9\n");
  EXPECT_THAT(values_of(samples, measure("cpu_cores")), ElementsAre(IsNan(), 3));
  EXPECT_THAT(values_of(samples, measure("network_received_bytes_per_s")), ElementsAre(IsNan(), 5));
  EXPECT_THAT(values_of(samples, measure("gpu_busy_percent")), ElementsAre(10, 20));
  EXPECT_THAT(values_of(samples, measure("local_read_bytes_per_s")), ElementsAre(IsNan(), 7));
  EXPECT_THAT(values_of(samples, measure("read_bytes_per_s")), ElementsAre(IsNan(), 9));
  EXPECT_THAT(values_of(samples, measure("shared_read_bytes_per_s")), IsEmpty());
  EXPECT_THAT(values_of(table("time,rank0.cpu_cores,rank1.cpu_cores\n1,1,2\n"), measure("cpu_cores")),
              ElementsAre(3));
}

TEST(NodeMeasures, totals_leave_out_gaps_and_unknown_rates) {
  const auto samples = table("time,x\n0,nan\n1,10\n3,20\n4,nan\n1000,50\n999,50\n");
  const auto rates = samples.column("x");
  EXPECT_EQ(total_of(samples, {rates.begin(), rates.end()}), 10 + 2 * 20);
  EXPECT_EQ(last_value(samples, "x"), 50);
  EXPECT_EQ(last_value(samples, "y"), std::nullopt);
  EXPECT_EQ(mean_and_peak({1, std::nan(""), 5})->mean, 3);
  EXPECT_EQ(mean_and_peak({-7, -9})->peak, -7);
  EXPECT_FALSE(mean_and_peak({std::nan("")}).has_value());
}

TEST(NodeMeasures, energy_continues_where_a_successor_starts_from_0) {
  const auto samples = table(
      "time,energy.cpu_j,gpu0.busy_percent,gpu0.power_w,gpu0.energy_j\n"
      "0,0,1,100,nan\n1,50,1,100,nan\n2,0,1,100,nan\n3,30,1,300,nan\n");
  EXPECT_EQ(increase_of(samples, "energy.cpu_j"), 80);
  EXPECT_EQ(increase_of(samples, "energy.node_j"), std::nullopt);
  EXPECT_EQ(energy_of(samples).gpu_j, 500);  // from its power
  EXPECT_TRUE(energy_of(samples).is_gpu_integrated);
  EXPECT_EQ(increase_of(table("time,c\n0,-5\n1,nan\n2,7\n"), "c"), 0);
}

TEST(NodeMeasures, a_spread_names_the_nodes_at_its_ends) {
  const auto spread = spread_of({std::nullopt, 5.0, 1.0, 9.0, std::nan("")});
  ASSERT_TRUE(spread.has_value());
  EXPECT_EQ(spread->mean, 5);
  EXPECT_EQ(spread->lowest, 2u);
  EXPECT_EQ(spread->highest, 3u);
  EXPECT_FALSE(spread_of({std::nullopt}).has_value());
}

}  // namespace
}  // namespace stoker::observe
