// Requests to an HTTP server by the program `curl`, one process for each. Credentials go through its standard
// input and are never in a command line or in a message. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/process.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::track {

struct HttpOptions {
  std::string server;  ///< "http://host:5000"
  std::string token;   ///< for "Authorization: Bearer"; "" without one
  std::string user;
  std::string password;
  std::string ca_file;         ///< PEM; "": the system's
  std::string client_file;     ///< PEM with certificate and key; "" without one
  bool is_unverified = false;  ///< accepts every certificate
  Duration timeout{0};         ///< of a request
};

/// The options in the variables of MLflow's own client: MLFLOW_TRACKING_TOKEN, _USERNAME, _PASSWORD,
/// _INSECURE_TLS, _SERVER_CERT_PATH, _CLIENT_CERT_PATH.
HttpOptions http_options_from(const Environment& environment, std::string server);

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// A body: text, or the content of a file.
struct HttpBody {
  std::string_view type = "application/json";
  std::string text;
  Path file;
};

class HttpClient {
 public:
  explicit HttpClient(HttpOptions options) : options_(std::move(options)) {}

  /// Any status of HTTP is an answer. Unavailable or Timeout without one, NotFound without curl.
  Result<HttpAnswer> request(std::string_view method, std::string_view path,
                             const std::optional<HttpBody>& body = {}) const;
  /// For messages: without user and password.
  std::string server() const;

 private:
  HttpOptions options_;
};

/// Encodes a part of a URL.
std::string url_encoded(std::string_view text);

}  // namespace stoker::track
