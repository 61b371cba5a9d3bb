// .stoker-copy.json in a dataset that `stoker data push` or `pull` wrote: what was copied, and from where.
// `stoker data purge` removes these files and no others. Format: docs/formats/copy-marker.md. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::transfer {

inline constexpr std::string_view kCopyMarker = ".stoker-copy.json";

struct CopiedFile {
  std::string name;  ///< relative to the dataset's folder
  std::uint64_t bytes = 0;
};

struct CopyMarker {
  std::string version;  ///< of the dataset
  std::string source;   ///< host and path, for users
  std::vector<CopiedFile> files;
};

/// JSON with a final newline.
std::string to_json(const CopyMarker& marker);
/// Corrupt, starting with `subject`, for anything else: a higher format too, and names that lead out of the
/// folder.
Result<CopyMarker> parse_copy_marker(std::string_view json, std::string_view subject);

}  // namespace stoker::transfer
