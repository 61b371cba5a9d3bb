// The protocol between two stokers over ssh (`--host`). No user input reaches a remote shell: ssh always
// starts the same command, and the rest is sent through its standard input.
//
//   local                                     remote: `stoker remote NONCE`
//   1.                                        <- "stoker-remote NONCE VERSION"; earlier shell output is
//   dropped
//   2. one line of JSON: the request ->
//   3. the bytes of a tar, if it has one ->
//   4.                                        <- the command's standard output and error, and its exit code
//   5. end of input ->                        the command is interrupted, so nothing survives a lost
//   connection
//
// Values; functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::launch {

/// A request.
struct RemoteRequest {
  enum class Kind {
    command,   ///< a command line of stoker
    fetch,     ///< a run's folder as a tar on standard output
    transfer,  ///< requests of `stoker data push` and `pull` follow: transfer/protocol.h
  };
  Kind kind = Kind::command;
  std::vector<std::string> words;  ///< the command line; for fetch the run
  std::string folder;              ///< the working folder, absolute or below the user's home
  std::string runs = "runs";       ///< for fetch: the folder of the runs, relative to `folder`
  bool has_checkpoints = false;    ///< for fetch: include the checkpoints in the run's folder
  std::string sent_below;  ///< the files replace the content of this folder, relative; "" for the whole
  std::vector<std::string> files;  ///< their names, relative to `folder`
  std::uint64_t bytes = 0;         ///< size of the tar that follows
  std::string
      host_options;  ///< "--host login:exp": what the commands in the output are shown with; may be empty
};

/// One line, with its line end.
std::string to_line(const RemoteRequest& request);
/// Corrupt for anything else, or for names that lead out of the folder.
Result<RemoteRequest> parse_request(std::string_view line);

/// The line that the remote side sends first.
std::string greeting(std::string_view nonce, std::string_view version);
/// Its version; nothing for any other line.
std::optional<std::string> parse_greeting(std::string_view line, std::string_view nonce);

/// "ada@login.cluster:exp/one" from the command line.
struct RemoteHost {
  std::string host;     ///< in the syntax of ssh
  std::string folder;   ///< absolute or below the user's home
  std::string program;  ///< the remote stoker executable
};
/// Without a folder, derives one from `here`, the current local folder. Invalid for an invalid host.
Result<RemoteHost> parse_host(const std::string& text, const std::string& program, const Path& here);

/// The command line of ssh: `program` may begin with ~/.
std::vector<std::string> ssh_arguments(const RemoteHost& host, const std::string& nonce);

}  // namespace stoker::launch
