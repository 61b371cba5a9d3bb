// Stores the model of a run as artifacts, and registers it as a version of a model. Repeated calls make one
// version of each checkpoint. One thread.
#pragma once

#include <string>

#include "track/mlflow/mlflow_server.h"
#include "track/mlflow/model_files.h"
#include "track/run/tracker.h"

namespace stoker::track {

/// The run in MLflow that has the artifacts.
struct ModelOwner {
  std::string run_id;
  std::string artifact_uri;   ///< "mlflow-artifacts:/1/RUN/artifacts"
  std::string artifact_root;  ///< "1/RUN/artifacts"
};

/// The new version, or that of an earlier call. Invalid and NotFound with the reason why it is not
/// registered; Unavailable and Timeout where a later call may succeed.
Result<std::string> register_model(const MlflowServer& server, const std::string& name,
                                   const ModelFiles& model, const ModelOwner& owner);

}  // namespace stoker::track
