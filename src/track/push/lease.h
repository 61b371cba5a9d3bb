// Only one process at a time sends a run to a tracker: a file next to the state names it. The file is made by
// link(2), which is atomic on NFS too. A lease of a process that is gone is taken over: at once on the same
// machine, after 2 min of silence from a different one.
#pragma once

#include <string>
#include <utility>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::track {

class PushLease {
 public:
  /// Exists if a living process has it. The folder must exist.
  static Result<PushLease> take(const Path& file);
  PushLease(PushLease&& other) noexcept : file_(std::exchange(other.file_, {})) {}
  PushLease& operator=(PushLease&&) = delete;
  ~PushLease();

  /// Shows that this process is alive: call it at least once a minute.
  void refresh() const;

 private:
  explicit PushLease(Path file) : file_(std::move(file)) {}
  Path file_;
};

}  // namespace stoker::track
