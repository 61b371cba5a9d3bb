#include <gmock/gmock.h>

#include "netcheck/judge/test_report.h"
#include "netcheck/report.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Judge, healthy_report_has_no_findings) {
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
  EXPECT_THAT(findings(report),
              ElementsAre(format("job: data.train.source: /data on n3: is not there | ok on n1, n2 -> {}",
                                 kExcludeN3)));
  for (auto& [rank, view] : report.views) view.problems[0] = "is not there";
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "job: data.train.source: /data on n1, n2, n3: is not there -> use a folder that all nodes share"));
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
  EXPECT_THAT(findings(report),
              ElementsAre("job: staging needs 10.7 GB on every node, but n3 has 1.07 GB free in /tmp -> "
                          "slurm: {extra: [--tmp=SIZE]}, or stage: {directory: a larger one}",
                          format("time: the clock of n3 is 400 s behind this host's: file times are wrong, "
                                 "and munge fails beyond 5 minutes -> {}",
                                 kExcludeN3)));
}

TEST(Judge, missing_rank_is_reported_with_an_exclusion) {
  Report report = healthy();
  report.absent = {{Rank(2), "n3", "start", "did not join within 30.0 s (--limit)", false}};
  EXPECT_THAT(findings(report),
              ElementsAre(format("job: rank 2 (n3) did not join within 30.0 s (--limit) -> {}", kExcludeN3)));
  report.absent = {{Rank(2), "n3", "start", "srun: error: Task launch failed on node n3", false}};
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: rank 2 (n3) did not join: srun: error: Task launch failed on node n3 -> {}",
                         kExcludeN3)));
  report.absent = {{Rank(2), "n3", "connect", "its connection broke", false}};
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: rank 2 (n3) was lost (connect): its connection broke -> {}", kExcludeN3)));
}

TEST(Judge, ranks_ended_by_srun_are_not_at_fault) {
  Report report = healthy();
  report.absent = {{Rank(0), "n1", "start", "its connection broke", true},
                   {Rank(2), "n3", "start", "srun: error: Task launch failed on node n3", false}};
  EXPECT_THAT(
      findings(report),
      ElementsAre(format("job: rank 2 (n3) did not join: srun: error: Task launch failed on node n3 -> {}",
                         kExcludeN3)));
}

TEST(Judge, too_few_cores_and_invalid_gpus_are_reported) {
  Report report = healthy(1);
  RankFacts second = report.ranks[Rank(0)];
  second.rank = Rank(1);
  for (RankFacts* facts : {&report.ranks[Rank(0)], &second}) {
    facts->cores = {3};
    facts->visible_gpus = "0";
  }
  report.ranks[Rank(1)] = second;
  report.gpus_wanted = 1;
  EXPECT_THAT(findings(report),
              ElementsAre("job: ranks 0, 1 on n1 have the same GPU (CUDA_VISIBLE_DEVICES=0), which NCCL "
                          "refuses -> srun --gpus-per-task=1      (gloo allows several ranks per GPU)",
                          "time: 2 ranks on n1 share 1 core (3) -> resources: {cpus_per_rank: 1}"));
}

// One host with two ranks, each with the GPU of its number.
Report with_gpus() {
  Report report = healthy(1);
  for (const int rank : {0, 1}) {
    RankFacts facts = report.ranks[Rank(0)];
    facts.rank = Rank(rank);
    facts.gpus = {"NVIDIA H100", "NVIDIA H100"};
    facts.gpu = rank;
    facts.gpu_uuid = format("GPU-{}", rank);
    facts.gpu_bytes_per_s = 478e9;
    report.ranks[Rank(rank)] = std::move(facts);
  }
  report.ranks[Rank(0)].gpu_links = {
      {.first = 0, .second = 1, .nvlinks = 18, .path = {}, .has_peer_access = true}};
  return report;
}

TEST(Judge, ranks_on_one_gpu_are_found_by_its_id) {
  Report report = with_gpus();
  EXPECT_THAT(findings(report), IsEmpty());
  report.gpus_wanted = 1;
  EXPECT_THAT(findings(report), IsEmpty());
  report.ranks[Rank(1)].gpu = 0;
  report.ranks[Rank(1)].gpu_uuid = "GPU-0";
  EXPECT_THAT(findings(report),
              ElementsAre("job: ranks 0, 1 on n1 have the same GPU (0, GPU-0), which NCCL refuses -> "
                          "srun --gpus-per-task=1      (gloo allows several ranks per GPU)"));
}

TEST(Judge, a_rank_without_a_gpu_or_with_an_unknown_one_is_named) {
  Report report = with_gpus();
  report.ranks[Rank(1)].visible_gpus = "";
  EXPECT_THAT(findings(report),
              ElementsAre("job: rank 1 (n1) sees no GPU (CUDA_VISIBLE_DEVICES=), but its peers do "
                          "-> unset CUDA_VISIBLE_DEVICES"));
  report.ranks[Rank(1)].visible_gpus = "GPU-9";
  report.ranks[Rank(1)].unknown_gpu = "GPU-9";
  EXPECT_THAT(findings(report),
              ElementsAre("job: rank 1 (n1): CUDA_VISIBLE_DEVICES=GPU-9 names GPU-9, and no GPU "
                          "there has this id -> unset CUDA_VISIBLE_DEVICES"));
}

TEST(Judge, gpus_without_peer_access_are_named_if_ranks_use_them) {
  Report report = with_gpus();
  report.ranks[Rank(0)].gpu_links[0].has_peer_access = false;
  report.ranks[Rank(0)].gpu_links.push_back({.first = 1, .second = 2, .path = {}, .has_peer_access = false});
  EXPECT_THAT(
      findings(report),
      ElementsAre("time: GPUs 0-1 on n1 have no peer access: NCCL copies between them through host memory -> "
                  "nvidia-smi topo -p2p r      (shows why; IOMMU and ACS prevent it)"));
}

TEST(Judge, nccl_far_below_the_links_is_named) {
  Report report = with_gpus();
  report.gpu_timings = {{.bytes = 1 << 20, .seconds = 1, .bound_bytes_per_s = 478e9, .ranks = 2},
                        {.bytes = 128 << 20, .seconds = 0.0005, .bound_bytes_per_s = 478e9, .ranks = 2}};
  EXPECT_THAT(findings(report), IsEmpty());
  report.gpu_timings[1].seconds = 0.005;
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          "time: NCCL reaches 26.8 GB/s per GPU, and the links carry 478 GB/s -> NCCL_DEBUG=INFO shows "
          "the path: `via P2P` is direct, `via SHM` through host memory"));
  report.gpu_timings[1].bound_bytes_per_s = 0;
  EXPECT_THAT(findings(report), IsEmpty());
}

TEST(Judge, missing_gpus_are_reported) {
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
  report.ranks[Rank(0)].gpu_problem = "nvidia-smi did not answer within 15.0 s";
  EXPECT_EQ(judge(report).at(0).what, "rank 0 (n1): nvidia-smi did not answer within 15.0 s");
}

TEST(Judge, all_reduce_failure_is_reported) {
  Report report = healthy();
  report.ring_problem = "rank 1 (n2): rank 0 sends no more data";
  EXPECT_THAT(findings(report), ElementsAre("job: all-reduce: rank 1 (n2): rank 0 sends no more data"));
}

TEST(ProbingRanks, of_very_many_hosts_are_as_many_as_can_be_tried) {
  Report report;
  for (int r = 0; r < 600; ++r) {
    report.hosts.push_back(format("n{}", r));
    RankFacts facts;
    facts.rank = Rank(r);
    facts.host = report.hosts.back();
    facts.addresses = {"10.0.0.1:4000"};
    report.ranks[Rank(r)] = facts;
  }
  EXPECT_EQ(probing_ranks(report).size(), 512u);
}

TEST(ProbingRanks, are_one_of_each_host_or_some_of_one_host) {
  Report report = healthy(1);
  for (int r = 1; r < 6; ++r) {
    report.ranks[Rank(r)] = report.ranks[Rank(0)];
    report.ranks[Rank(r)].rank = Rank(r);
  }
  EXPECT_THAT(probing_ranks(report), ElementsAre(Rank(0), Rank(1), Rank(2), Rank(3)));
  report.hosts = {"n1", "n2"};
  report.ranks[Rank(4)].host = "n2";
  report.ranks[Rank(5)].host = "n2";
  EXPECT_THAT(probing_ranks(report), ElementsAre(Rank(0), Rank(4)));
  report.absent = {{Rank(4), "n2", "connect", "its connection broke", false}};
  EXPECT_THAT(probing_ranks(report), ElementsAre(Rank(0), Rank(5)));
}

}  // namespace
}  // namespace stoker::netcheck
