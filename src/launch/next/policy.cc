#include "launch/next/policy.h"

#include <algorithm>
#include <optional>

namespace stoker::launch {
namespace {

struct Rule {
  std::uint32_t limit = 0;
  std::string_view key;
};

// Nothing where no limit decides.
std::optional<Rule> rule_of(Cause cause, const job::Job& job) {
  const job::RestartOptions& restart = job.restart;
  switch (cause) {
    case Cause::preempted:
      return Rule{restart.preempted, "restart.preempted"};
    case Cause::node_failed:
      return Rule{restart.node_failed, "restart.node_failed"};
    case Cause::stopped:
    case Cause::timeout:
      if (job.chain.is_on()) return std::nullopt;
      return Rule{restart.timeout, "restart.timeout"};
    case Cause::failed:
      return Rule{restart.failed, "restart.failed"};
    case Cause::out_of_memory:
      return Rule{restart.out_of_memory, "restart.out_of_memory"};
    default:
      return std::nullopt;
  }
}

// Those two count as one: a run whose time is over has saved, or has not.
bool is_same(Cause a, Cause b) {
  const auto is_time = [](Cause cause) { return cause == Cause::stopped || cause == Cause::timeout; };
  return a == b || (is_time(a) && is_time(b));
}

// Attempts in a row up to the last that began where the run is now. What ends an attempt from outside says
// nothing about it.
std::uint32_t without_progress(std::span<const PastAttempt> history, const Mark& now) {
  std::uint32_t count = 0;
  for (auto past = history.rbegin(); past != history.rend() && past->began_with == now; ++past) {
    const bool is_from_outside = past->cause == Cause::preempted || past->cause == Cause::node_failed ||
                                 past->cause == Cause::requeued;
    if (!is_from_outside) ++count;
  }
  return count;
}

}  // namespace

Verdict judge_next(const job::Job& job, std::span<const PastAttempt> history, const Mark& now) {
  if (history.empty()) return Verdict::yes();
  const Cause cause = history.back().cause;
  if (cause == Cause::done) return Verdict::no("");
  if (cause == Cause::cancelled) return Verdict::no("was cancelled");
  if (cause == Cause::requeued) return Verdict::yes();
  if (const auto rule = rule_of(cause, job)) {
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
