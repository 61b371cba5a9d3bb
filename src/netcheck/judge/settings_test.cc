// Findings about settings: interfaces, NCCL variables, ports, names.

#include <gmock/gmock.h>

#include "netcheck/judge/test_report.h"
#include "netcheck/report.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;

TEST(JudgeSettings, unknown_interface_is_reported_once_for_all_hosts) {
  Report report = healthy();
  for (auto& [rank, facts] : report.ranks) {
    facts.gloo = {std::nullopt, "GLOO_SOCKET_IFNAME=nosuch does not name an interface that is up"};
    facts.variables["GLOO_SOCKET_IFNAME"] = "nosuch";
  }
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "job: GLOO_SOCKET_IFNAME=nosuch does not name an interface that is up (n1, n2, n3; there are: lo, "
          "eth0) -> environment: {variables: {GLOO_SOCKET_IFNAME: eth0}}"
          "      (export GLOO_SOCKET_IFNAME=eth0)"));
}

TEST(JudgeSettings, loopback_host_name_breaks_gloo) {
  Report report = healthy();
  report.ranks[Rank(1)].gloo.chosen = report.ranks[Rank(1)].interfaces[0];
  EXPECT_THAT(
      findings(report),
      ElementsAre("job: gloo would listen on loopback, which no other host reaches: the host's own name "
                  "resolves to it, or not at all (n2; there are: lo, eth0)"
                  " -> environment: {variables: {GLOO_SOCKET_IFNAME: eth0}}"
                  "      (export GLOO_SOCKET_IFNAME=eth0)"));
  report.ranks[Rank(1)].variables["GLOO_SOCKET_IFNAME"] = "lo";
  EXPECT_EQ(judge(report).at(0).what,
            "GLOO_SOCKET_IFNAME=lo is loopback, which no other host reaches (n2; there are: lo, eth0)");
}

TEST(JudgeSettings, nccl_s_variable_loses_a_job_only_where_there_are_gpus) {
  Report report = healthy(2);
  for (auto& [rank, facts] : report.ranks)
    facts.nccl = {std::nullopt, "NCCL_SOCKET_IFNAME=eth7 does not name an interface that is up"};
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "time: NCCL_SOCKET_IFNAME=eth7 does not name an interface that is up (n1, n2; there are: lo, eth0)"
          " -> environment: {variables: {NCCL_SOCKET_IFNAME: eth0}}"
          "      (export NCCL_SOCKET_IFNAME=eth0)"));
  for (auto& [rank, facts] : report.ranks) facts.gpus = {"NVIDIA H100"};
  EXPECT_EQ(judge(report).at(0).level, Level::job);
}

TEST(JudgeSettings, nccl_on_two_networks_is_reported) {
  Report report = healthy(2);
  for (auto& [rank, facts] : report.ranks) facts.gpus = {"NVIDIA H100"};
  report.ranks[Rank(1)].nccl.chosen = net::Interface{.name = "ib0", .address = "10.148.7.3", .prefix = 16};
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "time: NCCL would use eth0 (10.0.0.1) on n1 and ib0 (10.148.7.3) on n2: different networks -> "
          "environment: {variables: {NCCL_SOCKET_IFNAME: eth0}}      (export NCCL_SOCKET_IFNAME=eth0)"));
}

TEST(JudgeSettings, infiniband_problems_are_reported) {
  Report report = healthy();
  for (auto& [rank, facts] : report.ranks) facts.fabric = {{"mlx5_0", 1, true, "ACTIVE"}};
  report.ranks[Rank(2)].fabric = {{"mlx5_0", 1, false, "DOWN"}};
  EXPECT_THAT(findings(report), ElementsAre(format("time: mlx5_0 port 1 is DOWN on n3, but active on other "
                                                   "nodes -> {}; NCCL_IB_DISABLE=1 works, over TCP",
                                                   kExcludeN3)));
  for (auto& [rank, facts] : report.ranks) facts.variables["NCCL_NET"] = "IB";
  EXPECT_EQ(judge(report).at(1).what, "NCCL_NET=IB, but no InfiniBand port is active on n3");
  EXPECT_EQ(judge(report).at(1).cure,
            "environment: {variables: {NCCL_NET: Socket}}      (export NCCL_NET=Socket)");
  for (auto& [rank, facts] : report.ranks) {
    facts.fabric = {{"mlx5_0", 1, true, "ACTIVE"}};
    facts.variables = {{"NCCL_IB_DISABLE", "1"}};
  }
  EXPECT_THAT(findings(report), ElementsAre("time: NCCL_IB_DISABLE=1 on n1, n2, n3, though mlx5_0 is active: "
                                            "NCCL uses TCP -> unset NCCL_IB_DISABLE"));
}

TEST(JudgeSettings, inconsistent_variable_is_reported) {
  Report report = healthy();
  report.ranks[Rank(2)].variables["NCCL_DEBUG"] = "INFO";
  EXPECT_THAT(findings(report),
              ElementsAre("time: NCCL_DEBUG differs between hosts: not set on n1, n2, INFO on n3 -> "
                          "environment: {variables: {NCCL_DEBUG: ...}}      (the same for all ranks)"));
}

TEST(JudgeSettings, a_taken_master_port_is_named_with_a_free_one) {
  Report report = healthy();
  report.ranks[Rank(0)].master_problem =
      "port 29500: in use by another program on this host: python3 (process 812)";
  report.ranks[Rank(0)].free_port = 12345;
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "job: MASTER_PORT on n1: port 29500: in use by another program on this host: python3 (process 812) "
          "-> unset MASTER_PORT      (`stoker run` chooses a free port; or: MASTER_PORT=12345)"));
}

TEST(JudgeSettings, unresolved_and_slow_names_are_reported) {
  Report report = healthy(2);
  report.names = {
      {Rank(0), {.name = "n2", .addresses = {}, .seconds = 0.1, .error = "Name or service not known"}},
      {Rank(1), {.name = "n2", .addresses = {}, .seconds = 0.1, .error = "Name or service not known"}},
      {Rank(1), {.name = "n1", .addresses = {"10.0.0.1"}, .seconds = 0.1, .reverse_seconds = 10.02}}};
  EXPECT_THAT(
      findings(report),
      ElementsAre("time: the name n2 does not resolve on n1, n2: Name or service not known -> scripts that "
                  "rendezvous by host name fail; `stoker run` sets addresses (MASTER_ADDR)",
                  "time: on n2 name resolution takes 10.0 s, and each rendezvous waits for it -> hosts: "
                  "files dns      (/etc/nsswitch.conf, and the nodes in /etc/hosts)"));
}

}  // namespace
}  // namespace stoker::netcheck
