// The other end of `--host`: `stoker remote`, which ssh starts. Main thread only.
#pragma once

#include <functional>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "base/time.h"
#include "launch/remote/message.h"

namespace stoker::launch {

/// What comes through a file descriptor, piece by piece.
class Incoming {
 public:
  explicit Incoming(int fd) : fd_(fd) {}
  /// The next line without its end. Unavailable at the end of input, Corrupt when it is longer than 16 MiB,
  /// Timeout.
  Result<std::string> line(Deadline deadline);
  /// So many bytes into a file. Timeout when nothing comes for a minute.
  Status copy(std::uint64_t bytes, File& out);

 private:
  Status more(Deadline deadline);

  int fd_;
  std::string buffer_;
};

/// Takes the files of a request into the current folder: each is as it was or as it is now, and what an
/// earlier request sent below the same folder and this one did not is removed.
Status take_files(const RemoteRequest& request, Incoming& in);

/// Makes the request's folder if it is missing, and goes there.
Status enter_folder(const RemoteRequest& request);

/// Runs `stoker` with the request's words to its end, /dev/null as its input; when the input `in_fd` ends
/// before that it is interrupted, as by Ctrl-C. The exit code.
Result<int> run_words(const RemoteRequest& request, const Path& stoker, int in_fd);

/// Writes the run's folder to standard output as a tar: logs that are links as what they lead to.
Status send_run(const RemoteRequest& request);

}  // namespace stoker::launch
