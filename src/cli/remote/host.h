// `--host` of the commands that can run on a remote machine; docs/host.md lists them. Main thread only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "launch/remote/call.h"

namespace stoker::cli {

/// Unparsed.
struct HostChoice {
  std::string host;
  std::string program;

  bool is_remote() const { return !host.empty(); }
};

/// Declares --host and --host-program.
void add_host_choice(Arguments& arguments, HostChoice* choice);

/// Resolves the host and its folder for the current folder.
Result<launch::RemoteHost> resolve_host(const HostChoice& choice);

/// The two options on a command line, for commands that are shown to the user.
std::string host_options(const HostChoice& choice);

/// The arguments without the two options.
std::vector<std::string> without_host(std::span<const std::string> words);

/// The arguments with `options` after all other options, so that they override earlier ones.
std::vector<std::string> with_options(std::span<const std::string> words,
                                      std::span<const std::string> options);

/// Runs `stoker COMMAND WORDS...` on the host, forwards its output, and returns its exit code. `job`: the job
/// file or script whose folder is copied first; may be empty.
int run_on_host(const HostChoice& choice, std::string_view command, std::span<const std::string> words,
                const std::string& job, Output& out);

/// Like run_on_host without a job, but stores the standard output in `text` instead of printing it.
int capture_on_host(const HostChoice& choice, std::string_view command, std::span<const std::string> words,
                    std::string* text, Output& out);

}  // namespace stoker::cli
