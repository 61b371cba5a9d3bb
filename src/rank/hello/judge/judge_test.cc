#include <gmock/gmock.h>

#include "rank/hello/report.h"

namespace stoker::rank::hello {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string address_of(int rank) { return format("10.0.0.{}", rank + 1); }

// Hosts n1, n2, ... with one rank each, all well.
Report healthy(int hosts = 3) {
  Report report;
  report.scheduler_job = "12";
  for (int r = 0; r < hosts; ++r) {
    report.hosts.push_back(format("n{}", r + 1));
    RankFacts facts;
    facts.rank = Rank(r);
    facts.host = report.hosts.back();
    facts.cores = {0, 1};
    facts.interfaces = {{.name = "lo", .address = "127.0.0.1", .prefix = 8, .is_loopback = true},
                        {.name = "eth0", .address = address_of(r), .prefix = 24, .mtu = 1500}};
    facts.gloo.chosen = facts.interfaces[1];
    facts.nccl.chosen = facts.interfaces[1];
    facts.addresses = {address_of(r) + ":4000"};
    report.ranks[Rank(r)] = std::move(facts);
    for (int to = 0; to < hosts; ++to) {
      if (to == r) continue;
      report.ways.push_back({Rank(r),
                             {.to = Rank(to),
                              .address = address_of(to) + ":4000",
                              .error = "",
                              .connect_s = 1e-4,
                              .round_trip_s = 5e-5},
                             true});
      report.flows.push_back({Rank(r), {.to = Rank(to), .bytes = 1 << 25, .seconds = 0.02, .error = ""}});
    }
  }
  return report;
}

TriedWay& way(Report& report, int from, int to) {
  for (TriedWay& tried : report.ways) {
    if (tried.from == Rank(from) && tried.way.to == Rank(to)) return tried;
  }
  return report.ways.front();
}
void block(Report& report, int from, int to) { way(report, from, to).way.error = "no answer within 5.0 s"; }
void slow_down(Report& report, int from, int to, double seconds) {
  for (MeasuredFlow& measured : report.flows) {
    if (measured.from == Rank(from) && measured.flow.to == Rank(to)) measured.flow.seconds = seconds;
  }
}

// "job: what | evidence | ... -> cure" of each finding.
std::vector<std::string> findings(const Report& report) {
  std::vector<std::string> lines;
  for (const Finding& finding : judge(report)) {
    std::string line = format("{}: {}", std::string(to_text(finding.level)), finding.what);
    for (const Evidence& one : finding.evidence) line += " | " + one.text;
    lines.push_back(line + (finding.cure.empty() ? "" : " -> " + finding.cure));
  }
  return lines;
}

constexpr const char* kExcludeN3 = "slurm: {extra: [\"--exclude=n3\"]}      (sbatch --exclude=n3)";

TEST(Judge, what_is_well_has_no_findings) {
  EXPECT_THAT(findings(healthy()), IsEmpty());
  EXPECT_THAT(findings(healthy(1)), IsEmpty());
}

TEST(Judge, a_path_that_one_node_does_not_see_is_named_with_the_node) {
  Report report = healthy();
  report.paths = {{.key = "data.train.source", .path = "/data"},
                  {.key = "record.directory", .path = "/runs"}};
  for (const auto& [rank, facts] : report.ranks) {
    NodeView view{.problems = {"", ""}, .local = "/tmp"};
    view.local_free = 10_GiB;
    report.views[rank] = view;
  }
  EXPECT_THAT(findings(report), IsEmpty());
  report.views[Rank(2)].problems[0] = "is not there";
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: data.train.source: /data on n3: is not there | it is well on n1, n2 -> {}",
                         kExcludeN3)));
  for (auto& [rank, view] : report.views) view.problems[0] = "is not there";
  EXPECT_THAT(findings(report),
              ElementsAre("job: data.train.source: /data on n1, n2, n3: is not there -> a place "
                          "that the nodes share"));
}

TEST(Judge, a_node_s_small_disk_and_wrong_clock_are_named) {
  Report report = healthy();
  for (const auto& [rank, facts] : report.ranks) {
    NodeView view{.problems = {}, .local = "/tmp"};
    view.local_free = 10_GiB;
    view.clock_s = 5;
    view.clock_error_s = 4;
    report.views[rank] = view;
  }
  report.local_needed = 10_GiB;
  EXPECT_THAT(findings(report), IsEmpty());
  report.views[Rank(2)].local_free = 1_GiB;
  report.views[Rank(2)].clock_s = -400;
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "job: stage brings 10.7 GB to every node, and n3 has 1.07 GB left in /tmp -> slurm: {extra: "
          "[--tmp=SIZE]}, or stage: {directory: a larger one}",
          format("time: the clock of n3 is 400 s behind this one's: files seem newer or older than they "
                 "are, and beyond 5 minutes munge refuses -> {}",
                 kExcludeN3)));
}

TEST(Judge, a_rank_that_did_not_come_is_named_with_the_line_that_leaves_its_host_out) {
  Report report = healthy();
  report.absent = {{Rank(2), "n3", "start", "did not come within 30.0 s (--limit)", false}};
  EXPECT_THAT(findings(report),
              ElementsAre(format("job: rank 2 (n3) did not come within 30.0 s (--limit) -> {}", kExcludeN3)));
  report.absent = {{Rank(2), "n3", "start", "srun: error: Task launch failed on node n3", false}};
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: rank 2 (n3) did not come: srun: error: Task launch failed on node n3 -> {}",
                         kExcludeN3)));
  report.absent = {{Rank(2), "n3", "connect", "its connection broke", false}};
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: rank 2 (n3) was lost (connect): its connection broke -> {}", kExcludeN3)));
}

TEST(Judge, ranks_that_srun_ended_because_of_another_node_are_not_to_blame) {
  Report report = healthy();
  report.absent = {{Rank(0), "n1", "start", "its connection broke", true},
                   {Rank(2), "n3", "start", "srun: error: Task launch failed on node n3", false}};
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: rank 2 (n3) did not come: srun: error: Task launch failed on node n3 -> {}",
                         kExcludeN3)));
}

TEST(Judge, one_pair_that_does_not_connect_is_that_pair) {
  Report report = healthy();
  block(report, 1, 2);
  block(report, 2, 1);
  EXPECT_THAT(findings(report),
              ElementsAre(format("job: n2 and n3 do not reach each other"
                                 " | n2 to n3 at 10.0.0.3 (eth0): no answer within 5.0 s"
                                 " | n3 to n2 at 10.0.0.2 (eth0): no answer within 5.0 s -> {}",
                                 kExcludeN3)));
}

TEST(Judge, one_way_that_is_blocked_is_told_with_the_way_that_is_open) {
  Report report = healthy();
  block(report, 1, 2);
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: n2 does not reach n3, though n3 reaches n2: new connections are blocked "
                         "that way | n2 to n3 at 10.0.0.3 (eth0): no answer within 5.0 s -> let n3 accept "
                         "TCP from n2 on all ports; until then: {}",
                         kExcludeN3)));
}

TEST(Judge, a_host_that_nobody_reaches_is_that_host) {
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

TEST(Judge, of_two_hosts_none_is_to_blame) {
  Report report = healthy(2);
  block(report, 0, 1);
  block(report, 1, 0);
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "n1 and n2 do not reach each other");
}

TEST(Judge, an_address_that_fails_where_another_works_is_the_wrong_interface) {
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

TEST(Judge, a_variable_that_names_no_interface_is_told_once_for_all_hosts) {
  Report report = healthy();
  for (auto& [rank, facts] : report.ranks) {
    facts.gloo = {std::nullopt, "GLOO_SOCKET_IFNAME=nosuch names no interface that is up"};
    facts.variables["GLOO_SOCKET_IFNAME"] = "nosuch";
  }
  EXPECT_THAT(
      findings(report),
      ElementsAre("job: GLOO_SOCKET_IFNAME=nosuch names no interface that is up (n1, n2, n3; there are: lo, "
                  "eth0) -> environment: {variables: {GLOO_SOCKET_IFNAME: eth0}}"
                  "      (export GLOO_SOCKET_IFNAME=eth0)"));
}

TEST(Judge, a_host_whose_name_is_loopback_cannot_meet_others_by_gloo) {
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

TEST(Judge, nccl_s_variable_loses_a_job_only_where_there_are_gpus) {
  Report report = healthy(2);
  for (auto& [rank, facts] : report.ranks)
    facts.nccl = {std::nullopt, "NCCL_SOCKET_IFNAME=eth7 names no interface that is up"};
  EXPECT_THAT(
      findings(report),
      ElementsAre("time: NCCL_SOCKET_IFNAME=eth7 names no interface that is up (n1, n2; there are: lo, eth0)"
                  " -> environment: {variables: {NCCL_SOCKET_IFNAME: eth0}}"
                  "      (export NCCL_SOCKET_IFNAME=eth0)"));
  for (auto& [rank, facts] : report.ranks) facts.gpus = {"NVIDIA H100"};
  EXPECT_EQ(judge(report).at(0).level, Level::job);
}

TEST(Judge, nccl_on_two_networks_is_told) {
  Report report = healthy(2);
  for (auto& [rank, facts] : report.ranks) facts.gpus = {"NVIDIA H100"};
  report.ranks[Rank(1)].nccl.chosen = net::Interface{.name = "ib0", .address = "10.148.7.3", .prefix = 16};
  EXPECT_THAT(
      findings(report),
      ElementsAre("time: NCCL would take eth0 (10.0.0.1) on n1 and ib0 (10.148.7.3) on n2: not one network"
                  " -> environment: {variables: {NCCL_SOCKET_IFNAME: eth0}}"
                  "      (export NCCL_SOCKET_IFNAME=eth0)"));
}

TEST(Judge, infiniband_is_told_where_it_is_down_unused_or_asked_for_in_vain) {
  Report report = healthy();
  for (auto& [rank, facts] : report.ranks) facts.fabric = {{"mlx5_0", 1, true, "ACTIVE"}};
  report.ranks[Rank(2)].fabric = {{"mlx5_0", 1, false, "DOWN"}};
  EXPECT_THAT(findings(report),
              ElementsAre(format("time: mlx5_0 port 1 is DOWN on n3, and active on other nodes -> "
                                 "{}; NCCL_IB_DISABLE=1 works, over TCP",
                                 kExcludeN3)));
  for (auto& [rank, facts] : report.ranks) facts.variables["NCCL_NET"] = "IB";
  EXPECT_EQ(judge(report).at(1).what, "NCCL_NET=IB, and no InfiniBand port is active on n3");
  EXPECT_EQ(judge(report).at(1).cure,
            "environment: {variables: {NCCL_NET: Socket}}      (export NCCL_NET=Socket)");
  for (auto& [rank, facts] : report.ranks) {
    facts.fabric = {{"mlx5_0", 1, true, "ACTIVE"}};
    facts.variables = {{"NCCL_IB_DISABLE", "1"}};
  }
  EXPECT_THAT(findings(report),
              ElementsAre("time: NCCL_IB_DISABLE=1 on n1, n2, n3, though mlx5_0 is active: NCCL "
                          "goes over TCP -> unset NCCL_IB_DISABLE"));
}

TEST(Judge, a_variable_that_only_some_hosts_have_is_told) {
  Report report = healthy();
  report.ranks[Rank(2)].variables["NCCL_DEBUG"] = "INFO";
  EXPECT_THAT(findings(report),
              ElementsAre("time: NCCL_DEBUG is not the same everywhere: not set on n1, n2, INFO on n3 -> "
                          "environment: {variables: {NCCL_DEBUG: ...}}, the same for all"));
}

TEST(Judge, a_taken_master_port_is_named_with_a_free_one) {
  Report report = healthy();
  report.ranks[Rank(0)].master_problem =
      "port 29500: taken by another program on this host: python3 (process 812)";
  report.ranks[Rank(0)].free_port = 12345;
  EXPECT_THAT(
      findings(report),
      ElementsAre("job: MASTER_PORT on n1: port 29500: taken by another program on this host: python3 "
                  "(process 812) -> unset MASTER_PORT, and `stoker run` takes a free one      (or: "
                  "MASTER_PORT=12345)"));
}

TEST(Judge, names_that_do_not_resolve_or_take_long_are_told) {
  Report report = healthy(2);
  report.names = {
      {Rank(0), {.name = "n2", .addresses = {}, .seconds = 0.1, .error = "Name or service not known"}},
      {Rank(1), {.name = "n2", .addresses = {}, .seconds = 0.1, .error = "Name or service not known"}},
      {Rank(1), {.name = "n1", .addresses = {"10.0.0.1"}, .seconds = 0.1, .reverse_seconds = 10.02}}};
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "time: the name n2 does not resolve on n1, n2: Name or service not known -> scripts that "
          "meet by names fail; `stoker run` gives them addresses (MASTER_ADDR)",
          "time: on n2 a name takes 10.0 s to resolve, there or back: each rendezvous waits for it -> "
          "hosts: files dns      (/etc/nsswitch.conf, and the nodes in /etc/hosts)"));
}

TEST(Judge, one_slow_host_of_three_is_named_and_not_its_pairs) {
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

TEST(Judge, one_slow_way_is_named) {
  Report report = healthy();
  slow_down(report, 0, 2, 1);
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("time: slow: n1 to n3: 33.6 MB/s (others reach 1.68 GB/s) -> {}", kExcludeN3)));
}

TEST(Judge, between_two_hosts_only_what_no_network_is_slow_as_is_told) {
  Report report = healthy(2);
  slow_down(report, 0, 1, 0.2);
  EXPECT_THAT(findings(report), IsEmpty());
  slow_down(report, 0, 1, 30);
  EXPECT_THAT(findings(report),
              ElementsAre("time: slow: n1 to n2: 1.12 MB/s -> slurm: {extra: [\"--exclude=n2\"]}"
                          "      (sbatch --exclude=n2)"));
}

TEST(Judge, a_real_device_is_held_to_what_it_says_it_can) {
  Report report = healthy(2);
  for (auto& [rank, facts] : report.ranks) facts.gloo.chosen->speed_mbit = 100'000;
  slow_down(report, 0, 1, 0.2);
  EXPECT_EQ(judge(report).at(0).what, "slow: n1 to n2: 168 MB/s");
}

TEST(Judge, within_a_host_nothing_is_slow) {
  Report report = healthy(1);
  report.flows = {{Rank(0), {.to = Rank(1), .bytes = 1000, .seconds = 10, .error = ""}}};
  EXPECT_THAT(findings(report), IsEmpty());
}

TEST(Judge, large_packets_that_are_lost_are_told_with_the_sizes_of_the_ends) {
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

TEST(Judge, fewer_cores_than_ranks_and_gpus_that_are_not_there_are_told) {
  Report report = healthy(1);
  RankFacts second = report.ranks[Rank(0)];
  second.rank = Rank(1);
  for (RankFacts* facts : {&report.ranks[Rank(0)], &second}) {
    facts->cores = {3};
    facts->visible_gpus = "0";
  }
  report.ranks[Rank(1)] = second;
  report.gpus_wanted = 1;
  EXPECT_THAT(
      findings(report),
      ElementsAre("job: ranks 0, 1 on n1 have the same GPU (CUDA_VISIBLE_DEVICES=0), which NCCL refuses -> "
                  "srun --gpus-per-task=1      (gloo takes several ranks on one GPU)",
                  "time: 2 ranks on n1 share 1 core (3) -> resources: {cpus_per_rank: 1}"));
}

TEST(Judge, gpus_that_a_rank_should_have_and_does_not_see_are_told) {
  Report report = healthy(1);
  report.gpus_wanted = 2;
  EXPECT_EQ(judge(report).at(0).what,
            "rank 0 (n1) sees 0 of 2 GPUs (CUDA_VISIBLE_DEVICES is not set, nvidia-smi lists none)");
  report.ranks[Rank(0)].visible_gpus = "";
  EXPECT_EQ(judge(report).at(0).what, "rank 0 (n1) sees 0 of 2 GPUs (CUDA_VISIBLE_DEVICES=)");
  EXPECT_EQ(judge(report).at(0).cure, "resources: {gpus_per_rank: 2}      (srun --gpus-per-task=2)");
  report.ranks[Rank(0)].visible_gpus = "0,7";
  report.ranks[Rank(0)].gpus = {"a", "b", "c", "d"};
  EXPECT_EQ(judge(report).at(0).what, "rank 0 (n1): CUDA_VISIBLE_DEVICES=0,7 names GPU 7, there are 4 (0-3)");
  report.ranks[Rank(0)].visible_gpus = "0,1";
  EXPECT_THAT(judge(report), IsEmpty());
  report.ranks[Rank(0)].gpu_problem = "nvidia-smi gave no answer within 15.0 s";
  EXPECT_EQ(judge(report).at(0).what, "rank 0 (n1): nvidia-smi gave no answer within 15.0 s");
}

TEST(Judge, what_goes_wrong_only_with_all_together_is_told) {
  Report report = healthy();
  report.ring_problem = "rank 1 (n2): rank 0 sent nothing more";
  EXPECT_THAT(findings(report),
              ElementsAre("job: all ranks together: rank 1 (n2): rank 0 sent nothing more"));
}

TEST(Callers, of_very_many_hosts_are_as_many_as_can_be_tried) {
  Report report;
  for (int r = 0; r < 600; ++r) {
    report.hosts.push_back(format("n{}", r));
    RankFacts facts;
    facts.rank = Rank(r);
    facts.host = report.hosts.back();
    facts.addresses = {"10.0.0.1:4000"};
    report.ranks[Rank(r)] = facts;
  }
  EXPECT_EQ(callers(report).size(), 512u);
}

TEST(Callers, are_one_of_each_host_or_some_of_one_host) {
  Report report = healthy(1);
  for (int r = 1; r < 6; ++r) {
    report.ranks[Rank(r)] = report.ranks[Rank(0)];
    report.ranks[Rank(r)].rank = Rank(r);
  }
  EXPECT_THAT(callers(report), ElementsAre(Rank(0), Rank(1), Rank(2), Rank(3)));
  report.hosts = {"n1", "n2"};
  report.ranks[Rank(4)].host = "n2";
  report.ranks[Rank(5)].host = "n2";
  EXPECT_THAT(callers(report), ElementsAre(Rank(0), Rank(4)));
  report.absent = {{Rank(4), "n2", "connect", "its connection broke", false}};
  EXPECT_THAT(callers(report), ElementsAre(Rank(0), Rank(5)));
}

}  // namespace
}  // namespace stoker::rank::hello
