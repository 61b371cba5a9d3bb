// Mixup and cutmix of finished batches, with the labels that come of them. Used by the loader's threads.
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "data/loader/batch.h"
#include "data/loader/contents.h"
#include "data/transform/mix.h"
#include "data/transform/randomness.h"

namespace stoker::data {

class BatchMixer {
 public:
  /// Nothing when the options mix nothing. Fails with Invalid when they make no sense, or a sample has no
  /// label.
  static Result<std::optional<BatchMixer>> create(const formats::ShardSource& source,
                                                  const Contents& contents, const LoaderOptions& options);

  /// Mixes the samples of `memory` in place, and writes their soft labels. `occasion.sample` tells the
  /// batches of an epoch apart.
  void mix(const Occasion& occasion, Batch::Memory& memory) const;

 private:
  BatchMixer(const LoaderOptions& options, const BatchShape& shape, std::uint32_t classes)
      : kinds_(options.mixing), shape_(shape), classes_(classes) {}

  std::vector<MixOptions> kinds_;
  BatchShape shape_;  // of any number of samples
  std::uint32_t classes_;
};

}  // namespace stoker::data
