#include "rank/verdict.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

#include "rank/process/signals.h"
#include "stoker/time.h"

namespace stoker::rank {
namespace {

struct RankFailure {
  const RankStatus* status = nullptr;
  double time = 0;
  int exit_code = 1;
  bool is_sudden = false;

  bool is_before(const RankFailure& other) const {
    return is_sudden == other.is_sudden ? time < other.time : is_sudden;
  }
};

// Libraries raise SIGABRT when a peer is gone; users and schedulers send SIGTERM and similar signals to all
// ranks.
bool is_sudden(const Exit& exit) {
  return exit.signal == SIGKILL || exit.signal == SIGSEGV || exit.signal == SIGBUS || exit.signal == SIGILL ||
         exit.signal == SIGFPE;
}

std::optional<RankFailure> failure_of(const RankStatus& status) {
  if (status.detected_failure) {
    return RankFailure{&status, status.detected_failure->time, status.detected_failure->exit_code,
                       status.detected_failure->is_sudden};
  }
  if (!status.ended || status.ended->stopped_by_us) return std::nullopt;
  const int code = status.ended->exit.shell_code();
  if (code == 0 || code == kStoppedAfterCheckpoint) return std::nullopt;
  return RankFailure{&status, status.ended->time, code, is_sudden(status.ended->exit)};
}

// Only the kernel, or something outside the run, kills a rank this way.
bool is_loss(const RankStatus& status) {
  if (status.detected_failure) return status.detected_failure->is_loss;
  return status.ended && status.ended->exit.signal == SIGKILL &&
         reason(*status.ended).find("out of memory") == std::string::npos;
}

bool left_with_75(const RankStatus& status) {
  return status.ended && status.ended->exit.shell_code() == kStoppedAfterCheckpoint;
}

constexpr std::string_view kStopped = "stopped";
constexpr std::string_view kFailedAfterIt = "failed later";
constexpr std::string_view kDoneBeforeIt = "done earlier";
constexpr std::string_view kDone = "done";
constexpr std::string_view kNeverStarted = "never started";

// The outcome of a rank, in addition to the first failure.
std::string_view outcome_of(const RankStatus& status, const std::optional<RankFailure>& cause) {
  if (failure_of(status)) return kFailedAfterIt;
  if (!status.ended) return status.joined ? kStopped : kNeverStarted;
  if (status.ended->stopped_by_us || left_with_75(status)) return kStopped;
  return cause && status.ended->time < cause->time ? kDoneBeforeIt : kDone;
}

std::string seconds_text(double seconds) {
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

}  // namespace

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    // Two neighbors read better as a list.
    if (end - i > 2) text += format("-{}", ranks[end - 1]);
    i = end - i > 2 ? end : i + 1;
  }
  return text;
}

std::string describe_failure(const RankStatus& status) {
  const std::string who = format("rank {} ({})", status.rank.value, printable(status.host));
  if (status.detected_failure) return format("{} {}", who, status.detected_failure->what);
  if (!status.ended) return format("{} is running", who);
  if (!status.ended->start_error.empty())
    return format("{} never started: {}", who, status.ended->start_error);
  const std::string when = status.ended->where.is_known()
                               ? format("at {}", to_text(status.ended->where))
                               : format("after {}", seconds_text(status.ended->ran_s));
  return format("{} exited {}: {}", who, when, reason(*status.ended));
}

std::string describe_other_ranks(const std::vector<RankStatus>& statuses, std::optional<int> first) {
  std::optional<RankFailure> cause;
  for (const RankStatus& status : statuses) {
    if (first && status.rank.value == *first) cause = failure_of(status);
  }
  std::string text;
  for (const std::string_view fate : {kStopped, kFailedAfterIt, kDoneBeforeIt, kDone, kNeverStarted}) {
    std::vector<int> ranks;
    for (const RankStatus& status : statuses) {
      const bool is_first = first && status.rank.value == *first;
      if (!is_first && outcome_of(status, cause) == fate) ranks.push_back(status.rank.value);
    }
    if (!ranks.empty()) text += format("{}{} {}", text.empty() ? "" : "; ", name_ranks(ranks), fate);
  }
  return text;
}

std::string describe_stop(const std::vector<RankStatus>& statuses, const StopFacts& stop) {
  const std::string asked_by = stop.asked_by.empty() ? "" : stop.asked_by + ", ";
  const std::string before = stop.before.empty() ? "" : " before " + stop.before;
  if (stop.has_checkpoint) return format("{}stopped after a checkpoint{}", asked_by, before);
  std::vector<int> ranks;
  for (const RankStatus& status : statuses) {
    if (left_with_75(status)) ranks.push_back(status.rank.value);
  }
  return format(
      "{}{} exited with code {} (saved and stopped){}, but there is no checkpoint (STOKER_CHECKPOINT_DIR)",
      asked_by, name_ranks(ranks), kStoppedAfterCheckpoint, before);
}

std::string describe_lost_output(const std::vector<RankStatus>& statuses) {
  for (const RankStatus& status : statuses) {
    if (status.ended && !status.ended->log_error.empty())
      return format("rank {} ({}): {}", status.rank.value, printable(status.host), status.ended->log_error);
  }
  return "";
}

std::vector<std::string> describe_stacks(const std::vector<RankStatus>& statuses, std::size_t count) {
  std::map<std::string, std::vector<int>> ranks;  // by place
  for (const RankStatus& status : statuses) {
    if (status.ended && !status.ended->stack.empty())
      ranks[printable(status.ended->stack)].push_back(status.rank.value);
  }
  std::vector<std::pair<std::string, std::vector<int>>> places(ranks.begin(), ranks.end());
  std::ranges::stable_sort(places, {}, [](const auto& place) { return place.second.size(); });
  if (places.size() > count) places.resize(count);
  std::vector<std::string> lines;
  for (const auto& [place, members] : places)
    lines.push_back(format("{} {} in {}", name_ranks(members), members.size() == 1 ? "was" : "were", place));
  return lines;
}

record::AttemptEnded to_event(const Ending& ending) {
  record::AttemptEnded event;
  event.outcome = ending.outcome;
  event.exit_code = ending.exit_code;
  event.first_rank = ending.first_rank;
  event.reason = ending.cause;
  event.is_loss = ending.is_loss;
  event.lost_output = ending.lost_output;
  return event;
}

bool has_failed_before(const std::vector<RankStatus>& statuses, double time) {
  return std::any_of(statuses.begin(), statuses.end(), [&](const RankStatus& status) {
    const auto failure = failure_of(status);
    return failure && !status.detected_failure && failure->time < time &&
           !is_termination_signal(failure->exit_code - 128);
  });
}

Ending judge(const std::vector<RankStatus>& statuses) {
  std::optional<RankFailure> cause;
  for (const RankStatus& status : statuses) {
    const auto failure = failure_of(status);
    if (failure && (!cause || failure->is_before(*cause))) cause = failure;
  }
  Ending ending;
  if (cause) {
    ending.outcome = record::Outcome::failed;
    ending.exit_code = cause->exit_code;
    ending.first_rank = cause->status->rank.value;
    ending.cause = describe_failure(*cause->status);
    ending.is_loss = is_loss(*cause->status);
    ending.other_ranks = describe_other_ranks(statuses, ending.first_rank);
    if (cause->status->ended) ending.last_line = cause->status->ended->last_line;
  } else if (std::any_of(statuses.begin(), statuses.end(), left_with_75)) {
    ending.outcome = record::Outcome::stopped;
    ending.exit_code = kStoppedAfterCheckpoint;
    ending.cause = describe_stop(statuses, {});
  }
  return ending;
}

}  // namespace stoker::rank
