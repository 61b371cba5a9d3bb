// Sends a run to an MLflow server. All attempts of the run are one run of MLflow.
#pragma once

#include <memory>
#include <string>

#include "track/mlflow/http_client.h"
#include "track/mlflow/model_files.h"
#include "track/run/tracker.h"

namespace stoker::track {

/// `experiment` is made if it does not exist. `model` is registered once the run is done.
std::unique_ptr<Tracker> make_mlflow_tracker(HttpOptions http, std::string experiment, ModelChoice model,
                                             NoteSink note);

}  // namespace stoker::track
