#include "launch/state/history.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sys/stat.h>

#include "base/exit_code.h"
#include "base/file.h"
#include "slurm/queue/batch_log.h"

namespace stoker::launch {
namespace {

constexpr ByteCount kLongestLog = 256_MiB;
// Slurm's timestamps are whole seconds, and the clocks of two hosts differ slightly.
constexpr double kClockSlack = 2;

struct Records {
  std::optional<double> began;
  CheckpointStamp started_from;
  std::optional<record::AttemptEnded> ended;
  std::string job;  // of Slurm
  bool was_submitted = false;
  bool is_cancelled = false;
  bool requeue_requested = false;  // the run requested it
};

Records read_records(const record::Attempt& attempt) {
  Records records;
  const auto log = record::read_attempt_events(attempt.folder());
  if (!log.ok()) return records;
  for (const record::Event& event : log->events) {
    if (const auto started = record::attempt_started(event)) {
      if (!records.began) records.began = event.time;
      records.started_from = {started->resume, started->resume_written};
      records.job = started->scheduler_job;
    } else if (auto ended = record::attempt_ended(event)) {
      records.ended = std::move(ended);
    } else if (record::submitted(event) || record::submitting(event)) {
      records.was_submitted = true;
    } else if (record::cancel_requested(event)) {
      records.is_cancelled = true;
    } else if (record::requeue_requested(event)) {
      records.requeue_requested = true;
    }
  }
  return records;
}

Cause cause_from_slurm(slurm::JobState slurm_state) {
  switch (slurm_state) {
    case slurm::JobState::timeout:
      return Cause::timeout;
    case slurm::JobState::preempted:
      return Cause::preempted;
    case slurm::JobState::node_failed:
      return Cause::node_failed;
    case slurm::JobState::pending:
      return Cause::requeued;
    case slurm::JobState::out_of_memory:
      return Cause::out_of_memory;
    default:
      return Cause::cancelled;
  }
}

// `slurm_state`: the state Slurm logged during the attempt, if any. `next_job`: the following job.
Cause judge(const Records& records, std::optional<slurm::JobState> slurm_state, std::string_view next_job) {
  if (records.ended && records.ended->outcome == record::Outcome::done) return Cause::done;
  if (records.is_cancelled) return Cause::cancelled;
  if (slurm_state == slurm::JobState::preempted || slurm_state == slurm::JobState::node_failed)
    return cause_from_slurm(*slurm_state);
  if (records.ended && records.ended->exit_code == exit_code::kStoppedAfterCheckpoint) return Cause::stopped;
  // Ranks ended by Slurm may look like failures if the supervisor saw them exit before the signal.
  if (slurm_state == slurm::JobState::pending && !records.requeue_requested) return Cause::requeued;
  // A run that requested a requeue had already ended by itself.
  const bool is_interrupted = !records.ended || (records.ended->outcome == record::Outcome::stopped &&
                                                 records.ended->exit_code > 128);
  if (slurm_state && (is_interrupted || *slurm_state != slurm::JobState::pending))
    return cause_from_slurm(*slurm_state);
  if (!records.ended) return Cause::node_failed;
  // A requeue by a user is in its log.
  const bool is_started_again = !next_job.empty() && records.job == next_job && !slurm_state;
  if (records.ended->is_loss && is_started_again) return Cause::node_failed;
  return cause_of(records.ended->outcome, records.ended->exit_code, records.ended->reason);
}

}  // namespace

Cause cause_of(record::Outcome outcome, int exit_code, std::string_view reason) {
  if (outcome == record::Outcome::done) return Cause::done;
  if (exit_code == exit_code::kStoppedAfterCheckpoint) return Cause::stopped;
  if (reason.find("out of memory") != std::string_view::npos) return Cause::out_of_memory;
  // The run detects a lost host minutes before Slurm does (SlurmdTimeout).
  if (reason.find("the node or its link is down") != std::string_view::npos) return Cause::node_failed;
  if (outcome == record::Outcome::failed) return Cause::failed;
  return exit_code > 128 ? Cause::cancelled : Cause::timeout;
}

std::string_view to_text(Cause cause) {
  switch (cause) {
    case Cause::done:
      return "done";
    case Cause::stopped:
      return "stopped after a checkpoint";
    case Cause::timeout:
      return "time limit";
    case Cause::preempted:
      return "preempted";
    case Cause::node_failed:
      return "node failed";
    case Cause::requeued:
      return "requeued";
    case Cause::failed:
      return "failed";
    case Cause::out_of_memory:
      return "out of memory";
    case Cause::cancelled:
      return "cancelled";
  }
  return "failed";
}

CheckpointStamp checkpoint_stamp(const Path& checkpoint) {
  if (checkpoint.empty()) return {};
  struct stat info{};
  const Path path = std::filesystem::absolute(checkpoint);
  if (::stat(path.c_str(), &info) != 0) return {path.string(), 0};
  return {path.string(),
          static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec)};
}

std::vector<PastAttempt> history_of(const record::RunFolder& run, std::string_view next_job) {
  const auto attempts = run.attempts();
  if (!attempts.ok()) return {};
  std::vector<std::pair<int, Records>> all;
  std::string log;
  for (const record::Attempt& attempt : *attempts) {
    Records records = read_records(attempt);
    if (records.was_submitted) {
      all.clear();
      auto text = read_file(attempt.batch_log(), kLongestLog);
      log = text.ok() ? std::move(*text) : "";
    }
    if (records.began) all.emplace_back(attempt.number(), std::move(records));
  }
  const std::vector<slurm::JobTermination> batch_endings = slurm::parse_terminations(log, "");
  std::vector<PastAttempt> history;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double begin = *all[i].second.began - kClockSlack;
    const double end = i + 1 < all.size() ? *all[i + 1].second.began - kClockSlack : 1e18;
    std::optional<slurm::JobState> slurm_state;
    for (const slurm::JobTermination& ending : batch_endings) {
      if (ending.time && *ending.time >= begin && *ending.time < end) slurm_state = ending.state;
    }
    const std::string_view next = i + 1 < all.size() ? std::string_view(all[i + 1].second.job) : next_job;
    history.push_back({all[i].first, judge(all[i].second, slurm_state, next), all[i].second.started_from});
  }
  return history;
}

bool was_submitted(const record::RunFolder& run) {
  const auto attempts = run.attempts();
  return attempts.ok() && std::any_of(attempts->begin(), attempts->end(), [](const record::Attempt& attempt) {
           return path_exists(attempt.submit_events());
         });
}

}  // namespace stoker::launch
