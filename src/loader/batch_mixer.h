// Mixup and cutmix of finished batches, with their soft labels. Used by the loader's threads. Immutable,
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "image/transform/mix.h"
#include "image/transform/philox.h"
#include "loader/batch.h"
#include "loader/contents.h"
#include "stoker/status.h"

namespace stoker::loader {

class BatchMixer {
 public:
  /// No mixer when the options mix nothing. Fails with Invalid for invalid options, or a sample without a
  /// label.
  static Result<std::optional<BatchMixer>> create(const dataset::ShardSource& source,
                                                  const Contents& contents, const LoaderOptions& options);

  /// Mixes the samples of `memory` in place, and writes their soft labels. `sample_key.sample` identifies
  /// the batch in its epoch.
  void mix(const image::SampleKey& sample_key, Batch::Memory& memory) const;

 private:
  BatchMixer(const LoaderOptions& options, const image::BatchShape& shape, std::uint32_t classes)
      : kinds_(options.mixing), shape_(shape), classes_(classes) {}

  std::vector<image::MixOptions> kinds_;
  image::BatchShape shape_;  // of any number of samples
  std::uint32_t classes_;
};

}  // namespace stoker::loader
