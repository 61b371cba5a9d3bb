// Findings about connections between hosts: reachability and speed.

#include <gmock/gmock.h>

#include "netcheck/judge/test_report.h"
#include "netcheck/report.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JudgeConnections, broken_pair_is_one_finding) {
  Report report = healthy();
  block(report, 1, 2);
  block(report, 2, 1);
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: n2 and n3 cannot reach each other | n2 to n3 at 10.0.0.3 (eth0): no answer "
                         "within 5.0 s | n3 to n2 at 10.0.0.2 (eth0): no answer within 5.0 s -> {}",
                         kExcludeN3)));
}

TEST(JudgeConnections, one_blocked_direction_is_reported_with_the_open_one) {
  Report report = healthy();
  block(report, 1, 2);
  EXPECT_THAT(findings(report),
              ElementsAre(format("job: n2 cannot reach n3, though n3 reaches n2: new connections are blocked "
                                 "in that direction | n2 to n3 at 10.0.0.3 (eth0): no answer within 5.0 s -> "
                                 "let n3 accept TCP from n2 on all ports; until then: {}",
                                 kExcludeN3)));
}

TEST(JudgeConnections, unreachable_host_is_one_finding) {
  Report report = healthy(4);
  for (int other : {0, 1, 3}) {
    block(report, 2, other);
    block(report, other, 2);
  }
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "unreachable-host");
  EXPECT_EQ(found[0].what, "n3 and its peers cannot reach each other");
  EXPECT_EQ(found[0].evidence.size(), 6u);
  EXPECT_EQ(found[0].cure, kExcludeN3);
}

TEST(JudgeConnections, of_two_hosts_none_is_to_blame) {
  Report report = healthy(2);
  block(report, 0, 1);
  block(report, 1, 0);
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "n1 and n2 cannot reach each other");
}

TEST(JudgeConnections, an_address_that_fails_where_another_works_is_the_wrong_interface) {
  Report report = healthy(2);
  block(report, 0, 1);
  report.ranks[Rank(1)].interfaces.push_back({.name = "ib0", .address = "10.9.0.2", .prefix = 16});
  report.ranks[Rank(0)].interfaces.push_back({.name = "ib0", .address = "10.9.0.1", .prefix = 16});
  report.ways.push_back({Rank(0), {.to = Rank(1), .address = "10.9.0.2:4000"}, false});
  EXPECT_THAT(findings(report),
              ElementsAre("job: gloo would publish addresses that other ranks cannot reach | n1 to n2 at "
                          "10.0.0.2 (eth0): no answer within 5.0 s; 10.9.0.2 (ib0) answers -> environment: "
                          "{variables: {GLOO_SOCKET_IFNAME: ib0}}      (export GLOO_SOCKET_IFNAME=ib0)"));
}

TEST(JudgeConnections, one_slow_host_of_three_is_named_and_not_its_pairs) {
  Report report = healthy();
  for (int other : {0, 2}) {
    slow_down(report, 1, other, 30);
    slow_down(report, other, 1, 30);
  }
  EXPECT_THAT(findings(report),
              ElementsAre("time: n2 is slow to or from all peers (other connections reach 1.68 GB/s) | n1 to "
                          "n2: 1.12 MB/s | n2 to n1: 1.12 MB/s | n2 to n3: 1.12 MB/s | n3 to n2: 1.12 MB/s "
                          "-> slurm: {extra: [\"--exclude=n2\"]}      (sbatch --exclude=n2)"));
}

TEST(JudgeConnections, one_slow_way_is_named) {
  Report report = healthy();
  slow_down(report, 0, 2, 1);
  EXPECT_THAT(findings(report),
              ElementsAre(format("time: slow: n1 to n3: 33.6 MB/s (other connections reach 1.68 GB/s) -> {}",
                                 kExcludeN3)));
}

TEST(JudgeConnections, two_hosts_are_slow_only_below_absolute_limit) {
  Report report = healthy(2);
  slow_down(report, 0, 1, 0.2);
  EXPECT_THAT(findings(report), IsEmpty());
  slow_down(report, 0, 1, 30);
  EXPECT_THAT(findings(report),
              ElementsAre("time: slow: n1 to n2: 1.12 MB/s -> slurm: {extra: [\"--exclude=n2\"]}"
                          "      (sbatch --exclude=n2)"));
}

TEST(JudgeConnections, speed_is_compared_with_nominal_link_speed) {
  Report report = healthy(2);
  for (auto& [rank, facts] : report.ranks) facts.gloo.chosen->speed_mbit = 100'000;
  slow_down(report, 0, 1, 0.2);
  EXPECT_EQ(judge(report).at(0).what, "slow: n1 to n2: 168 MB/s");
}

TEST(JudgeConnections, within_a_host_nothing_is_slow) {
  Report report = healthy(1);
  report.flows = {{Rank(0), {.to = Rank(1), .bytes = 1000, .seconds = 10, .error = ""}}};
  EXPECT_THAT(findings(report), IsEmpty());
}

TEST(JudgeConnections, lost_large_packets_are_reported_with_mtus) {
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
}  // namespace stoker::netcheck
