// A contact sheet of a dataset: one self-contained HTML page. Used by `stoker data sample`. Blocks on the
// storage.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::inspect {

struct ContactSheetOptions {
  std::string split;         ///< empty: all
  std::uint32_t count = 96;  ///< number of samples, balanced across classes
  std::uint64_t seed = 0;    ///< of the selection
};

struct ContactSheet {
  std::string html;
  std::uint32_t samples = 0;
  std::uint32_t broken = 0;  ///< samples that show an error message
};

/// Reads, checks and shows images, arrays and texts of the samples. Invalid if the dataset has none of these.
Result<ContactSheet> contact_sheet(const Path& dataset, const ContactSheetOptions& options);

}  // namespace stoker::inspect
