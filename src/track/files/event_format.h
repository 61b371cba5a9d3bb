// An event file of TensorBoard: scalars, images, histograms, the params as text and for the HParams tab. One
// thread. Format: https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/util/event.proto
#pragma once

#include "track/files/file_format.h"

namespace stoker::track {

class EventFormat final : public FileFormat {
 public:
  Path path(const TrackedRun& run) const override;
  void head(const TrackedRun& run, std::string* out) override;
  void rows(const PointBatch& batch, FileEnd before, std::string* out) override;
  void tail(const TrackedRun& run, FileEnd before, std::string* out) override;
};

}  // namespace stoker::track
