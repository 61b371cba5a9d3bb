// The remote side of `--host`: `stoker remote`, which ssh starts. Main thread only.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/file.h"
#include "launch/remote/message.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// Buffered input from a file descriptor.
class Incoming {
 public:
  explicit Incoming(int fd) : fd_(fd) {}
  /// The next line without its line end. Unavailable at the end of input, Corrupt when it is longer than 16
  /// MiB, Timeout.
  Result<std::string> line(Deadline deadline);
  /// Copies this many bytes into a file. Timeout when no data arrives for a minute.
  Status copy(std::uint64_t bytes, File& out);
  /// Fills `out`. Waits for the data without a limit.
  Status read(std::span<char> out);

 private:
  Status more(Deadline deadline);

  int fd_;
  std::string buffer_;
};

/// Receives the files of a request into the current folder. Each file is old or new, never partial. Removes
/// files that an earlier request sent below the same folder and this one did not.
Status receive_files(const RemoteRequest& request, Incoming& in);

/// Creates the request's folder if it is missing, and changes to it.
Status enter_folder(const RemoteRequest& request);

/// The environment variable with RemoteRequest::host_options for the command that serves a request.
inline constexpr const char* kHostOptionsVariable = "STOKER_HOST_OPTIONS";

/// Runs `stoker` with the request's arguments and /dev/null as input. Interrupts it, as by Ctrl-C, when the
/// input `in_fd` ends. Returns its exit code.
Result<int> run_remote_command(const RemoteRequest& request, const Path& stoker, int in_fd);

/// Writes the run's folder to standard output as a tar, with log links replaced by their targets.
Status send_run(const RemoteRequest& request);

}  // namespace stoker::launch
