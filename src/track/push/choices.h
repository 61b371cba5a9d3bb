// The trackers of a run: named by its job file or by `--to`. Values; no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "record/run_folder.h"
#include "stoker/status.h"
#include "track/run/tracker.h"

namespace stoker::track {

inline constexpr std::string_view kTrackerNames[] = {"mlflow", "tensorboard", "wandb", "comet", "csv"};

/// A tracker: its name, and for mlflow the address of the server, for wandb and comet the project.
struct TrackerChoice {
  std::string name;
  std::string value;
};

/// Of "mlflow" or "mlflow=http://host:5000". Invalid for an unknown name.
Result<TrackerChoice> parse_choice(std::string_view text);

/// The trackers in `record` of the run's last attempt.
std::vector<TrackerChoice> choices_of_job(const record::RunFolder& run);

/// Without a value, the job file decides, then MLFLOW_TRACKING_URI: of this process, then of the run's job
/// file. Files are in `folder`. Invalid if mlflow has no address.
Result<std::unique_ptr<Tracker>> make_tracker(const TrackerChoice& choice, const record::RunFolder& run,
                                              const Path& folder, const NoteSink& note);

}  // namespace stoker::track
