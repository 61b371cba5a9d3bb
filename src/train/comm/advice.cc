#include "train/comm/advice.h"

#include <algorithm>
#include <numeric>

#include "stoker/bytes.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::train {

namespace {

constexpr double kReportedShare = 0.05;  // of a step
// Below these limits a setting changes less than the variation between runs.
constexpr std::int64_t kWorthSplitting = 1 << 20;
constexpr std::int64_t kTiny = 64 << 10;
constexpr std::size_t kMany = 16;
constexpr std::int64_t kPieces = 4;

std::string share_text(double part) { return format("{:.0f} %", 100 * part); }
std::string time_text(double seconds) {
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

// The setting that reduces communication cost; empty if none does.
std::string setting_for(const CommunicationSettings& settings) {
  const std::int64_t bytes =
      std::accumulate(settings.buckets.begin(), settings.buckets.end(), std::int64_t{0});
  const std::size_t count = settings.buckets.size();
  const auto size_of = [](std::int64_t n) { return rounded(ByteCount{static_cast<std::uint64_t>(n)}); };
  if (count == 1 && bytes >= kWorthSplitting) {
    return format(
        "all gradients ({}) are exchanged in one bucket at the end of backward: train.bucket: {}KiB starts "
        "earlier",
        size_of(bytes), bytes / kPieces >> 10);
  }
  if (bytes < kTiny) return "";
  if (count >= kMany && bytes / static_cast<std::int64_t>(count) < kTiny) {
    return format("{} of gradients are exchanged in {} small buckets: train.bucket: {}KiB makes fewer",
                  size_of(bytes), count, bytes / kPieces >> 10);
  }
  if (!settings.is_compressed && bytes >= kWorthSplitting)
    return format("train.compress_gradients: bf16 halves the {} exchanged per step", size_of(bytes));
  return "";
}

}  // namespace

std::string communication_advice(std::span<const CommunicationStats> ranks,
                                 const CommunicationSettings& settings) {
  if (ranks.size() < 2) return "";
  const auto by_wait = [](const CommunicationStats& a, const CommunicationStats& b) {
    return a.waited_s < b.waited_s;
  };
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end(), by_wait);
  const double step_s = most->step_s;
  if (!(step_s > 0) || most->waited_s < kReportedShare * step_s) return "";
  const double moving = least->waited_s / step_s;
  const double lag_s = most->waited_s - least->waited_s;
  std::string text = format(
      "gradient exchange: ranks wait up to {} of a step of {}: {} for the transfer, {} for slower ranks",
      share_text(most->waited_s / step_s), time_text(step_s), share_text(moving), share_text(lag_s / step_s));
  const std::string setting = moving >= kReportedShare ? setting_for(settings) : "";
  if (!setting.empty()) return text + "; " + setting;
  if (lag_s >= kReportedShare * step_s) {
    return text +
           format("; rank {} is the slowest, which no communication setting changes", least - ranks.begin());
  }
  return text;
}

std::string stats_text(const CommunicationStats& facts) {
  return format("{} {}", facts.step_s, facts.waited_s);
}

CommunicationStats parse_stats(const std::string& text) {
  CommunicationStats facts;
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos || !parse_number(text.substr(0, blank), &facts.step_s) ||
      !parse_number(text.substr(blank + 1), &facts.waited_s))
    return {};
  return facts;
}

}  // namespace stoker::train
