// Lists the contents of a data file that is not a dataset yet: arrays, columns or files by extension. Used by
// `data info`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::inspect {

struct FileContents {
  enum class Layout { arrays, columns, files };
  struct Part {
    std::string name;  ///< of files: their extension
    std::string type;  ///< of arrays and columns, for display: "float32", "list of int64"
    std::optional<std::vector<std::uint64_t>> shape;  ///< of arrays
    std::vector<std::uint64_t> chunks;                ///< of chunked arrays
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;  ///< of files
    std::string unreadable;   ///< the reason if it is unreadable, else ""; the other fields are then unset
  };

  Layout layout = Layout::files;
  std::string kind;
  std::uint64_t bytes = 0;            ///< of the file; 0 for a folder
  std::optional<std::uint64_t> rows;  ///< of a table
  std::uint64_t row_groups = 0;
  std::vector<Part> parts;
  std::size_t omitted = 0;  ///< number of parts that were not listed
};

/// Lists any file that can be packed or indexed, or a Zarr store in a folder. The format is detected by name
/// or content. Reads metadata only; unpacks an archive that is compressed as a whole. Fails if the file is
/// damaged or has an unsupported format. Cancelled on stop_requested().
Result<FileContents> file_contents(const Path& file, Progress& progress);

}  // namespace stoker::inspect
