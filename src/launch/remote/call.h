// The local side of `--host`: an ssh connection to the remote side. Main thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/file.h"
#include "launch/remote/message.h"
#include "stoker/status.h"

namespace stoker::launch {

/// A connected remote stoker that waits for a request. Destroying it closes the connection.
class RemoteCall {
 public:
  /// Connects. ssh asks for passwords on the terminal as usual. Unavailable with ssh's message when the
  /// connection or the remote stoker fails; Invalid for another version; Cancelled when `should_stop`.
  static Result<RemoteCall> open(const RemoteHost& host, std::function<bool()> should_stop);
  RemoteCall(RemoteCall&&) noexcept;
  RemoteCall& operator=(RemoteCall&&) noexcept;
  ~RemoteCall();

  /// Sends the request, then `tar` if it has one. Forwards the remote output to `out_fd` and standard error
  /// and returns the remote exit code. When `should_stop`, asks the remote side to end. Unavailable when the
  /// connection breaks.
  Result<int> run(const RemoteRequest& request, const File* tar, int out_fd);

 private:
  class Link;
  explicit RemoteCall(std::unique_ptr<Link> link);
  std::unique_ptr<Link> link_;
};

}  // namespace stoker::launch
