// What two stokers say to each other over ssh when one is asked to do its work on another machine (`--host`).
// No word of a user ever meets a shell there: the command that ssh starts is always the same, the rest goes
// through its input.
//
//   here                                      there: `stoker remote NONCE`
//   1.                                        <- "stoker-remote NONCE VERSION"; what a shell said before is
//   dropped
//   2. one line of JSON: the request ->
//   3. the bytes of a tar, if it has some ->
//   4.                                        <- the command's own output, on both outputs, and its exit code
//   5. end of input: the end is asked for ->  the command is interrupted; so nothing runs on after a lost
//   connection
//
// Values; functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::launch {

/// What is asked for.
struct RemoteRequest {
  enum class Kind {
    command,  ///< a command line of stoker
    fetch,    ///< a run's folder as a tar on standard output
  };
  Kind kind = Kind::command;
  std::vector<std::string> words;  ///< the command line; of fetch the run
  std::string folder;              ///< where, absolute or below the user's home
  std::string runs = "runs";       ///< of fetch: the folder of the runs, from there
  bool has_checkpoints = false;    ///< of fetch: those in the run's folder, too
  std::string sent_below;          ///< the files are all there is of this folder, relative; "" for the whole
  std::vector<std::string> files;  ///< their names, relative to `folder`
  std::uint64_t bytes = 0;         ///< of the tar that follows
};

/// One line, with its end.
std::string to_line(const RemoteRequest& request);
/// Corrupt for anything else, or names that lead out of the folder.
Result<RemoteRequest> parse_request(std::string_view line);

/// The line with which the other end answers.
std::string greeting(std::string_view nonce, std::string_view version);
/// The version in it; nothing for any other line.
std::optional<std::string> parse_greeting(std::string_view line, std::string_view nonce);

/// "ada@login.cluster:exp/one" as a person types it.
struct RemoteHost {
  std::string host;     ///< as ssh takes it
  std::string folder;   ///< absolute or below the user's home
  std::string program;  ///< of stoker there
};
/// Without a folder one that stands for `here`, the current folder on this machine. Invalid when it is no
/// host.
Result<RemoteHost> parse_host(const std::string& text, const std::string& program, const Path& here);

/// The command line for ssh: `program` may begin with ~/.
std::vector<std::string> ssh_arguments(const RemoteHost& host, const std::string& nonce);

}  // namespace stoker::launch
