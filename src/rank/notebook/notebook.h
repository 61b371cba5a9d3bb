// A Jupyter server on a compute node. It listens only on the address that the login node reaches, on a free
// port, and is announced only after it accepts its token and refuses other requests. Used by `stoker
// notebook`. Main thread only: it blocks signals.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "net/port.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::rank {

struct NotebookOptions {
  /// Prefix of a command that runs in the job's environment. Empty: none needed.
  std::vector<std::string> command_prefix;
  Environment environment;
  std::optional<net::PortRange> ports;              ///< the site's port range for jobs
  std::string client_address;                       ///< address of the connecting host; "": unknown
  Path scratch = "/tmp";                            ///< for a private folder
  Duration ready_timeout{std::chrono::minutes(5)};  ///< until the server answers
};

/// A running server.
struct Notebook {
  std::string program;  ///< "jupyter-lab"
  std::string address;  ///< numeric, the only one it listens on
  int port = 0;
  std::string token;
};

/// Server programs, preferred first.
const std::vector<std::string>& notebook_programs();

/// The local address from which this host reaches `other`; loopback without a route or for an invalid
/// `other`.
std::string local_address_to(const std::string& other);

/// The HTTP status of /api/status with this token, or without one if it is empty.
Result<int> query_notebook(const Notebook& server, const std::string& token, Deadline deadline);

/// Starts the server, calls `ready` once it answers, and returns its exit status. Ends it when standard input
/// closes, or on SIGTERM, SIGINT or SIGHUP; removes its files from `scratch`. NotFound without a server
/// program; Invalid when it accepts requests without the token; Unavailable with its last log lines when it
/// exits before it answers.
Result<Exit> run_notebook(const NotebookOptions& options, const std::function<void(const Notebook&)>& ready);

}  // namespace stoker::rank
