// Metrics of a rank's command for record.metrics_from: from the lines of its output, and from the files that
// it writes for TensorBoard and with Lightning. The supervisor of the rank feeds it; it writes
// points-<rank>-log.csv and similar files of the attempt. One thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "observe/metrics/log_metrics.h"
#include "observe/metrics/tracker_files.h"
#include "record/points/points.h"

namespace stoker::rank {

class MetricCollector {
 public:
  /// `from` is the value of kMetricsVariable. Collects nothing for "none", and for an expression that is
  /// invalid: the job file was checked before.
  MetricCollector(std::string_view from, observe::TrackerOptions options);

  /// Takes the next bytes of an output stream: 0 standard output, 1 standard error.
  void feed(int stream, std::string_view bytes);
  /// Reads the bytes of both: call it after both were polled. Progress bars on standard error have the step
  /// of the lines on standard output, so that standard error comes first.
  void read_lines();
  /// Reads the files that the processes have opened. Returns problems to show once.
  std::vector<std::string> poll(const std::vector<pid_t>& processes);
  /// Call it after the processes have ended.
  std::vector<std::string> finish();

 private:
  std::optional<observe::LogMetrics> lines_;
  std::array<std::string, 2> received_;
  std::array<observe::LineSplitter, 2> splitters_;
  record::PointAppender points_;
  std::optional<observe::TrackerFiles> files_;
};

}  // namespace stoker::rank
