#include "profile/nccl/nccl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Log {
 public:
  Log(std::initializer_list<std::string_view> lines) {
    for (const std::string_view line : lines) log.add_line(line, table);
  }
  std::vector<CollectiveRow> rows() const { return table.rows(); }

  NcclLog log;
  CollectiveTable table;
};

constexpr std::string_view kReduce =
    "n1:10:11 [0] NCCL INFO AllReduce: opCount 1a sendbuff 0x7f1 recvbuff 0x7f2 count 1000 datatype 7 op 0 "
    "root 0 "
    "comm 0x5 [nranks=4] stream 0x6";

TEST(NcclLog, communicators_of_every_version_name_the_group) {
  // 2.7, 2.16, 2.18, 2.21, 2.30: the ends of their lines.
  for (const std::string_view line : {
           "n1:10:11 [0] NCCL INFO comm 0x5 rank 1 nranks 4 cudaDev 0 busId 1b000 - Init COMPLETE",
           "n1:10:11 [0] NCCL INFO comm 0x5 rank 1 nranks 4 cudaDev 0 busId 1b000 commId 0xabc - Init "
           "COMPLETE",
           "n1:10:11 [0] NCCL INFO comm 0x5 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - "
           "Init COMPLETE",
           "n1:10:11 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 "
           "commId 0xabc - "
           "Init COMPLETE",
           "[2026-11-27 10:00:00.123456] n1:10:11 [0] NCCL INFO ncclCommInitRankConfig comm 0x5 rank 1 "
           "nranks 4 cudaDev 0 "
           "nvmlDev 0 busId 1b000 commId 0xabc - Init COMPLETE",
       }) {
    const Log log{line, kReduce};
    ASSERT_THAT(log.rows(), SizeIs(1)) << line;
    const CollectiveKind kind = log.rows()[0].kind;
    EXPECT_EQ(kind.operation, "all-reduce");
    EXPECT_EQ(kind.element, "float32");
    EXPECT_EQ(kind.ranks, 4);
    EXPECT_EQ(kind.bytes, 4000u);
    EXPECT_EQ(kind.group, line.find("commId") < line.size() ? "0xabc" : "") << line;
    EXPECT_EQ(log.rows()[0].timed, 0u);
    EXPECT_EQ(log.log.rejected(), 0u);
  }
}

TEST(NcclLog, parts_of_a_split_are_groups_of_their_parent) {
  for (const std::string_view child : {"splitCount", "childCount"}) {
    const std::string split = format(
        "n1:10:11 [0] NCCL INFO ncclCommSplit comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 "
        "parent 0x4 {} 3 "
        "color 7 key 0 - Init COMPLETE",
        child);
    const Log log{
        "n1:10:11 [0] NCCL INFO ncclCommInitRank comm 0x4 rank 0 nranks 4 busId 1b000 commId 0xabc - Init "
        "COMPLETE",
        split,
        "n1:10:11 [0] NCCL INFO AllGather: opCount 0 sendbuff 0x1 recvbuff 0x2 count 8 datatype 9 op 0 root "
        "0 "
        "comm 0x5 stream 0x6"};
    ASSERT_THAT(log.rows(), SizeIs(1));
    EXPECT_EQ(log.rows()[0].kind.group, "0xabc/3.7");
    EXPECT_EQ(log.rows()[0].kind.ranks, 2);
    EXPECT_EQ(log.rows()[0].kind.bytes, 32u);
  }
}

TEST(NcclLog, a_communicator_belongs_to_its_host_and_process_until_it_ends) {
  const std::string_view start =
      "n1:10:11 [0] NCCL INFO comm 0x5 rank 0 nranks 4 busId 1 commId 0xa - Init COMPLETE";
  const std::string_view other =
      "n2:10:11 [0] NCCL INFO comm 0x5 rank 0 nranks 4 busId 1 commId 0xb - Init COMPLETE";
  EXPECT_EQ(Log({start, other, kReduce}).rows()[0].kind.group, "0xa");
  EXPECT_EQ(Log({other, kReduce}).rows()[0].kind.group, "");
  const std::string_view end =
      "n1:10:11 [0] NCCL INFO comm 0x5 rank 0 nranks 4 cudaDev 0 busId 1 - Destroy COMPLETE";
  EXPECT_EQ(Log({start, end, kReduce}).rows()[0].kind.group, "");
}

TEST(NcclLog, labels_of_srun_and_new_types_are_read) {
  const Log log{
      "3: [rank3]: n1:10:11 [3] NCCL INFO ReduceScatter: opCount ff sendbuff 0x1 recvbuff 0x2 count 100 "
      "datatype 10 op 0 "
      "root 0 comm 0x5 [nranks=8] stream 0x6",
      "n1:10:11 [3] NCCL INFO Send: opCount 1 sendbuff 0x1 recvbuff (nil) count 2 datatype 99 op 0 root 1 "
      "comm 0x5 "
      "[nranks=8] stream (nil)"};
  ASSERT_THAT(log.rows(), SizeIs(2));
  EXPECT_EQ(log.rows()[0].kind.bytes, 800u);
  EXPECT_EQ(log.rows()[0].kind.element, "float8e4m3");
  EXPECT_EQ(log.rows()[1].kind.element, "type 99");
  EXPECT_EQ(log.rows()[1].kind.bytes, 0u);
}

TEST(NcclLog, lines_of_the_inspector_have_durations) {
  const std::string_view line =
      R"({"header":{"id":"0x1f","rank":0,"n_ranks":4,"nnodes":1},"metadata":{"hostname":"n1","pid":10},)"
      R"("coll_perf":{"coll":"AllReduce","coll_sn":7,"coll_msg_size_bytes":1000000,"coll_exec_time_us":10,)"
      R"("coll_algobw_gbs":100.0,"coll_busbw_gbs":150.0}})";
  const Log log{line, line, R"({"header":{},"coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":-1}})",
                R"({"coll_perf":)"};
  ASSERT_THAT(log.rows(), SizeIs(1));
  const CollectiveRow row = log.rows()[0];
  EXPECT_EQ(row.kind.group, "0x1f");
  EXPECT_EQ(row.timed, 2u);
  EXPECT_DOUBLE_EQ(*row.algorithm_bandwidth(), 100e9);
  EXPECT_DOUBLE_EQ(*row.bus_bandwidth(), 150e9);
  EXPECT_EQ(log.log.rejected(), 2u);
}

TEST(NcclLog, cut_and_mixed_lines_are_rejected_and_counted) {
  const Log log{kReduce.substr(0, 60),
                kReduce.substr(0, 110),
                "NCCL INFO AllReduce: opCount 1",
                "n1:10 NCCL INFO AllReduce: opCount 1 count 3 datatype 7 comm 0x5 stream 0x1",
                "n1:10:11 [0] NCCL INFO AllReduce: opCount zz count -3 datatype 7 comm 0x5 stream 0x1",
                "n1:10:11 [0] NCCL INFO comm 0x5 rank 9 nranks 4 busId 1 - Init COMPLETE",
                "n1:10:11 [0] NCCL INFO Channel 00/02 :    0   1",
                "loss 0.5"};
  EXPECT_THAT(log.rows(), IsEmpty());
  EXPECT_EQ(log.log.rejected(), 5u);
}

TEST(NcclLog, files_are_read_to_their_last_line) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "log", std::string(3u << 20, 'x') + "\n" + std::string(kReduce) + "\n" +
                                          std::string(kReduce))
                  .ok());
  CollectiveTable table;
  EXPECT_EQ(read_nccl_log(box / "log", table).lines, 2u);
  EXPECT_EQ(table.rows().at(0).count, 2u);
  EXPECT_THAT(read_nccl_log(box / "none", table).problem, testing::HasSubstr("none"));
}

}  // namespace
}  // namespace stoker::profile
