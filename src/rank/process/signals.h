// Signals as something to poll for: they are blocked for the whole process from then on; children start with
// none blocked (base/process.h). Belongs to the main thread.
#pragma once

#include <initializer_list>
#include <optional>

#include "base/file.h"
#include "base/status.h"

namespace stoker::rank {

class SignalFd {
 public:
  /// Ignored signals stay ignored (nohup), so they never come.
  static Result<SignalFd> open(std::initializer_list<int> signals);
  int fd() const { return fd_.get(); }
  /// The next one that has come, if any.
  std::optional<int> take();

 private:
  explicit SignalFd(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace stoker::rank
