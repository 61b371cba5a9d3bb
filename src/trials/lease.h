// One process at a time drives the trials of a study. The lease is the file driver.json in the study, which
// its owner renews. Belongs to one thread.
#pragma once

#include "base/file.h"
#include "record/run_events.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::trials {

class DriverLease {
 public:
  /// Exists, with host and process, while a different process has a valid lease: on this host while it
  /// is alive, on other hosts for 90 s after its last renewal.
  static Result<DriverLease> acquire(const Path& study);

  /// Renews it when it is due. Exists when another process has taken it meanwhile, because this one was
  /// stopped for long.
  Status renew();
  /// Removes the file.
  void release();

 private:
  explicit DriverLease(Path file) : file_(std::move(file)) {}
  Status write();

  Path file_;
  record::ProcessIdentity self_;
  Deadline next_ = Deadline::never();
};

}  // namespace stoker::trials
