// `attempt,rank,time,step,value,metric,file`, and the images as files beside it, for pandas and similar
// programs. One thread.
#pragma once

#include "track/files/file_format.h"

namespace stoker::track {

class CsvFormat final : public FileFormat {
 public:
  Path path(const TrackedRun& run) const override;
  void head(const TrackedRun& run, std::string* out) override;
  void rows(const PointBatch& batch, FileEnd before, std::string* out) override;
  std::vector<SideFile> side_files(const PointBatch& batch, FileEnd before) override;
  void tail(const TrackedRun& run, FileEnd before, std::string* out) override;
};

}  // namespace stoker::track
