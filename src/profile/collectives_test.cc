#include "profile/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/text.h"

namespace stoker::profile {
namespace {

using ::testing::SizeIs;

TEST(CollectiveTable, names_of_all_libraries_become_one_spelling) {
  for (const char* name :
       {"AllReduce", "all_reduce", "gloo:all_reduce", "allreduce", "nccl:all_reduce", "all-reduce"})
    EXPECT_EQ(operation_name(name), "all-reduce") << name;
  EXPECT_EQ(operation_name("_allgather_base"), "all-gather");
  EXPECT_EQ(operation_name("nccl:_reduce_scatter_base"), "reduce-scatter");
  EXPECT_EQ(operation_name("all_to_allv"), "all-to-all");
  EXPECT_EQ(operation_name("Reduce"), "reduce");
  EXPECT_EQ(operation_name("permute"), "permute");
}

TEST(CollectiveTable, bandwidths_are_defined_as_in_nccl_tests) {
  CollectiveTable collectives;
  // 4 ranks, 1 GB in 10 ms: 100 GB/s, on the bus 2 * 3/4 of it.
  collectives.add({.operation = "all-reduce", .ranks = 4, .bytes = 1'000'000'000}, Nanos{20'000'000});
  collectives.add({.operation = "all-reduce", .ranks = 4, .bytes = 1'000'000'000}, Nanos{10'000'000});
  const auto rows = collectives.rows();
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_DOUBLE_EQ(rows[0].mean_s(), 0.015);
  EXPECT_DOUBLE_EQ(*rows[0].algorithm_bandwidth(), 1e11);
  EXPECT_DOUBLE_EQ(*rows[0].bus_bandwidth(), 1.5e11);
  EXPECT_EQ(collective_bytes("all-gather", 10, 4, 8), 320u);
  EXPECT_EQ(collective_bytes("all-reduce", 10, 4, 8), 40u);
  EXPECT_EQ(collective_bytes("all-gather", UINT64_MAX, 4, 8), UINT64_MAX);
}

TEST(CollectiveTable, without_durations_and_ranks_there_is_no_bandwidth) {
  CollectiveTable collectives;
  collectives.add({.operation = "all-reduce", .bytes = 8}, std::nullopt, 3);
  collectives.add({.operation = "barrier"}, Nanos{5});
  const auto rows = collectives.rows();
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].kind.operation, "barrier");
  EXPECT_EQ(rows[0].bus_bandwidth(), std::nullopt);
  EXPECT_EQ(rows[1].count, 3u);
  EXPECT_EQ(rows[1].algorithm_bandwidth(), std::nullopt);
}

TEST(CollectiveTable, kinds_without_end_take_bounded_memory) {
  CollectiveTable collectives;
  for (std::uint64_t i = 0; i < 3 * CollectiveTable::kMostKinds; ++i)
    collectives.add({.operation = "all-reduce", .bytes = i + 1}, Nanos{1});
  const auto rows = collectives.rows();
  EXPECT_THAT(rows, SizeIs(CollectiveTable::kMostKinds + 1));
  std::uint64_t count = 0;
  for (const CollectiveRow& row : rows) count += row.count;
  EXPECT_EQ(count, 3 * CollectiveTable::kMostKinds);
}

}  // namespace
}  // namespace stoker::profile
