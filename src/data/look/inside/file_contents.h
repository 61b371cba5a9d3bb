// What a file of data holds before it is a dataset: arrays, columns, or files of some kinds. Used by
// `data info`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"

namespace stoker::data {

struct FileContents {
  enum class Of { arrays, columns, files };
  struct Part {
    std::string name;  ///< of files: what their names end in
    std::string type;  ///< of arrays and columns, for people: "float32", "list of int64"
    std::optional<std::vector<std::uint64_t>> shape;  ///< of arrays
    std::vector<std::uint64_t> chunks;                ///< of arrays that are stored in such
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;  ///< of files
    std::string unread;       ///< why it is not read, "" if it is: then nothing else is known
  };

  Of of = Of::files;
  std::string kind;                   ///< "HDF5 file", "Zarr store", "Parquet table", "tar archive", ...
  std::uint64_t bytes = 0;            ///< of the file; 0 for a folder
  std::optional<std::uint64_t> rows;  ///< of a table
  std::uint64_t row_groups = 0;
  std::vector<Part> parts;
  std::size_t unseen = 0;  ///< so many more parts there are
};

/// Of any file that can be packed or indexed, or a Zarr store that is a folder: told by its name, or by what
/// it holds. Reads what is said of the data, not the data itself; an archive that is compressed as a whole is
/// unpacked for it. Fails where it is damaged or of no kind that is read. Cancelled when `progress` says
/// stop.
Result<FileContents> file_contents(const Path& file, Progress& progress);

}  // namespace stoker::data
