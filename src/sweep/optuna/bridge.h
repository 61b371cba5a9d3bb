// Optuna in a child process: requests and answers are lines of JSON, which bridge.py describes. The child
// ends after the last request when this process ends, also by kill -9. Belongs to one thread of one process.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json/json.h"
#include "base/process.h"
#include "stoker/status.h"

namespace stoker::sweep {

/// The text of bridge.py.
std::string_view optuna_bridge_script();

/// Python with Optuna.
class OptunaBridge {
 public:
  /// Starts $STOKER_PYTHON, or python3 of PATH. Invalid with a cure if it cannot be started or has no Optuna.
  static Result<std::unique_ptr<OptunaBridge>> start();
  OptunaBridge(const OptunaBridge&) = delete;
  OptunaBridge& operator=(const OptunaBridge&) = delete;
  /// Waits up to 5 s for the child's end, then kills it.
  ~OptunaBridge();

  /// The answer to a request. Invalid for an error of Optuna, Unavailable if the child ended or a database
  /// does not answer, NoSpace for a full disk, Timeout if the child has not answered for 10 min.
  Result<nlohmann::ordered_json> call(const nlohmann::ordered_json& request);
  /// Whether the current process started it, and not one that forked.
  bool is_own() const;

 private:
  OptunaBridge(std::string python, Fd socket, Child child);
  Result<nlohmann::ordered_json> receive();
  Status ended();
  Status error_in(const nlohmann::ordered_json& answer) const;

  std::string python_;
  Fd socket_;
  Child child_;
  int process_;
  std::string received_;
};

}  // namespace stoker::sweep
