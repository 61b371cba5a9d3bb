#include "rank/member/metric_collector.h"

#include <utility>

#include "stoker/time.h"

namespace stoker::rank {
namespace {

constexpr std::size_t kMostReceived = 1u << 20;

}  // namespace

MetricCollector::MetricCollector(std::string_view from, observe::TrackerOptions options)
    : points_(options.attempt / record::point_file_name(options.rank, "log")) {
  constexpr std::string_view kRegex = "regex:";
  const bool is_regex = from.starts_with(kRegex);
  if (!is_regex && from != "auto") return;
  auto lines = observe::LogMetrics::create(is_regex ? from.substr(kRegex.size()) : "");
  if (lines.ok()) lines_ = *std::move(lines);
  if (!is_regex) files_.emplace(std::move(options));
}

void MetricCollector::feed(int stream, std::string_view bytes) {
  if (!lines_) return;
  std::string& received = received_[static_cast<std::size_t>(stream)];
  received += bytes;
  if (received.size() > kMostReceived) read_lines();
}

void MetricCollector::read_lines() {
  if (received_[0].empty() && received_[1].empty()) return;
  const double time = unix_seconds(RealClock().wall());
  for (const std::size_t stream : {1, 0}) {
    splitters_[stream].feed(received_[stream], [&](std::string_view line) {
      const auto found = lines_->read(line);
      if (!found) return;
      for (const auto& [metric, value] : found->values) {
        if (record::check_metric_name(metric).ok())
          points_.add({.time = time, .step = found->step, .value = value, .metric = metric});
      }
    });
    received_[stream].clear();
    lines_->read_unfinished(splitters_[stream].unfinished());
  }
  points_.flush();
}

std::vector<std::string> MetricCollector::poll(const std::vector<pid_t>& processes) {
  return files_ ? files_->poll(processes) : std::vector<std::string>();
}

std::vector<std::string> MetricCollector::finish() {
  for (int stream : {0, 1}) feed(stream, "\n");
  if (lines_) read_lines();
  return files_ ? files_->finish() : std::vector<std::string>();
}

}  // namespace stoker::rank
