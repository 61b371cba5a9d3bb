#include "launch/next/history.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sys/stat.h>

#include "base/file.h"
#include "slurm/script/batch_log.h"

namespace stoker::launch {
namespace {

constexpr ByteCount kLongestLog = 256_MiB;
// Slurm writes whole seconds, and the clocks of two hosts differ a little.
constexpr double kClockSlack = 2;

struct Records {
  std::optional<double> began;
  Mark began_with;
  std::optional<record::AttemptEnded> ended;
  std::string job;  // of Slurm
  bool was_submitted = false;
  bool is_cancelled = false;
  bool has_asked_again = false;  // the run itself, to be started again
};

Records read_records(const record::Attempt& attempt) {
  Records records;
  const auto log = record::read_attempt_events(attempt.folder());
  if (!log.ok()) return records;
  for (const record::Event& event : log->events) {
    if (const auto started = record::attempt_started(event)) {
      if (!records.began) records.began = event.time;
      records.began_with = {started->resume, started->resume_written};
      records.job = started->scheduler_job;
    } else if (auto ended = record::attempt_ended(event)) {
      records.ended = std::move(ended);
    } else if (record::submitted(event) || record::submitting(event)) {
      records.was_submitted = true;
    } else if (record::cancel_asked(event)) {
      records.is_cancelled = true;
    } else if (record::requeue_asked(event)) {
      records.has_asked_again = true;
    }
  }
  return records;
}

Cause cause_of_word(slurm::JobState word) {
  switch (word) {
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

// `word`: what Slurm wrote while the attempt ran, if it did. `next_job`: the job after it.
Cause judge(const Records& records, std::optional<slurm::JobState> word, std::string_view next_job) {
  if (records.ended && records.ended->outcome == record::Outcome::done) return Cause::done;
  if (records.is_cancelled) return Cause::cancelled;
  if (word == slurm::JobState::preempted || word == slurm::JobState::node_failed) return cause_of_word(*word);
  if (records.ended && records.ended->exit_code == 75) return Cause::stopped;
  // Ranks that Slurm ended may look as if they had failed, where the supervisor saw them go before it heard
  // why.
  if (word == slurm::JobState::pending && !records.has_asked_again) return Cause::requeued;
  // A run that asked to be started again had come to its own end before.
  const bool is_interrupted = !records.ended || (records.ended->outcome == record::Outcome::stopped &&
                                                 records.ended->exit_code > 128);
  if (word && (is_interrupted || *word != slurm::JobState::pending)) return cause_of_word(*word);
  if (!records.ended) return Cause::node_failed;
  // Who asks for a job once more is told of in its log.
  const bool is_started_again = !next_job.empty() && records.job == next_job && !word;
  if (records.ended->is_loss && is_started_again) return Cause::node_failed;
  return cause_of(records.ended->outcome, records.ended->exit_code, records.ended->reason);
}

}  // namespace

Cause cause_of(record::Outcome outcome, int exit_code, std::string_view reason) {
  if (outcome == record::Outcome::done) return Cause::done;
  if (exit_code == 75) return Cause::stopped;
  if (reason.find("out of memory") != std::string_view::npos) return Cause::out_of_memory;
  // The run sees that a host is gone long before Slurm does (SlurmdTimeout, mostly minutes).
  if (reason.find("the node or its link is gone") != std::string_view::npos) return Cause::node_failed;
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
      return "time is over";
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

Mark mark_of(const Path& checkpoint) {
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
  const std::vector<slurm::BatchEnding> words = slurm::endings(log, "");
  std::vector<PastAttempt> history;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double begin = *all[i].second.began - kClockSlack;
    const double end = i + 1 < all.size() ? *all[i + 1].second.began - kClockSlack : 1e18;
    std::optional<slurm::JobState> word;
    for (const slurm::BatchEnding& ending : words) {
      if (ending.time && *ending.time >= begin && *ending.time < end) word = ending.state;
    }
    const std::string_view next = i + 1 < all.size() ? std::string_view(all[i + 1].second.job) : next_job;
    history.push_back({all[i].first, judge(all[i].second, word, next), all[i].second.began_with});
  }
  return history;
}

}  // namespace stoker::launch
