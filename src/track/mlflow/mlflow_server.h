// Calls of MLflow's REST API, version 2.0. https://mlflow.org/docs/latest/rest-api.html One thread.
#pragma once

#include <string>
#include <string_view>

#include "stoker/status.h"
#include "track/mlflow/http_client.h"

namespace stoker::track {

class MlflowServer {
 public:
  explicit MlflowServer(HttpOptions options) : http_(std::move(options)) {}

  struct Answer {
    int status = 0;
    std::string body;     ///< a JSON object, of a success at least
    std::string message;  ///< of an error

    bool is_ok() const { return status < 300; }
    bool is_missing() const { return status == 404; }
    bool is_too_large() const { return status == 413; }
  };

  /// POST with a JSON object, or GET without. An answer is a success, or what the server refuses for its
  /// content: 400, 404, 409, 413. Unavailable and Timeout may pass; Invalid is final: no permission, or no
  /// MLflow server.
  Result<Answer> call(std::string_view endpoint, std::string body) const;
  Result<Answer> get(std::string_view endpoint_and_query) const;
  /// Stores a file through the server: `path` below its root of artifacts.
  Status upload(const std::string& path, const Path& file) const;
  Status upload(const std::string& path, std::string bytes) const;
  std::string address() const { return http_.server(); }

 private:
  Result<Answer> judge(const HttpAnswer& answer) const;
  Status put(const std::string& path, const HttpBody& body) const;

  HttpClient http_;
};

}  // namespace stoker::track
