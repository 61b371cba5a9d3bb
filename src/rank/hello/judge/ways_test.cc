// Judgements of the ways between hosts: who reaches whom, and how fast.

#include <gmock/gmock.h>

#include "rank/hello/judge/test_report.h"
#include "rank/hello/report.h"

namespace stoker::rank::hello {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JudgeWays, one_pair_that_does_not_connect_is_that_pair) {
  Report report = healthy();
  block(report, 1, 2);
  block(report, 2, 1);
  EXPECT_THAT(findings(report),
              ElementsAre(format("job: n2 and n3 do not reach each other"
                                 " | n2 to n3 at 10.0.0.3 (eth0): no answer within 5.0 s"
                                 " | n3 to n2 at 10.0.0.2 (eth0): no answer within 5.0 s -> {}",
                                 kExcludeN3)));
}

TEST(JudgeWays, one_way_that_is_blocked_is_told_with_the_way_that_is_open) {
  Report report = healthy();
  block(report, 1, 2);
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: n2 does not reach n3, though n3 reaches n2: new connections are blocked "
                         "that way | n2 to n3 at 10.0.0.3 (eth0): no answer within 5.0 s -> let n3 accept "
                         "TCP from n2 on all ports; until then: {}",
                         kExcludeN3)));
}

TEST(JudgeWays, a_host_that_nobody_reaches_is_that_host) {
  Report report = healthy(4);
  for (int other : {0, 1, 3}) {
    block(report, 2, other);
    block(report, other, 2);
  }
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "unreachable-host");
  EXPECT_EQ(found[0].what, "n3 and the others do not reach each other");
  EXPECT_EQ(found[0].evidence.size(), 6u);
  EXPECT_EQ(found[0].cure, kExcludeN3);
}

TEST(JudgeWays, of_two_hosts_none_is_to_blame) {
  Report report = healthy(2);
  block(report, 0, 1);
  block(report, 1, 0);
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "n1 and n2 do not reach each other");
}

TEST(JudgeWays, an_address_that_fails_where_another_works_is_the_wrong_interface) {
  Report report = healthy(2);
  block(report, 0, 1);
  report.ranks[Rank(1)].interfaces.push_back({.name = "ib0", .address = "10.9.0.2", .prefix = 16});
  report.ranks[Rank(0)].interfaces.push_back({.name = "ib0", .address = "10.9.0.1", .prefix = 16});
  report.ways.push_back({Rank(0), {.to = Rank(1), .address = "10.9.0.2:4000"}, false});
  EXPECT_THAT(
      findings(report),
      ElementsAre("job: gloo would give out addresses that the others do not reach"
                  " | n1 to n2 at 10.0.0.2 (eth0): no answer within 5.0 s; at 10.9.0.2 (ib0) it answers"
                  " -> environment: {variables: {GLOO_SOCKET_IFNAME: ib0}}"
                  "      (export GLOO_SOCKET_IFNAME=ib0)"));
}

TEST(JudgeWays, one_slow_host_of_three_is_named_and_not_its_pairs) {
  Report report = healthy();
  for (int other : {0, 2}) {
    slow_down(report, 1, other, 30);
    slow_down(report, other, 1, 30);
  }
  EXPECT_THAT(
      findings(report),
      ElementsAre("time: n2 is slow to or from all others (others reach 1.68 GB/s) | n1 to n2: 1.12 MB/s | "
                  "n2 to n1: 1.12 MB/s | n2 to n3: 1.12 MB/s | n3 to n2: 1.12 MB/s -> "
                  "slurm: {extra: [\"--exclude=n2\"]}      (sbatch --exclude=n2)"));
}

TEST(JudgeWays, one_slow_way_is_named) {
  Report report = healthy();
  slow_down(report, 0, 2, 1);
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("time: slow: n1 to n3: 33.6 MB/s (others reach 1.68 GB/s) -> {}", kExcludeN3)));
}

TEST(JudgeWays, between_two_hosts_only_what_no_network_is_slow_as_is_told) {
  Report report = healthy(2);
  slow_down(report, 0, 1, 0.2);
  EXPECT_THAT(findings(report), IsEmpty());
  slow_down(report, 0, 1, 30);
  EXPECT_THAT(findings(report),
              ElementsAre("time: slow: n1 to n2: 1.12 MB/s -> slurm: {extra: [\"--exclude=n2\"]}"
                          "      (sbatch --exclude=n2)"));
}

TEST(JudgeWays, a_real_device_is_held_to_what_it_says_it_can) {
  Report report = healthy(2);
  for (auto& [rank, facts] : report.ranks) facts.gloo.chosen->speed_mbit = 100'000;
  slow_down(report, 0, 1, 0.2);
  EXPECT_EQ(judge(report).at(0).what, "slow: n1 to n2: 168 MB/s");
}

TEST(JudgeWays, within_a_host_nothing_is_slow) {
  Report report = healthy(1);
  report.flows = {{Rank(0), {.to = Rank(1), .bytes = 1000, .seconds = 10, .error = ""}}};
  EXPECT_THAT(findings(report), IsEmpty());
}

TEST(JudgeWays, large_packets_that_are_lost_are_told_with_the_sizes_of_the_ends) {
  Report report = healthy(2);
  report.ranks[Rank(0)].gloo.chosen->mtu = 9000;
  report.flows[0].flow = {
      .to = Rank(1), .bytes = 0, .seconds = 0, .error = "stalled: 0 of 65536 bytes arrived within 10.0 s"};
  EXPECT_THAT(
      findings(report),
      ElementsAre("job: n1 to n2: small messages pass, large ones do not: stalled: 0 of 65536 bytes arrived "
                  "within 10.0 s | MTU 9000 on n1, 1500 on n2 -> slurm: {extra: [\"--exclude=n2\"]}      "
                  "(sbatch --exclude=n2); or ip link set dev IFACE mtu 1500 on both, if larger packets are "
                  "lost between them"));
}

}  // namespace
}  // namespace stoker::rank::hello
