// `--host` of the commands that can do their work on another machine: submit, status, logs, wait, cancel,
// fetch.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "launch/remote/call.h"

namespace stoker::cli {

/// As it was typed.
struct HostChoice {
  std::string host;
  std::string program;

  bool is_elsewhere() const { return !host.empty(); }
};

/// Declares --host and --host-program.
void add_host_choice(Arguments& arguments, HostChoice* choice);

/// Where that is, from the current folder.
Result<launch::RemoteHost> host_of(const HostChoice& choice);

/// The words without the two options.
std::vector<std::string> without_host(std::span<const std::string> words);

/// Has `stoker COMMAND WORDS...` done there, what it prints passed on, and returns its exit code. `job`: the
/// job file or script whose folder goes there first; empty for none.
int run_elsewhere(const HostChoice& choice, std::string_view command, std::span<const std::string> words,
                  const std::string& job, Output& out);

}  // namespace stoker::cli
