#include "rank/group/rank_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const RankStatus kRank = {.rank = Rank(1), .host = "n2", .joined = true, .where = {"backward", 0, 7}};

class RankMonitorTest : public testing::Test {
 protected:
  MonitorResult check(Duration since_message = Duration::zero()) {
    monitor_.last_message = now_ - since_message;
    return check_rank(
        kRank, monitor_,
        {.now = now_,
         .timeouts = timeouts_,
         .is_peer_stopped = is_peer_stopped_,
         .are_all_silent = are_all_silent_,
         .send_probe = [this] { ++probes_; },
         .has_unacknowledged_data = [this] { return !is_acknowledged_; },
         .is_stopped_here = [this] { return is_stopped_here_; },
         .host_at = [](std::string_view address) { return "rank 0 at " + std::string(address); }});
  }

  const MonoTime now_ = MonoTime() + 1h;
  job::Timeouts timeouts_ = [] {
    job::Timeouts timeouts;
    timeouts.stopped = 60s;
    timeouts.stall = 0s;
    return timeouts;
  }();
  RankMonitor monitor_;
  bool is_acknowledged_ = true;
  bool is_stopped_here_ = false;
  bool is_peer_stopped_ = false;
  bool are_all_silent_ = false;
  int probes_ = 0;
};

TEST_F(RankMonitorTest, healthy_rank_has_no_notes) {
  const MonitorResult result = check();
  EXPECT_THAT(result.notes, IsEmpty());
  EXPECT_FALSE(result.failure);
}

TEST_F(RankMonitorTest, stopped_rank_is_reported_once_and_again_when_it_continues) {
  monitor_.heartbeat.stopped_s = 3;
  EXPECT_THAT(
      check().notes,
      ElementsAre("rank 1 (n2) has been stopped by a signal (state T) for 3.0 s at epoch 1 step 7, phase "
                  "backward; the run ends after 1 min 00 s (timeouts.stopped)"));
  EXPECT_THAT(check().notes, IsEmpty());
  monitor_.heartbeat.stopped_s = 0;
  EXPECT_THAT(check().notes, ElementsAre("rank 1 (n2) continues"));
}

TEST_F(RankMonitorTest, stopped_rank_fails_after_its_timeout) {
  monitor_.heartbeat.stopped_s = 60;
  const auto failure = check().failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->what,
            "was stopped by a signal (state T) for 1 min 00 s at epoch 1 step 7, phase backward "
            "(timeouts.stopped)");
  EXPECT_FALSE(failure->is_loss);
}

TEST_F(RankMonitorTest, silence_is_reported_later_without_a_beacon) {
  monitor_.heartbeat.silent_s = 10;
  EXPECT_THAT(check().notes, IsEmpty());
  monitor_.heartbeat.has_beacon = true;
  EXPECT_THAT(check().notes,
              ElementsAre("rank 1 (n2) has been silent for 10 s at epoch 1 step 7, phase backward: "
                          "no step, no CPU time"));
  EXPECT_THAT(check().notes, IsEmpty());
}

TEST_F(RankMonitorTest, a_rank_that_waits_for_a_stopped_peer_is_neither_silent_nor_hanging) {
  timeouts_.stall = 30s;
  is_peer_stopped_ = true;
  monitor_.heartbeat.has_beacon = true;
  monitor_.heartbeat.silent_s = 40;
  EXPECT_THAT(check().notes, IsEmpty());
  EXPECT_FALSE(check().failure);
  is_peer_stopped_ = false;
  EXPECT_TRUE(check().failure);
}

TEST_F(RankMonitorTest, hanging_rank_fails_after_its_timeout) {
  timeouts_.stall = 30s;
  monitor_.heartbeat.silent_s = 30;
  const auto failure = check().failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->what, "made no progress for 30 s at epoch 1 step 7, phase backward (timeouts.stall)");
}

TEST_F(RankMonitorTest, a_rank_is_not_blamed_alone_if_all_are_silent) {
  timeouts_.stall = 30s;
  are_all_silent_ = true;
  monitor_.heartbeat.silent_s = 30;
  const auto failure = check().failure;
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->is_hang);
  EXPECT_EQ(
      failure->what,
      "made no progress for 30 s at epoch 1 step 7, phase backward, like all other ranks (timeouts.stall)");
}

TEST(PeersSilent, all_other_ranks_must_be_silent_and_running) {
  std::vector<RankStatus> statuses = {{.rank = Rank(0)}, {.rank = Rank(1)}, {.rank = Rank(2)}};
  std::vector<RankMonitor> monitors(3);
  EXPECT_FALSE(are_peers_silent(Rank(0), statuses, monitors, 30s));
  monitors[1].heartbeat.silent_s = monitors[2].heartbeat.silent_s = 15;
  EXPECT_TRUE(are_peers_silent(Rank(0), statuses, monitors, 30s));
  EXPECT_FALSE(are_peers_silent(Rank(1), statuses, monitors, 30s));  // rank 0 makes progress
  EXPECT_FALSE(are_peers_silent(Rank(0), statuses, monitors, 600s));
  statuses[2].ended = RankExit{};
  EXPECT_FALSE(are_peers_silent(Rank(0), statuses, monitors, 30s));
  EXPECT_FALSE(are_peers_silent(Rank(0), {{.rank = Rank(0)}}, monitors, 30s));
}

TEST_F(RankMonitorTest, blocked_peer_is_reported_with_a_cure) {
  monitor_.heartbeat.silent_s = 5;
  monitor_.heartbeat.blocked_on = "10.0.0.1";
  EXPECT_THAT(
      check().notes,
      ElementsAre("rank 1 (n2) has been blocked for 5.0 s at epoch 1 step 7, phase backward: rank 0 at "
                  "10.0.0.1 acknowledges none of its packets, the link between them is cut or blocked",
                  "  try: stoker hello      (in the same allocation: lists every broken link)"));
  EXPECT_THAT(check().notes, IsEmpty());
}

TEST_F(RankMonitorTest, missing_heartbeat_is_probed_once) {
  (void)check(2s);
  EXPECT_EQ(probes_, 0);
  (void)check(3s);
  (void)check(4s);
  EXPECT_EQ(probes_, 1);
  (void)check(1s);
  (void)check(3s);
  EXPECT_EQ(probes_, 2);
}

TEST_F(RankMonitorTest, host_that_acknowledges_nothing_is_a_loss) {
  is_acknowledged_ = false;
  EXPECT_FALSE(check(7s).failure);
  const auto failure = check(8s).failure;
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->is_loss);
  EXPECT_TRUE(monitor_.is_unresponsive);
}

TEST_F(RankMonitorTest, hanging_stoker_rank_is_only_reported_without_a_limit) {
  const MonitorResult result = check(8s);
  EXPECT_FALSE(result.failure);
  EXPECT_THAT(result.notes,
              ElementsAre("rank 1 (n2) has sent no heartbeat for 8.0 s at epoch 1 step 7, phase "
                          "backward: its host answers, but its `stoker rank` hangs"));
}

TEST_F(RankMonitorTest, stoker_rank_stopped_on_this_machine_has_its_own_limit) {
  is_stopped_here_ = true;
  EXPECT_FALSE(check(59s).failure);
  const auto failure = check(60s).failure;
  ASSERT_TRUE(failure);
  EXPECT_FALSE(failure->is_loss);
  EXPECT_NE(failure->what.find("(timeouts.stopped)"), std::string::npos);
}

}  // namespace
}  // namespace stoker::rank
