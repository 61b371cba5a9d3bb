// The .wandb file of an offline run of Weights & Biases, for `wandb sync`. One thread. Layout: blocks of
// LevelDB's log with CRC-32 of zlib after a head of 7 bytes, records of wandb_internal.proto.
// https://github.com/wandb/wandb/blob/main/wandb/proto/wandb_internal.proto
#pragma once

#include <string>

#include "track/files/file_format.h"

namespace stoker::track {

class WandbFormat final : public FileFormat {
 public:
  /// `created`: Unix seconds, of the run.
  WandbFormat(std::string project, double created) : project_(std::move(project)), created_(created) {}
  Path path(const TrackedRun& run) const override;
  void head(const TrackedRun& run, std::string* out) override;
  void rows(const PointBatch& batch, FileEnd before, std::string* out) override;
  std::vector<SideFile> side_files(const PointBatch& batch, FileEnd before) override;
  void tail(const TrackedRun& run, FileEnd before, std::string* out) override;

 private:
  std::string project_;
  double created_;
};

}  // namespace stoker::track
