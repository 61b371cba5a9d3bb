#include "report/sentence.h"

#include <cmath>

#include "base/exit_code.h"
#include "report/metric_curves.h"
#include "stoker/time.h"

namespace stoker::report {

namespace {

std::string count_of(std::int64_t count, std::string_view one, std::string_view many) {
  return format("{} {}", grouped(static_cast<std::uint64_t>(count)), count == 1 ? one : many);
}

std::string times(int count) {
  return count == 1 ? "once" : count == 2 ? "twice" : format("{} times", count);
}

std::string subject(const RunFacts& facts) {
  std::string text = facts.description.name.empty() ? facts.id : facts.description.name;
  if (facts.capsule.data && !facts.capsule.data->empty()) {
    const Path source = Path(facts.capsule.data->front().source).lexically_normal();
    const std::string name =
        source.has_filename() ? source.filename().string() : source.parent_path().filename().string();
    if (!name.empty()) text += " on " + name;
  }
  return printable(text);
}

/// "61.2 % top-1 after 3 epochs", depending on the recorded metrics.
std::string result(const RunFacts& facts) {
  const Learning& learning = facts.learning;
  if (!learning.epochs.empty()) {
    const EpochPoint& last = learning.epochs.back();
    const std::string after = "after " + count_of(last.epoch + 1, "epoch", "epochs");
    if (std::isfinite(last.val_top1)) return format("{} top-1 {}", percent(last.val_top1), after);
    if (std::isfinite(last.train_top1))
      return format("{} top-1 in training {}", percent(last.train_top1), after);
    return format("loss {} {}", significant(last.train_loss), after);
  }
  if (!learning.steps.empty()) {
    return format("loss {} after {}", significant(learning.steps.back().loss),
                  count_of(learning.steps.back().step, "step", "steps"));
  }
  if (const MetricCurve* curve = main_curve(facts)) {
    const MetricPoint& last = curve->points.back();
    return format("{} {} after {}", printable(curve->name), significant(last.mean),
                  count_of(last.step, "step", "steps"));
  }
  return "";
}

/// " at epoch 3 step 118" from the beacon of the rank that failed first, or the last recorded step.
std::string position_text(const RunFacts& facts) {
  if (!facts.attempts.empty() && facts.state.first_rank) {
    for (const record::RankEnded& end : facts.attempts.back().ends) {
      if (end.rank == *facts.state.first_rank && end.step) {
        return format(" at epoch {} step {}", end.epoch.value_or(0) + 1, *end.step);
      }
    }
  }
  if (!facts.learning.steps.empty()) return format(" after step {}", facts.learning.steps.back().step);
  return facts.learning.has_metrics ? " before the first step" : "";
}

std::string outcome(const RunFacts& facts) {
  const std::string reached = result(facts);
  const std::string& word = facts.state_word;
  if (word == "done") return reached.empty() ? word : reached;
  if (word == "running") return reached.empty() ? word : format("{}, {}", word, reached);
  if (word == "created") return "never started";
  if (word == "queued" || word == "unknown") return word;
  const bool is_saved = word == "stopped" && facts.state.exit_code == exit_code::kStoppedAfterCheckpoint;
  return word + position_text(facts) + (is_saved ? ", can be resumed" : "");
}

}  // namespace

std::string percent(double fraction) {
  return std::isfinite(fraction) ? format("{:.1f} %", 100 * fraction) : "-";
}

std::string significant(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  if (size >= 999.5) return (value < 0 ? "-" : "") + grouped(static_cast<std::uint64_t>(std::llround(size)));
  if (size >= 99.95) return format("{:.0f}", value);
  if (size >= 9.995) return format("{:.1f}", value);
  if (size >= 0.9995) return format("{:.2f}", value);
  if (size >= 0.001 || size == 0) return format("{:.3f}", value);
  return format("{:.2e}", value);
}

std::string metric_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return significant(value);
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds == 0) return "0 s";
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(std::min(seconds, 1e9))));
}

std::string result_sentence(const RunFacts& facts) {
  std::string text = subject(facts) + ": " + outcome(facts);
  if (facts.running_s > 0) text += ", " + seconds_text(facts.running_s);
  text += ", " + count_of(facts.world_size(), "rank", "ranks");
  if (facts.resumes() > 0) text += ", resumed " + times(facts.resumes());
  const int restarts = static_cast<int>(facts.attempts.size()) - 1 - facts.resumes();
  if (restarts > 0) text += ", restarted " + times(restarts);
  return text;
}

std::string state_text(const RunFacts& facts) {
  std::string text = facts.state_word;
  if (facts.state.exit_code && text != "done") {
    text += format(", exit code {}", *facts.state.exit_code);
  }
  return text;
}

}  // namespace stoker::report
