#include "rank/verdict.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/time.h"
#include "rank/process/signals.h"

namespace stoker::rank {
namespace {

struct Failure {
  const RankStory* story = nullptr;
  double time = 0;
  int exit_code = 1;
  bool is_sudden = false;

  bool is_before(const Failure& other) const {
    return is_sudden == other.is_sudden ? time < other.time : is_sudden;
  }
};

// SIGABRT is what libraries do when a peer is gone, SIGTERM and the like what people and schedulers send to
// all.
bool is_sudden(const Exit& exit) {
  return exit.signal == SIGKILL || exit.signal == SIGSEGV || exit.signal == SIGBUS || exit.signal == SIGILL ||
         exit.signal == SIGFPE;
}

std::optional<Failure> failure_of(const RankStory& story) {
  if (story.judgement) {
    return Failure{&story, story.judgement->time, story.judgement->exit_code, story.judgement->is_sudden};
  }
  if (!story.ended || story.ended->stopped_by_us) return std::nullopt;
  const int code = story.ended->exit.shell_code();
  if (code == 0 || code == kStoppedAfterCheckpoint) return std::nullopt;
  return Failure{&story, story.ended->time, code, is_sudden(story.ended->exit)};
}

// Nobody but the kernel, or somebody outside, does that to a rank.
bool is_loss(const RankStory& story) {
  if (story.judgement) return story.judgement->is_loss;
  return story.ended && story.ended->exit.signal == SIGKILL &&
         reason(*story.ended).find("out of memory") == std::string::npos;
}

bool left_with_75(const RankStory& story) {
  return story.ended && story.ended->exit.shell_code() == kStoppedAfterCheckpoint;
}

constexpr std::string_view kStopped = "stopped";
constexpr std::string_view kFailedAfterIt = "failed after it";
constexpr std::string_view kDoneBeforeIt = "done before it";
constexpr std::string_view kDone = "done";
constexpr std::string_view kNeverStarted = "never started";

// What became of a rank, beside the one that failed first, if one did.
std::string_view fate_of(const RankStory& story, const std::optional<Failure>& cause) {
  if (failure_of(story)) return kFailedAfterIt;
  if (!story.ended) return story.joined ? kStopped : kNeverStarted;
  if (story.ended->stopped_by_us || left_with_75(story)) return kStopped;
  return cause && story.ended->time < cause->time ? kDoneBeforeIt : kDone;
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
    // Two neighbours read better as a list.
    if (end - i > 2) text += format("-{}", ranks[end - 1]);
    i = end - i > 2 ? end : i + 1;
  }
  return text;
}

std::string describe_failure(const RankStory& story) {
  const std::string who = format("rank {} ({})", story.rank.value, printable(story.host));
  if (story.judgement) return format("{} {}", who, story.judgement->what);
  if (!story.ended) return format("{} is running", who);
  if (!story.ended->start_error.empty()) return format("{} never started: {}", who, story.ended->start_error);
  const std::string when = story.ended->where.is_known()
                               ? format("at {}", to_text(story.ended->where))
                               : format("after {}", seconds_text(story.ended->ran_s));
  return format("{} left {}: {}", who, when, reason(*story.ended));
}

std::string describe_others(const std::vector<RankStory>& stories, std::optional<int> first) {
  std::optional<Failure> cause;
  for (const RankStory& story : stories) {
    if (first && story.rank.value == *first) cause = failure_of(story);
  }
  std::string text;
  for (const std::string_view fate : {kStopped, kFailedAfterIt, kDoneBeforeIt, kDone, kNeverStarted}) {
    std::vector<int> ranks;
    for (const RankStory& story : stories) {
      const bool is_first = first && story.rank.value == *first;
      if (!is_first && fate_of(story, cause) == fate) ranks.push_back(story.rank.value);
    }
    if (!ranks.empty()) text += format("{}{} {}", text.empty() ? "" : "; ", name_ranks(ranks), fate);
  }
  return text;
}

std::string describe_stop(const std::vector<RankStory>& stories, const StopFacts& stop) {
  const std::string asked_by = stop.asked_by.empty() ? "" : stop.asked_by + ", ";
  const std::string before = stop.before.empty() ? "" : " before " + stop.before;
  if (stop.has_checkpoint) return format("{}stopped after a checkpoint{}", asked_by, before);
  std::vector<int> ranks;
  for (const RankStory& story : stories) {
    if (left_with_75(story)) ranks.push_back(story.rank.value);
  }
  return format(
      "{}{} left with exit code {} (saved and stopped){}, but there is no checkpoint (STOKER_CHECKPOINT_DIR)",
      asked_by, name_ranks(ranks), kStoppedAfterCheckpoint, before);
}

record::AttemptEnded to_event(const Ending& ending) {
  record::AttemptEnded event;
  event.outcome = ending.outcome;
  event.exit_code = ending.exit_code;
  event.first_rank = ending.first_rank;
  event.reason = ending.cause;
  event.is_loss = ending.is_loss;
  return event;
}

bool has_failed_before(const std::vector<RankStory>& stories, double time) {
  return std::any_of(stories.begin(), stories.end(), [&](const RankStory& story) {
    const auto failure = failure_of(story);
    return failure && !story.judgement && failure->time < time && !asks_for_the_end(failure->exit_code - 128);
  });
}

Ending judge(const std::vector<RankStory>& stories) {
  std::optional<Failure> cause;
  for (const RankStory& story : stories) {
    const auto failure = failure_of(story);
    if (failure && (!cause || failure->is_before(*cause))) cause = failure;
  }
  Ending ending;
  if (cause) {
    ending.outcome = record::Outcome::failed;
    ending.exit_code = cause->exit_code;
    ending.first_rank = cause->story->rank.value;
    ending.cause = describe_failure(*cause->story);
    ending.is_loss = is_loss(*cause->story);
    ending.others = describe_others(stories, ending.first_rank);
    if (cause->story->ended) ending.last_line = cause->story->ended->last_line;
  } else if (std::any_of(stories.begin(), stories.end(), left_with_75)) {
    ending.outcome = record::Outcome::stopped;
    ending.exit_code = kStoppedAfterCheckpoint;
    ending.cause = describe_stop(stories, {});
  }
  return ending;
}

}  // namespace stoker::rank
