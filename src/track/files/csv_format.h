// `attempt,rank,time,step,value,metric`, for pandas and similar programs. One thread.
#pragma once

#include "track/files/file_format.h"

namespace stoker::track {

class CsvFormat final : public FileFormat {
 public:
  Path path(const TrackedRun& run) const override;
  void head(const TrackedRun& run, std::string* out) override;
  void rows(const std::vector<TrackedPoint>& points, FileEnd before, std::string* out) override;
  void tail(const TrackedRun& run, FileEnd before, std::string* out) override;
};

}  // namespace stoker::track
