#include "checkpoint/interval.h"

#include <algorithm>
#include <cmath>

#include "stoker/text.h"

namespace stoker::checkpoint {

namespace {

Duration duration_of(double seconds) {
  constexpr double kLongest = 3600.0 * 24 * 365 * 10;
  return std::chrono::duration_cast<Duration>(Seconds(std::min(seconds, kLongest)));
}

std::string seconds_text(double seconds) {
  if (seconds >= 10) return rounded_duration(duration_of(seconds));
  return seconds >= 0.1 ? format("{:.1f} s", seconds) : format("{:.0f} ms", seconds * 1e3);
}

}  // namespace

double daly_interval(double cost_s, double mtbf_s) {
  if (cost_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = cost_s / (2 * mtbf_s);
  return std::sqrt(2 * cost_s * mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost_s;
}

CheckpointCosts estimate_costs(std::uint64_t bytes) {
  constexpr double kCopy = 5e9;
  constexpr double kDisk = 0.5e9;
  CheckpointCosts facts;
  facts.stall_s = static_cast<double>(bytes) / kCopy;
  facts.write_s = static_cast<double>(bytes) / kDisk;
  return facts;
}

Interval choose_interval(const CheckpointCosts& facts) {
  const double mtbf_s = Seconds(facts.mtbf).count();
  const double best_s = std::max(0.0, daly_interval(facts.stall_s, mtbf_s));
  Interval interval;
  interval.reason =
      format("stall {}, write time {}{}, one failure per {}: Daly's optimum {}", seconds_text(facts.stall_s),
             seconds_text(facts.write_s), facts.is_measured ? "" : " (estimated)",
             rounded_duration(facts.mtbf), seconds_text(best_s));
  const double busy_s = facts.stall_s + facts.write_s;
  const double least_s = std::max(Seconds(kMinInterval).count(), busy_s);
  double every_s = best_s;
  if (every_s < least_s) {
    every_s = least_s;
    interval.reason += busy_s > Seconds(kMinInterval).count()
                           ? ", but at least the time of one save"
                           : format(", but at least {}", seconds_text(least_s));
  }
  if (facts.left) {
    // Twice the duration of a save: the last one may be slower than earlier ones.
    const double last_s = std::max(0.0, Seconds(*facts.left).count() - 2 * busy_s);
    if (every_s > last_s) {
      every_s = last_s;
      interval.reason += format(", but only {} left", rounded_duration(*facts.left));
    }
  }
  interval.every = duration_of(every_s);
  return interval;
}

}  // namespace stoker::checkpoint
