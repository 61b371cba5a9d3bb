// Metrics of a rank's runs in a file store of MLflow, a folder "mlruns", read as they grow. MLflow opens a
// file for each value, so no process has it open: the runs are recognized by a tag that MLflow copies from
// the environment. One thread; bounded memory. Layout: mlruns/<experiment>/<run>/metrics/<name>, lines of
// "milliseconds value step".
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "observe/metrics/event_file.h"
#include "stoker/text.h"

namespace stoker::observe {

/// The tag in MLFLOW_RUN_CONTEXT whose value is the rank's name.
inline constexpr std::string_view kMlflowTag = "stoker.run";

/// The folder of a file store: `uri` is MLFLOW_TRACKING_URI, by default `mlruns` in the working directory. ""
/// for servers and databases.
Path mlflow_store_folder(std::string_view uri, const Path& working_directory);

struct MlflowStoreOptions {
  Path folder;         ///< need not exist; "": none
  std::string name;    ///< value of the tag in the runs to read
  std::string run_id;  ///< of one more run to read; may be ""
  double since = 0;    ///< Unix seconds: a continued run has older values, which are skipped
};

class MlflowStore {
 public:
  explicit MlflowStore(MlflowStoreOptions options) : options_(std::move(options)) {}

  /// Reads the new lines. Returns whether there were any. Metrics of the second and later runs have the run's
  /// name before theirs. Damaged lines are skipped.
  bool poll(const PointSink& sink);

 private:
  struct Run {
    Path folder;
    std::string prefix;
    double since = 0;
    std::map<std::string, std::uint64_t> offsets;  ///< by the metric's name
  };

  void find_runs();
  bool is_wanted(const Path& run, const std::string& id);
  bool read_folder(Run& run, const std::string& name, int depth, const PointSink& sink);
  static bool read_metric(Run& run, const std::string& name, const PointSink& sink);

  const MlflowStoreOptions options_;
  std::vector<Run> runs_;
  std::set<std::string> known_;  ///< ids of runs that are read, or never will be
};

}  // namespace stoker::observe
