#include "launch/next/history.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "record/run_events.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;

// A run whose attempts begin 1000 s apart from a fixed time on.
class History : public ::testing::Test {
 protected:
  static constexpr double kBegin = 1'763'719'000;

  History() : run_(*record::RunFolder::create(box_.path(), {.name = "digits"}, "")) {}

  record::Attempt submitted() {
    auto attempt = *run_.start_attempt("");
    auto events = record::EventWriter::open(attempt.submit_events());
    CHECK(write_event(*events, record::Submitted{.scheduler_job = "7"}).ok());
    return attempt;
  }
  // The next attempt begins; nothing for one that was killed.
  void ran(const record::Attempt& attempt, std::optional<record::AttemptEnded> ended, const Mark& mark = {}) {
    ++begun_;
    auto events = record::EventWriter::open(attempt.node_events(0));
    const double time = kBegin + 1000 * begun_;
    CHECK(events
              ->write_at(time, record::kAttemptStarted,
                         std::vector<record::Field>{{"node", std::int64_t{0}},
                                                    {"scheduler_job", std::string("7")},
                                                    {"resume", mark.path},
                                                    {"resume_written", mark.written}})
              .ok());
    if (ended) CHECK(write_event(*events, *ended).ok());
  }
  // What Slurm writes while the last attempt runs.
  void slurm_says(const record::Attempt& submitted, std::string_view why) {
    const auto time = static_cast<std::int64_t>(kBegin + 1000 * begun_ + 500);
    log_ += format("slurmstepd-n1: error: *** JOB {} ON n1 CANCELLED AT {} {} ***\n", 7 + begun_, time, why);
    CHECK(write_file(submitted.batch_log(), log_).ok());
  }
  static void asks_again(const record::Attempt& attempt) {
    auto events = record::EventWriter::open(attempt.next_events());
    CHECK(write_event(*events, record::RequeueAsked{.job = "7"}).ok());
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

TEST_F(History, own_endings_are_told_apart) {
  ran(submitted(), ended(kStopped, 75));
  ran(*run_.start_attempt(""), ended(kStopped, 1, "time 2s is over (chain.time_per_link)"));
  ran(*run_.start_attempt(""), ended(record::Outcome::failed, 7, "rank 1 (n2) left: exit code 7"));
  ran(*run_.start_attempt(""),
      ended(record::Outcome::failed, 137, "rank 1: killed by signal 9, out of memory"));
  ran(*run_.start_attempt(""), ended(record::Outcome::done, 0));
  EXPECT_THAT(causes(),
              ElementsAre(Cause::stopped, Cause::timeout, Cause::failed, Cause::out_of_memory, Cause::done));
}

TEST_F(History, slurm_s_word_counts_where_the_run_was_interrupted) {
  const record::Attempt first = submitted();
  ran(first, ended(kStopped, 143, "interrupted by SIGTERM"));
  slurm_says(first, "DUE TO PREEMPTION");
  ran(*run_.start_attempt(""), std::nullopt);
  slurm_says(first, "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS");
  ran(*run_.start_attempt(""), std::nullopt);                         // killed without a word
  ran(*run_.start_attempt(""), ended(record::Outcome::failed, 143));  // its ranks, by Slurm
  slurm_says(first, "DUE TO TIME LIMIT");
  ran(*run_.start_attempt(""), ended(kStopped, 143));
  slurm_says(first, "DUE TO JOB REQUEUE");
  ran(*run_.start_attempt(""), ended(kStopped, 143));
  slurm_says(first, "");
  EXPECT_THAT(causes(), ElementsAre(Cause::preempted, Cause::node_failed, Cause::node_failed, Cause::timeout,
                                    Cause::requeued, Cause::cancelled));
}

TEST_F(History, what_was_started_again_after_a_failure_of_its_own_has_failed) {
  const record::Attempt first = submitted();
  ran(first, ended(record::Outcome::failed, 7));
  slurm_says(first, "DUE TO JOB REQUEUE");
  asks_again(first);
  EXPECT_THAT(causes(), ElementsAre(Cause::failed));
}

TEST_F(History, ranks_that_ended_when_somebody_requeued_the_job_have_not_failed) {
  const record::Attempt first = submitted();
  ran(first, ended(record::Outcome::failed, 143, "rank 0 (n1) was ended from outside"));
  slurm_says(first, "DUE TO JOB REQUEUE");
  EXPECT_THAT(causes(), ElementsAre(Cause::requeued));
}

TEST_F(History, a_host_that_the_run_itself_sees_go_is_a_lost_node) {
  const record::Attempt first = submitted();
  ran(first,
      ended(record::Outcome::failed, 1,
            "rank 1 (n2) gave no sign for 8.2 s, and its host acknowledges no packet: the node or its link "
            "is gone"));
  slurm_says(first, "DUE TO JOB REQUEUE");
  asks_again(first);
  EXPECT_THAT(causes(), ElementsAre(Cause::node_failed));
}

TEST_F(History, a_job_that_lost_a_rank_and_begins_again_unasked_had_lost_a_node) {
  const record::Attempt first = submitted();
  ran(first, lost_a_rank());
  ran(*run_.start_attempt(""), lost_a_rank());
  EXPECT_THAT(causes(), ElementsAre(Cause::node_failed, Cause::failed));
  EXPECT_EQ(history_of(run_, "7").back().cause, Cause::node_failed);
  EXPECT_EQ(history_of(run_, "7_2").back().cause, Cause::failed);  // the next link of a chain
  slurm_says(first, "DUE TO JOB REQUEUE");
  EXPECT_EQ(history_of(run_, "7").back().cause, Cause::requeued);  // somebody asked for it
  asks_again(*run_.last_attempt());
  EXPECT_EQ(history_of(run_, "7").back().cause, Cause::failed);
}

TEST_F(History, begins_anew_with_each_submission) {
  ran(submitted(), ended(record::Outcome::failed, 7));
  const record::Attempt second = submitted();
  EXPECT_THAT(causes(), ElementsAre());
  ran(second, ended(kStopped, 75), Mark{"/c/step-1", 12.5});
  const auto history = history_of(run_);
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].number, 2);
  EXPECT_EQ(history[0].began_with, (Mark{"/c/step-1", 12.5}));
}

TEST_F(History, a_person_who_asked_for_the_end_counts_before_all_but_success) {
  const record::Attempt first = submitted();
  ran(first, ended(kStopped, 75));
  auto events = record::EventWriter::open(first.cancel_events());
  ASSERT_TRUE(write_event(*events, record::CancelAsked{"ana", "login1"}).ok());
  EXPECT_THAT(causes(), ElementsAre(Cause::cancelled));
}

TEST(Mark, a_file_written_again_is_another_one) {
  TempDirectory box;
  EXPECT_EQ(mark_of(""), Mark());
  ASSERT_TRUE(write_file(box / "c.pt", "1").ok());
  const Mark before = mark_of(box / "c.pt");
  EXPECT_EQ(before, mark_of(box / "c.pt"));
  std::filesystem::last_write_time(box / "c.pt",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_NE(before, mark_of(box / "c.pt"));
}

}  // namespace
}  // namespace stoker::launch
