// The login node's end of `stoker jupyter`: an allocation in which `stoker notebook` runs a server, as long
// as somebody holds on to it. Main thread only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "launch/run.h"

namespace stoker::launch {

/// Where a server is, as the node says.
struct NotebookPlace {
  std::string program;  ///< "jupyter-lab"
  std::string host;
  std::string address;  ///< numeric, on which it listens
  int port = 0;
  std::string token;
  std::string job;  ///< Slurm's id

  /// What to open, with a tunnel from `local_port` of one's own machine.
  std::string url(int local_port) const;
};
/// The line by which the node tells it, and back: nothing for any other line.
std::string to_line(const NotebookPlace& place);
std::optional<NotebookPlace> parse_place_line(std::string_view line);

/// What a person types on his own machine to reach it through `login` ("ada@login1.cluster").
std::string tunnel_command(const NotebookPlace& place, int local_port, const std::string& login);

/// This machine's name as it is set, with its domain where that is part of it. Asks no DNS.
std::string full_host_name();
/// This machine as a person reaches it from outside: its name where that is a full one, else the address to
/// which his ssh has come (SSH_CONNECTION), else its short name; with the user's name before it.
std::string login_from_outside(const std::string& host_name, const std::string& user,
                               const std::optional<std::string>& ssh_connection);

/// NotFound when the environment that `variables` are has no server, as far as that can be told from here: in
/// a container, or in a virtual environment that the node makes, it cannot.
Status check_notebook(const job::Job& job, const Environment& variables);

/// The command line of the whole: salloc, srun, `stoker notebook`, the job's container or virtual
/// environment.
Result<std::vector<std::string>> notebook_arguments(const Request& request);

struct HoldOptions {
  std::vector<std::string> command;
  Environment environment;
  Path directory;
  std::function<void(const NotebookPlace&)> ready;
  std::function<bool()> should_stop;  ///< asked several times a second
};
/// Starts it and returns how it ended: by itself, or because it should stop. The allocation is given back
/// then, also when this process is killed. NotFound without salloc.
Result<Exit> hold_notebook(const HoldOptions& options);

}  // namespace stoker::launch
