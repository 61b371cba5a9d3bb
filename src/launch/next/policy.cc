#include "launch/next/policy.h"

#include <algorithm>
#include <optional>

namespace stoker::launch {
namespace {

struct RestartLimit {
  std::uint32_t limit = 0;
  std::string_view key;
};

// Nothing where no limit applies.
std::optional<RestartLimit> limit_of(Cause cause, const job::Job& job) {
  const job::RestartOptions& restart = job.restart;
  switch (cause) {
    case Cause::preempted:
      return RestartLimit{restart.preempted, "restart.preempted"};
    case Cause::node_failed:
      return RestartLimit{restart.node_failed, "restart.node_failed"};
    case Cause::stopped:
    case Cause::timeout:
      if (job.chain.is_enabled()) return std::nullopt;
      return RestartLimit{restart.timeout, "restart.timeout"};
    case Cause::failed:
      return RestartLimit{restart.failed, "restart.failed"};
    case Cause::out_of_memory:
      return RestartLimit{restart.out_of_memory, "restart.out_of_memory"};
    default:
      return std::nullopt;
  }
}

// These two count as one: a run at its time limit has saved or has not.
bool is_same(Cause a, Cause b) {
  const auto is_time = [](Cause cause) { return cause == Cause::stopped || cause == Cause::timeout; };
  return a == b || (is_time(a) && is_time(b));
}

// The last attempts that started from the current checkpoint. Attempts ended from outside do not count.
std::uint32_t without_progress(std::span<const PastAttempt> history, const CheckpointStamp& now) {
  std::uint32_t count = 0;
  for (auto past = history.rbegin(); past != history.rend() && past->started_from == now; ++past) {
    const bool is_from_outside = past->cause == Cause::preempted || past->cause == Cause::node_failed ||
                                 past->cause == Cause::requeued;
    if (!is_from_outside) ++count;
  }
  return count;
}

}  // namespace

Verdict judge_next(const job::Job& job, std::span<const PastAttempt> history, const CheckpointStamp& now) {
  if (history.empty()) return Verdict::yes();
  const Cause cause = history.back().cause;
  if (cause == Cause::done) return Verdict::no("");
  if (cause == Cause::cancelled) return Verdict::no("was cancelled");
  if (cause == Cause::requeued) return Verdict::yes();
  if (const auto rule = limit_of(cause, job)) {
    const auto times = static_cast<std::uint32_t>(std::count_if(
        history.begin(), history.end(), [&](const PastAttempt& past) { return is_same(past.cause, cause); }));
    if (rule->limit == 0) return {false, format("{} ({}: 0)", to_text(cause), rule->key), true};
    if (times > rule->limit)
      return Verdict::no(format("{} {} times ({}: {})", to_text(cause), times, rule->key, rule->limit));
  }
  const std::uint32_t idle = without_progress(history, now);
  if (idle >= job.restart.without_progress) {
    const std::string place =
        now.path.empty() ? "no checkpoint yet" : "no checkpoint after " + Path(now.path).filename().string();
    return Verdict::no(format("{} attempt{} without progress: {} (restart.without_progress: {})", idle,
                              idle == 1 ? "" : "s in a row", place, job.restart.without_progress));
  }
  return Verdict::yes();
}

}  // namespace stoker::launch
