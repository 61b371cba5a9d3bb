#include "launch/state/history.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "record/run_events.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;

// A run whose attempts start 1000 s apart from a fixed time.
class History : public ::testing::Test {
 protected:
  static constexpr double kBegin = 1'763'719'000;

  History() : run_(*record::RunFolder::create(box_.path(), {.name = "digits"}, "")) {}

  record::Attempt submitted() {
    auto attempt = *run_.start_attempt("");
    auto events = record::EventWriter::open(attempt.submit_events());
    STOKER_CHECK(write_event(*events, record::Submitted{.scheduler_job = "7"}).ok());
    return attempt;
  }
  // Starts the next attempt; without an ending, it was killed.
  void ran(const record::Attempt& attempt, std::optional<record::AttemptEnded> ended,
           const CheckpointStamp& mark = {}) {
    ++begun_;
    auto events = record::EventWriter::open(attempt.node_events(0));
    const double time = kBegin + 1000 * begun_;
    STOKER_CHECK(events
                     ->write_at(time, record::kAttemptStarted,
                                std::vector<record::Field>{{"node", std::int64_t{0}},
                                                           {"scheduler_job", std::string("7")},
                                                           {"resume", mark.path},
                                                           {"resume_written", mark.written}})
                     .ok());
    if (ended) STOKER_CHECK(write_event(*events, *ended).ok());
  }
  // Slurm's message during the last attempt.
  void write_slurm_log(const record::Attempt& submitted, std::string_view why) {
    const auto time = static_cast<std::int64_t>(kBegin + 1000 * begun_ + 500);
    log_ += format("slurmstepd-n1: error: *** JOB {} ON n1 CANCELLED AT {} {} ***\n", 7 + begun_, time, why);
    STOKER_CHECK(write_file(submitted.batch_log(), log_).ok());
  }
  static void asks_again(const record::Attempt& attempt) {
    auto events = record::EventWriter::open(attempt.next_events());
    STOKER_CHECK(write_event(*events, record::RequeueRequested{.job = "7"}).ok());
  }
  std::vector<Cause> causes() const {
    std::vector<Cause> causes;
    for (const PastAttempt& past : history_of(run_)) causes.push_back(past.cause);
    return causes;
  }
  static record::AttemptEnded ended(record::Outcome outcome, int code, std::string reason = "") {
    return {.node = 0,
            .outcome = outcome,
            .exit_code = code,
            .first_rank = {},
            .reason = std::move(reason),
            .job_state = "",
            .is_loss = false};
  }
  static record::AttemptEnded lost_a_rank() {
    record::AttemptEnded event = ended(record::Outcome::failed, 137, "rank 0 (n1) was lost");
    event.is_loss = true;
    return event;
  }

  TempDirectory box_;
  record::RunFolder run_;
  std::string log_;
  int begun_ = 0;
};

constexpr auto kStopped = record::Outcome::stopped;

TEST_F(History, recorded_endings_are_distinguished) {
  ran(submitted(), ended(kStopped, 75));
  ran(*run_.start_attempt(""), ended(kStopped, 1, "time limit 2s (chain.time_per_link)"));
  ran(*run_.start_attempt(""), ended(record::Outcome::failed, 7, "rank 1 (n2) left: exit code 7"));
  ran(*run_.start_attempt(""),
      ended(record::Outcome::failed, 137, "rank 1: killed by signal 9, out of memory"));
  ran(*run_.start_attempt(""), ended(record::Outcome::done, 0));
  EXPECT_THAT(causes(),
              ElementsAre(Cause::stopped, Cause::timeout, Cause::failed, Cause::out_of_memory, Cause::done));
}

TEST_F(History, slurm_state_decides_for_interrupted_runs) {
  const record::Attempt first = submitted();
  ran(first, ended(kStopped, 143, "interrupted by SIGTERM"));
  write_slurm_log(first, "DUE TO PREEMPTION");
  ran(*run_.start_attempt(""), std::nullopt);
  write_slurm_log(first, "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS");
  ran(*run_.start_attempt(""), std::nullopt);                         // killed without a record
  ran(*run_.start_attempt(""), ended(record::Outcome::failed, 143));  // Slurm ended its ranks
  write_slurm_log(first, "DUE TO TIME LIMIT");
  ran(*run_.start_attempt(""), ended(kStopped, 143));
  write_slurm_log(first, "DUE TO JOB REQUEUE");
  ran(*run_.start_attempt(""), ended(kStopped, 143));
  write_slurm_log(first, "");
  EXPECT_THAT(causes(), ElementsAre(Cause::preempted, Cause::node_failed, Cause::node_failed, Cause::timeout,
                                    Cause::requeued, Cause::cancelled));
}

TEST_F(History, restarted_after_own_failure_counts_as_failed) {
  const record::Attempt first = submitted();
  ran(first, ended(record::Outcome::failed, 7));
  write_slurm_log(first, "DUE TO JOB REQUEUE");
  asks_again(first);
  EXPECT_THAT(causes(), ElementsAre(Cause::failed));
}

TEST_F(History, ranks_that_ended_when_somebody_requeued_the_job_have_not_failed) {
  const record::Attempt first = submitted();
  ran(first, ended(record::Outcome::failed, 143, "rank 0 (n1) was terminated externally"));
  write_slurm_log(first, "DUE TO JOB REQUEUE");
  EXPECT_THAT(causes(), ElementsAre(Cause::requeued));
}

TEST_F(History, host_lost_by_the_run_is_a_node_failure) {
  const record::Attempt first = submitted();
  ran(first, ended(record::Outcome::failed, 1,
                   "rank 1 (n2) sent no heartbeat for 8.2 s, and its host acknowledges no packets: the node "
                   "or its link is down"));
  write_slurm_log(first, "DUE TO JOB REQUEUE");
  asks_again(first);
  EXPECT_THAT(causes(), ElementsAre(Cause::node_failed));
}

TEST_F(History, requeue_after_a_lost_rank_is_a_node_failure) {
  const record::Attempt first = submitted();
  ran(first, lost_a_rank());
  ran(*run_.start_attempt(""), lost_a_rank());
  EXPECT_THAT(causes(), ElementsAre(Cause::node_failed, Cause::failed));
  EXPECT_EQ(history_of(run_, "7").back().cause, Cause::node_failed);
  EXPECT_EQ(history_of(run_, "7_2").back().cause, Cause::failed);  // the next link of a chain
  write_slurm_log(first, "DUE TO JOB REQUEUE");
  EXPECT_EQ(history_of(run_, "7").back().cause, Cause::requeued);  // a user requested it
  asks_again(*run_.last_attempt());
  EXPECT_EQ(history_of(run_, "7").back().cause, Cause::failed);
}

TEST_F(History, history_restarts_with_each_submission) {
  ran(submitted(), ended(record::Outcome::failed, 7));
  const record::Attempt second = submitted();
  EXPECT_THAT(causes(), ElementsAre());
  ran(second, ended(kStopped, 75), CheckpointStamp{"/c/step-1", 12.5});
  const auto history = history_of(run_);
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].number, 2);
  EXPECT_EQ(history[0].started_from, (CheckpointStamp{"/c/step-1", 12.5}));
}

TEST_F(History, user_cancel_takes_precedence_except_over_success) {
  const record::Attempt first = submitted();
  ran(first, ended(kStopped, 75));
  auto events = record::EventWriter::open(first.cancel_events());
  ASSERT_TRUE(write_event(*events, record::CancelRequested{"ana", "login1"}).ok());
  EXPECT_THAT(causes(), ElementsAre(Cause::cancelled));
}

TEST(CheckpointStamp, a_file_written_again_is_another_one) {
  TempDirectory box;
  EXPECT_EQ(checkpoint_stamp(""), CheckpointStamp());
  ASSERT_TRUE(write_file(box / "c.pt", "1").ok());
  const CheckpointStamp before = checkpoint_stamp(box / "c.pt");
  EXPECT_EQ(before, checkpoint_stamp(box / "c.pt"));
  std::filesystem::last_write_time(box / "c.pt",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_NE(before, checkpoint_stamp(box / "c.pt"));
}

}  // namespace
}  // namespace stoker::launch
