// Points: values of metrics of any name, one a line, as programs log them (stoker.log, MetricLog, a shell
// script) and as supervisors copy them from logs and trackers. Format: docs/formats/metrics.md. Thread-safe:
// no state.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::record {

inline constexpr std::string_view kPointHeader = "time,step,value,metric";
inline constexpr std::size_t kLongestMetricName = 256;

/// One line of a file of points.
struct PointLine {
  double time = 0;                   ///< Unix seconds; 0: unknown
  std::optional<std::int64_t> step;  ///< nullopt: a summary value of the run
  double value = 0;
  std::string_view metric;
};

/// Invalid for an empty name, a long one, and one with control characters.
Status check_metric_name(std::string_view name);
/// Appends the line to `out`. REQUIRES: a valid name.
void append_point(const PointLine& point, std::string* out);
/// Nullopt for a damaged line.
std::optional<PointLine> parse_point(std::string_view line);

/// Where the points of a file come from. Of a metric with several sources, the last of them counts.
enum class PointSource { log_lines, tracker, program };

/// A file of one rank: points-<rank>[-<writer>].csv.
struct PointFile {
  Path path;
  int rank = 0;
  PointSource source = PointSource::program;
  std::string writer;  ///< "" for the rank's first process, "2" for its second, "log", "tensorboard", ...
};

/// What the name of a file "<stem>0003[-<writer>]<extension>" contains.
struct RankFileName {
  int rank = 0;
  std::string writer;
};
/// Nullopt for other names.
std::optional<RankFileName> parse_rank_file(std::string_view name, std::string_view stem,
                                            std::string_view extension);

/// "points-0003.csv", "points-0003-tensorboard.csv".
std::string point_file_name(int rank, std::string_view writer);
/// The files of an attempt, by rank, then in the order of merging. Empty if the folder cannot be read.
std::vector<PointFile> list_point_files(const Attempt& attempt);

/// Appends to a file of points that it creates with the first one. Belongs to one thread.
class PointAppender {
 public:
  explicit PointAppender(Path path) : path_(std::move(path)) {}
  /// Keeps the point until flush().
  void add(const PointLine& point) { append_point(point, &pending_); }
  /// Writes the points. What cannot be written is dropped, and counted by dropped().
  void flush();
  std::uint64_t dropped() const { return dropped_; }

 private:
  Path path_;
  File file_;
  bool mid_line_ = false;
  std::string pending_;
  std::uint64_t dropped_ = 0;
};

/// The value of a metric at a step.
struct Point {
  std::int64_t step = 0;
  double value = 0;
  double time = 0;  ///< Unix seconds; 0: unknown
};

/// What the files of a rank contain together.
struct RankPoints {
  /// Sorted by step, one point per step: within one attempt, the later line counts.
  std::map<std::string, std::vector<Point>, std::less<>> metrics;
  std::map<std::string, Point, std::less<>> summary;
  std::size_t damaged = 0;  ///< lines that were skipped
  bool truncated = false;   ///< more metrics or points than the limits: the rest was skipped
};

/// Bounds of memory use for files that may be damaged.
struct PointLimits {
  std::size_t metrics = 4096;
  std::size_t points = 16'000'000;
  std::uint64_t tail_bytes = std::numeric_limits<std::uint64_t>::max();  ///< of each file, only the end
};

/// Merges the files of one rank. Absent and unreadable files count as empty.
RankPoints read_points(std::span<const PointFile> files, const PointLimits& limits = {});

/// Of one metric over all ranks, the last value of each.
struct LastValue {
  std::string metric;
  std::int64_t step = 0;  ///< the highest of the ranks
  double mean = 0;        ///< NaN if one of the values is
  double lowest = 0;
  double highest = 0;
  int ranks = 0;
};

/// Combines the last values of several ranks.
class LastValues {
 public:
  void add(const std::string& metric, const Point& last);
  /// Sorted by name.
  std::vector<LastValue> finish() &&;

 private:
  std::map<std::string, LastValue> values_;
};

/// The last values of an attempt, sorted by name, from the ends of the files of at most `ranks` ranks.
std::vector<LastValue> read_last_values(const Attempt& attempt, int ranks = 64);

/// JSON by metric: {"loss": {"step", "mean", "lowest", "highest", "ranks"}}; NaN and infinity are null.
std::string json_of(std::span<const LastValue> values);
/// JSON by metric: {"loss": {"step", "value"}}.
std::string json_of(const std::map<std::string, Point>& last_points);

/// The metric that shows the progress of a training: "loss", "train_loss", "train/loss", ..., else the first
/// whose name contains "loss", else "".
std::string main_metric(std::span<const std::string> names);

}  // namespace stoker::record
