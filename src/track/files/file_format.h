// A file that shows a run in other programs. It is written from its beginning to its end, so that the same
// points always make the same bytes. Implementations belong to one thread.
#pragma once

#include <cstdint>
#include <string>

#include "track/run/point_reader.h"
#include "track/run/tracked_run.h"

namespace stoker::track {

/// What a file has so far.
struct FileEnd {
  std::uint64_t bytes = 0;
  std::uint64_t points = 0;
};

class FileFormat {
 public:
  virtual ~FileFormat() = default;
  /// Path of the file in the folder of the trackers.
  virtual Path path(const TrackedRun& run) const = 0;
  /// Each function appends to `out`.
  virtual void head(const TrackedRun& run, std::string* out) = 0;
  virtual void rows(const std::vector<TrackedPoint>& points, FileEnd before, std::string* out) = 0;
  /// The end of a run. A resumed run removes it, and continues after the rows.
  virtual void tail(const TrackedRun& run, FileEnd before, std::string* out) = 0;
};

}  // namespace stoker::track
