// The login node's side of `stoker jupyter`: an allocation in which `stoker notebook` runs a server, until
// this process ends it. Main thread only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "launch/start/run.h"
#include "stoker/status.h"

namespace stoker::launch {

/// The address of a server, as the node reported it.
struct NotebookEndpoint {
  std::string program;  ///< "jupyter-lab"
  std::string host;
  std::string address;  ///< numeric, where it listens
  int port = 0;
  std::string token;
  std::string job;  ///< Slurm's id

  /// The URL to open, through a tunnel from `local_port` of the user's machine.
  std::string url(int local_port) const;
};
/// Writes and parses the line in which the node reports it. Parsing returns nothing for any other line.
std::string to_line(const NotebookEndpoint& place);
std::optional<NotebookEndpoint> parse_endpoint_line(std::string_view line);

/// The command for the user's machine to reach it through `login` ("ada@login1.cluster").
std::string tunnel_command(const NotebookEndpoint& place, int local_port, const std::string& login);

/// The host name of this machine, with its domain if configured. Does not query DNS.
std::string full_host_name();
/// This machine as reached from outside, as user@host: its host name if fully qualified, else the address of
/// the ssh connection (SSH_CONNECTION), else the short name.
std::string external_login(const std::string& host_name, const std::string& user,
                           const std::optional<std::string>& ssh_connection);

/// NotFound when no server program is in the PATH of `variables`. Always ok for a container or a virtual
/// environment that the node creates, which cannot be inspected here.
Status check_notebook(const job::Job& job, const Environment& variables);

/// The whole command: salloc, srun, `stoker notebook`, the job's container or virtual environment.
Result<std::vector<std::string>> notebook_arguments(const Request& request);

struct NotebookSessionOptions {
  std::vector<std::string> command;
  Environment environment;
  Path directory;
  std::function<void(const NotebookEndpoint&)> ready;
  std::function<bool()> should_stop;  ///< polled several times a second
};
/// Starts it and returns its exit status: it ended by itself, or because of `should_stop`. Releases the
/// allocation in every case, also when this process is killed. NotFound without salloc.
Result<Exit> run_notebook_session(const NotebookSessionOptions& options);

}  // namespace stoker::launch
