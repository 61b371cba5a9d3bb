// A look at some samples of a dataset: one HTML page that needs nothing else. Used by `stoker data sample`.
// Blocks on the storage.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace stoker::data {

struct ContactSheetOptions {
  std::string split;         ///< empty: all
  std::uint32_t count = 96;  ///< of samples, the same number of each class as far as possible
  std::uint64_t seed = 0;    ///< which
};

struct ContactSheet {
  std::string html;
  std::uint32_t samples = 0;
  std::uint32_t broken = 0;  ///< shown with what is wrong in place of a picture
};

/// Reads, checks and shows images, arrays and texts of the samples. Invalid when the dataset has none of
/// them.
Result<ContactSheet> contact_sheet(const Path& dataset, const ContactSheetOptions& options);

}  // namespace stoker::data
