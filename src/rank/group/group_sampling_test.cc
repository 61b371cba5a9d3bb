#include "rank/group/group_sampling.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "record/metrics.h"
#include "record/run_events.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A run of two nodes with two ranks each, and the messages that were sent.
struct Box {
  explicit Box(bool has_torchrun = false)
      : plan{.start = StartMethod::srun,
             .has_torchrun = has_torchrun,
             .nodes = 2,
             .ranks_of_node = {2, 2},
             .hosts = {"n1", "n2"}} {}

  GroupSampling::Peers peers() {
    return {.send_to_rank = [this](Rank rank,
                                   const net::ControlMessage& message) { note("rank", rank.value, message); },
            .send_to_node = [this](int node,
                                   const net::ControlMessage& message) { note("node", node, message); }};
  }
  void note(std::string_view kind, int number, const net::ControlMessage& message) {
    sent.push_back(format("{} {}: node {} {} {}", kind, number, message.text("node"), message.text("host"),
                          message.text("ranks")));
  }
  void start_ranks(GroupSampling& sampling) const {
    for (int r = 0; r < plan.world_size().value; ++r)
      sampling.handle_rank_start(
          Rank(r), plan.hosts[static_cast<std::size_t>(plan.placement_of(Rank(r)).node)], ::getpid() + r);
  }
  std::string pid(int rank) const { return std::to_string(::getpid() + rank); }

  Plan plan;
  TempDirectory folder;
  record::Attempt attempt{folder.path(), 1};
  record::EventWriter events;
  std::vector<std::string> sent;
};

TEST(GroupSampling, one_rank_per_node_samples_it_once_all_ranks_have_started) {
  Box box;
  GroupSampling sampling(box.plan, box.attempt, 1s, box.events);
  sampling.start_when_due(10s, box.peers());
  EXPECT_THAT(box.sent, IsEmpty());
  box.start_ranks(sampling);
  sampling.start_when_due(100ms, box.peers());
  EXPECT_THAT(box.sent, IsEmpty());  // too early for a short run
  sampling.start_when_due(1s, box.peers());
  sampling.start_when_due(2s, box.peers());
  EXPECT_THAT(box.sent, ElementsAre(format("rank 0: node 0 n1 0:{},1:{}", box.pid(0), box.pid(1)),
                                    format("rank 2: node 1 n2 2:{},3:{}", box.pid(2), box.pid(3))));
}

TEST(GroupSampling, a_running_peer_continues_when_the_sampling_rank_has_ended) {
  Box box;
  GroupSampling sampling(box.plan, box.attempt, 1s, box.events);
  box.start_ranks(sampling);
  sampling.start_when_due(1s, box.peers());
  box.sent.clear();
  sampling.handle_rank_exit(Rank(3), 5s);
  sampling.handle_rank_exit(Rank(0), 5s);
  sampling.start_when_due(6s, box.peers());
  EXPECT_THAT(box.sent, IsEmpty());  // its peer may end with it
  sampling.start_when_due(8s, box.peers());
  sampling.start_when_due(9s, box.peers());
  EXPECT_THAT(box.sent, ElementsAre(format("rank 1: node 0 n1 0:{},1:{}", box.pid(0), box.pid(1))));
  sampling.handle_rank_exit(Rank(2), 10s);
  sampling.handle_rank_exit(Rank(1), 10s);
  sampling.start_when_due(20s, box.peers());
  EXPECT_EQ(box.sent.size(), 1u);  // no rank is left
}

TEST(GroupSampling, below_torchrun_the_process_of_the_node_samples_to_the_end) {
  Box box(true);
  GroupSampling sampling(box.plan, box.attempt, 1s, box.events);
  box.start_ranks(sampling);
  sampling.start_when_due(1s, box.peers());
  sampling.handle_rank_exit(Rank(0), 2s);
  sampling.start_when_due(9s, box.peers());
  EXPECT_THAT(box.sent, ElementsAre(format("node 0: node 0 n1 0:{},1:{}", box.pid(0), box.pid(1)),
                                    format("node 1: node 1 n2 2:{},3:{}", box.pid(2), box.pid(3))));
}

TEST(GroupSampling, no_node_is_sampled_if_the_interval_is_zero) {
  Box box;
  GroupSampling sampling(box.plan, box.attempt, 0s, box.events);
  box.start_ranks(sampling);
  sampling.start_when_due(1s, box.peers());
  EXPECT_THAT(box.sent, IsEmpty());
}

TEST(GroupSampling, local_ranks_are_sampled_by_this_process_with_its_sources_in_the_events) {
  Box box;
  box.plan = {.ranks_of_node = {1}, .hosts = {"here"}};
  box.events = *record::EventWriter::open(box.attempt.node_events(0));
  GroupSampling sampling(box.plan, box.attempt, 1s, box.events);
  box.start_ranks(sampling);
  sampling.start_when_due(1s, box.peers());
  EXPECT_THAT(sampling.take_lines(), IsEmpty());
  sampling.stop();
  EXPECT_THAT(box.sent, IsEmpty());
  EXPECT_TRUE(record::read_metrics(box.attempt.system(0))->has("rank0.rss_bytes"));
  const auto log = record::read_events(box.attempt.node_events(0));
  const auto sampled = record::node_sampled(log->events.at(0));
  ASSERT_TRUE(sampled.has_value());
  EXPECT_EQ(sampled->node, 0);
  EXPECT_EQ(sampled->host, "here");
  EXPECT_GE(sampled->cpus, 1);
}

TEST(GroupSampling, a_file_that_cannot_be_written_is_reported_and_ends_nothing) {
  Box box;
  box.plan = {.ranks_of_node = {1}, .hosts = {"here"}};
  GroupSampling sampling(box.plan, record::Attempt("/nonexistent", 1), 1s, box.events);
  box.start_ranks(sampling);
  sampling.start_when_due(1s, box.peers());
  EXPECT_THAT(
      sampling.take_lines(),
      ElementsAre("no samples of this machine: /nonexistent/system-0000.csv: no such file or directory"));
  sampling.stop();
}

TEST(SamplingRequest, a_message_carries_it_and_damaged_ones_are_refused) {
  const SamplingRequest request{.node = {3, "n4"}, .ranks = {{6, 100}, {7, 200}}, .every = 2s};
  net::ControlMessage message = to_message(request);
  const auto back = parse_sampling_request(message);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->node.number, 3);
  EXPECT_EQ(back->node.host, "n4");
  EXPECT_EQ(back->every, 2s);
  ASSERT_EQ(back->ranks.size(), 2u);
  EXPECT_EQ(back->ranks[1].rank, 7);
  EXPECT_EQ(back->ranks[1].pid, 200);
  for (std::string_view ranks : {"", "6", "6:", "6:-1", "x:1", "6:1,", "-1:5", "6:1;7:2"}) {
    message.fields["ranks"] = ranks;
    EXPECT_FALSE(parse_sampling_request(message).ok()) << ranks;
  }
  message = to_message(request);
  message.fields["every_s"] = "nan";
  EXPECT_FALSE(parse_sampling_request(message).ok());
  EXPECT_FALSE(parse_sampling_request({"sample", {}}).ok());
}

}  // namespace
}  // namespace stoker::rank
