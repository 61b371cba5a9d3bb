// The kinds of events that make up a run's history, declared once: writers call write_*, readers use the
// names and the same structs. `derive_state` and the report live on these. Format:
// docs/formats/run.md#events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/events.h"

namespace stoker::record {

inline constexpr std::string_view kAttemptStarted = "attempt_started";
inline constexpr std::string_view kAttemptEnded = "attempt_ended";
inline constexpr std::string_view kRankStarted = "rank_started";
inline constexpr std::string_view kRankEnded = "rank_ended";
inline constexpr std::string_view kStopping = "stopping";
inline constexpr std::string_view kCheckpointSaved = "checkpoint_saved";
inline constexpr std::string_view kResumed = "resumed";
inline constexpr std::string_view kSubmitting = "submitting";
inline constexpr std::string_view kSubmitted = "submitted";
inline constexpr std::string_view kSubmitFailed = "submit_failed";
inline constexpr std::string_view kCancelAsked = "cancel_asked";
inline constexpr std::string_view kNoNextAttempt = "no_next_attempt";
inline constexpr std::string_view kRequeueAsked = "requeue_asked";
inline constexpr std::string_view kStaged = "staged";

/// Which process, so that a reader on the same host can ask whether it still lives: pids are used again, so
/// its start time (field 22 of /proc/<pid>/stat) counts too, and pids mean something only within one boot of
/// one host and one pid namespace.
struct ProcessIdentity {
  std::string host;
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;
  std::string boot;  ///< "<boot id> <pid namespace>"
};

/// By the supervisor of each node, first.
struct AttemptStarted {
  int node = 0;
  ProcessIdentity supervisor;  ///< record::this_process()
  int world_size = 1;
  std::vector<std::string> command;
  std::string resume;  ///< checkpoint step folder, "" at a start from nothing
  std::optional<std::int64_t> resume_step;
  std::string scheduler_job;  ///< "" without Slurm; of a chain's link "812_3"
  double resume_written = 0;  ///< when its checkpoint was last changed, Unix seconds; 0 without one
  int links = 0;              ///< jobs of the chain at most; 0 outside of one
  bool may_restart = false;   ///< after some ends the job is started again when it has ended
};

/// By the supervisor, for each rank it started.
struct RankStarted {
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
};

/// By the supervisor, when a rank is gone. Exactly one of exit_code and signal is set.
struct RankEnded {
  int rank = 0;
  std::string host;
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool stopped_by_us = false;  ///< ended because another rank failed or a stop was asked for
  std::string phase;           ///< of the beacon; "" without one
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> step;
  std::string reason;  ///< one line for people: "killed by signal 9, out of memory (...)"
};

/// By the supervisor, when it begins to end the ranks: "rank 1 failed", "interrupted", "time limit".
struct Stopping {
  std::string reason;
};

/// How an attempt came out.
enum class Outcome { done, failed, stopped };
std::string_view to_text(Outcome outcome);
/// The exit code of a run that was stopped as its time was over. Where ranks saved before, it is theirs, 75.
inline constexpr int kOutOfTime = 1;

/// By the supervisor of each node, last.
struct AttemptEnded {
  int node = 0;
  Outcome outcome = Outcome::done;
  int exit_code = 0;
  std::optional<int> first_rank;  ///< the rank whose end decided
  std::string reason;
  std::string
      job_state;  ///< what the scheduler called its job when a signal ended it: "TIMEOUT"; "" not asked
  /// That rank was killed from outside, or was no longer heard of: a node that dies looks like this, too.
  bool is_loss = false;
};

/// By the trainer's rank 0, when a checkpoint is committed.
struct CheckpointSaved {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::string folder;
  std::int64_t bytes = 0;
  double seconds = 0;  ///< from the start of the save to the commit
  double stall_s = 0;  ///< how long training stood still for it
};

/// By the trainer's rank 0, when it loaded one.
struct Resumed {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::string folder;
};

/// By who submits an attempt, before the scheduler is asked: from here on a job may exist.
struct Submitting {
  std::string host;
  std::string comment;  ///< by which the job can be found in the scheduler
  int tasks = 1;        ///< of an array: how many supervisors will report a start
};

/// By the same, when the scheduler has taken it.
struct Submitted {
  std::string scheduler_job;
  int links = 0;                        ///< jobs of the chain at most; 0 outside of one
  std::vector<std::string> after = {};  ///< run folders that have to be done before it starts
};

/// By the same, when the scheduler has refused it, or could not be asked.
struct SubmitFailed {
  std::string reason;
  bool is_withdrawn = false;  ///< what it had taken of an array before is cancelled again
};

/// By who asks for the attempt's end, before the scheduler is asked.
struct CancelAsked {
  std::string user;
  std::string host;
};

/// By the job that has ended, or by the next one of its chain: the run does not go on by itself.
struct NoNextAttempt {
  std::string reason;
};

/// By the job that has ended: it asks the scheduler to start it again. Without this event who asked was not
/// the run.
struct RequeueAsked {
  std::string job;
};

/// By the supervisor, for each node: what was brought to its own disk before the ranks started, or taken back
/// after them.
struct Staged {
  int node = 0;
  std::string host;
  bool is_back = false;
  std::string folder;  ///< on that node
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  double seconds = 0;
};

Status write_event(EventWriter& out, const Staged& event);
Status write_event(EventWriter& out, const Submitting& event);
Status write_event(EventWriter& out, const Submitted& event);
Status write_event(EventWriter& out, const SubmitFailed& event);
Status write_event(EventWriter& out, const CancelAsked& event);
Status write_event(EventWriter& out, const NoNextAttempt& event);
Status write_event(EventWriter& out, const RequeueAsked& event);
Status write_event(EventWriter& out, const AttemptStarted& event);
Status write_event(EventWriter& out, const RankStarted& event);
Status write_event(EventWriter& out, const RankEnded& event);
Status write_event(EventWriter& out, const Stopping& event);
Status write_event(EventWriter& out, const AttemptEnded& event);
Status write_event(EventWriter& out, const CheckpointSaved& event);
Status write_event(EventWriter& out, const Resumed& event);

/// The event as a struct; nullopt when it is of another kind or lacks what identifies it.
std::optional<Staged> staged(const Event& event);
std::optional<Submitting> submitting(const Event& event);
std::optional<Submitted> submitted(const Event& event);
std::optional<SubmitFailed> submit_failed(const Event& event);
std::optional<CancelAsked> cancel_asked(const Event& event);
std::optional<NoNextAttempt> no_next_attempt(const Event& event);
std::optional<RequeueAsked> requeue_asked(const Event& event);
std::optional<AttemptStarted> attempt_started(const Event& event);
std::optional<RankStarted> rank_started(const Event& event);
std::optional<RankEnded> rank_ended(const Event& event);
std::optional<Stopping> stopping(const Event& event);
std::optional<AttemptEnded> attempt_ended(const Event& event);
std::optional<CheckpointSaved> checkpoint_saved(const Event& event);
std::optional<Resumed> resumed(const Event& event);

}  // namespace stoker::record
