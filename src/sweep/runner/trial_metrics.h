// The objectives of a trial that runs: from its points (stoker.log) and from its output. Belongs to one
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/metrics/log_metrics.h"
#include "observe/text_follower.h"
#include "sweep/study/definition.h"

namespace stoker::sweep {

/// A value of the first objective at a step.
struct ObjectiveReport {
  std::int64_t step = 0;
  double value = 0;
};

/// Of an objective, the best source that has values counts: points, then known formats of logs and "name:
/// value" in the output, then, with one objective, an output whose last line is a number.
class TrialMetrics {
 public:
  /// `folder`: STOKER_ATTEMPT_DIR of the trial.
  static Result<TrialMetrics> create(const Definition& definition, const Path& folder);

  /// Takes new bytes of the output.
  void read_output(std::string_view bytes);
  /// Reads new points of the folder, and returns the first objective's new values by their steps.
  std::vector<ObjectiveReport> poll();
  /// The value of each objective, in their order, or NotFound naming the first one without a value. Call it
  /// when the program has ended.
  Result<std::vector<double>> finish();

 private:
  TrialMetrics(const Definition& definition, const Path& folder, observe::LogMetrics log)
      : definition_(&definition), points_(folder / "points-0000.csv"), log_(std::move(log)) {}
  void read_line(std::string_view line);
  void read_point(std::string_view line);
  // Sets a value of an objective, unless a better source has set it.
  void set(std::string_view metric, int source, std::optional<std::int64_t> step, double value);

  struct Known {
    double value;
    int source;
  };
  const Definition* definition_;
  observe::TextFollower points_;
  observe::LogMetrics log_;
  observe::LineSplitter splitter_;
  std::map<std::string, Known, std::less<>> known_;
  std::map<std::int64_t, double> new_reports_;
  std::optional<double> last_line_;
};

}  // namespace stoker::sweep
