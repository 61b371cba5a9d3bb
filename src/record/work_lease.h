// Only one process at a time does some work: a file names it. The file is made by link(2), which is atomic on
// NFS too. A lease of a process that is gone is taken over: at once on the same machine, after 2 min of
// silence from a different one. Belongs to one thread.
#pragma once

#include <string_view>
#include <utility>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::record {

class WorkLease {
 public:
  /// Exists "process 7 on n1 already <work>" if a living process has it. The folder must exist.
  static Result<WorkLease> take(const Path& file, std::string_view work);
  WorkLease(WorkLease&& other) noexcept : file_(std::exchange(other.file_, {})) {}
  WorkLease& operator=(WorkLease&&) = delete;
  /// Gives it back.
  ~WorkLease();

  /// Shows that this process is alive: call it at least once a minute. Exists if another process has taken
  /// the lease over, because this one was stopped for long.
  Status refresh() const;

 private:
  explicit WorkLease(Path file) : file_(std::move(file)) {}
  Path file_;
};

}  // namespace stoker::record
