// The PyTorch of a Python: where it is and which version. Used to find and to build a trainer for it.
// Thread-safe: no state.
#pragma once

#include <string>

#include "base/process.h"
#include "stoker/status.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::trainers {

/// An installed PyTorch.
struct Torch {
  Path folder;          ///< of the package: include/, lib/, version.py
  std::string version;  ///< "2.13.0+cpu"

  /// "2.13": libtorch's binary interface is the same within a minor version.
  std::string minor() const;
};

/// Reads the version. NotFound when `folder` is no torch package; Invalid when its version is unreadable.
Result<Torch> inspect_torch(const Path& folder);

/// Asks `python` for its torch without importing it. `environment` has its PATH and PYTHONPATH. NotFound
/// without that program or without torch; Timeout.
Result<Torch> find_torch(const std::string& python, const Environment& environment, Deadline deadline);

}  // namespace stoker::trainers
