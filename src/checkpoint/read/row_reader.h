// Reads rows of a step in two passes, so that memory in use changes only when everything is verified. Used by
// load() and read_rows(), and by the Python module, whose ranks agree on a step between the passes.
// Thread-compatible.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/manifest.h"
#include "stoker/checkpoint.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

class RowReader {
 public:
  /// Errors as read_rows() before it reads. `manifest` is that of `folder`.
  static Result<RowReader> create(const Path& folder, StepManifest manifest, std::vector<RowTarget> targets);
  RowReader(RowReader&&) noexcept;
  RowReader& operator=(RowReader&&) noexcept;
  ~RowReader();

  /// Reads and verifies the required blocks, and fills the targets with `is_scratch`. Corrupt if damaged.
  Status verify(Progress& progress);
  /// Fills all other targets, also if the step was removed after verify(). Corrupt, and the targets are
  /// partly overwritten, if the files have changed. REQUIRES: verify() returned ok.
  Status fill(Progress& progress);

 private:
  struct Reading;
  explicit RowReader(std::unique_ptr<Reading> reading);
  std::unique_ptr<Reading> reading_;
};

}  // namespace stoker::checkpoint
