// A file that shows a run in other programs. It is written from its beginning to its end, so that the same
// points always make the same bytes. Implementations belong to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "track/run/point_reader.h"
#include "track/run/tracked_run.h"

namespace stoker::track {

/// A file beside that of the format, which is replaced if it exists.
struct SideFile {
  Path path;  ///< in the folder of the format's file
  std::string_view bytes;
};

/// What a file has so far.
struct FileEnd {
  std::uint64_t bytes = 0;
  std::uint64_t points = 0;  ///< with images and histograms
};

class FileFormat {
 public:
  virtual ~FileFormat() = default;
  /// Path of the file in the folder of the trackers.
  virtual Path path(const TrackedRun& run) const = 0;
  /// Each function appends to `out`.
  virtual void head(const TrackedRun& run, std::string* out) = 0;
  virtual void rows(const PointBatch& batch, FileEnd before, std::string* out) = 0;
  /// Images of the batch that the rows name.
  virtual std::vector<SideFile> side_files(const PointBatch&, FileEnd) { return {}; }
  /// The end of a run. A resumed run removes it, and continues after the rows.
  virtual void tail(const TrackedRun& run, FileEnd before, std::string* out) = 0;
};

}  // namespace stoker::track
