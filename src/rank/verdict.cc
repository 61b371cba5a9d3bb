#include "rank/verdict.h"

#include <csignal>
#include <utility>

#include "base/time.h"

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
  std::vector<std::pair<std::string, std::vector<int>>> groups = {
      {"stopped", {}}, {"failed after it", {}}, {"done", {}}, {"never started", {}}};
  for (const RankStory& story : stories) {
    if (first && story.rank.value == *first) continue;
    const bool is_stopped = story.ended && (story.ended->stopped_by_us ||
                                            story.ended->exit.shell_code() == kStoppedAfterCheckpoint);
    const std::size_t group = failure_of(story) ? 1 : is_stopped ? 0 : story.ended ? 2 : story.joined ? 0 : 3;
    groups[group].second.push_back(story.rank.value);
  }
  std::string text;
  for (const auto& [what, ranks] : groups) {
    if (!ranks.empty()) text += format("{}{} {}", text.empty() ? "" : "; ", name_ranks(ranks), what);
  }
  return text;
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

Ending judge(const std::vector<RankStory>& stories) {
  std::optional<Failure> cause;
  bool has_stopped = false;
  for (const RankStory& story : stories) {
    const auto failure = failure_of(story);
    if (failure && (!cause || failure->is_before(*cause))) cause = failure;
    has_stopped |= story.ended && story.ended->exit.shell_code() == kStoppedAfterCheckpoint;
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
  } else if (has_stopped) {
    ending.outcome = record::Outcome::stopped;
    ending.exit_code = kStoppedAfterCheckpoint;
    ending.cause = "stopped after a checkpoint";
  }
  return ending;
}

}  // namespace stoker::rank
