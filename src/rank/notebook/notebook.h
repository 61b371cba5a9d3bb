// A Jupyter server on a compute node: on the one address that the login node reaches, on a port that is free,
// and told of only once it answers to its token and refuses everybody else. Used by `stoker notebook`. Main
// thread only: it blocks signals.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "net/port.h"

namespace stoker::rank {

struct NotebookOptions {
  /// What starts a command in the job's environment: words that stand before it. Empty: nothing is needed.
  std::vector<std::string> in_environment;
  Environment environment;
  std::optional<net::PortRange> ports;         ///< where the site lets jobs listen
  std::string seen_from;                       ///< address of the host that will connect; "": not known
  Path scratch = "/tmp";                       ///< for a folder that nobody else can look into
  Duration patience{std::chrono::minutes(5)};  ///< until it answers
};

/// A server that answers.
struct Notebook {
  std::string program;  ///< "jupyter-lab"
  std::string address;  ///< numeric, the only one it listens on
  int port = 0;
  std::string token;
};

/// The programs that can be the server, the best first.
const std::vector<std::string>& notebook_programs();

/// Below which address of its own this host reaches `other`; loopback when it has no way there, or there is
/// no other.
std::string address_towards(const std::string& other);

/// The HTTP status with which /api/status answers, with this token or, when it is empty, without one.
Result<int> ask_notebook(const Notebook& server, const std::string& token, Deadline deadline);

/// Starts it, tells `ready` once it answers, and returns how it ended. It is ended when standard input
/// closes, or by SIGTERM, SIGINT or SIGHUP; nothing of it is left in `scratch` then. NotFound when the
/// environment has none of the programs; Invalid when it lets people in without the token; Unavailable with
/// its last words when it ends before it answers.
Result<Exit> run_notebook(const NotebookOptions& options, const std::function<void(const Notebook&)>& ready);

}  // namespace stoker::rank
