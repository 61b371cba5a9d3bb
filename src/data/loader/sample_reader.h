// One sample from its shard to normalised floats: read, check, decode, transform. Each of the loader's
// threads has one, with its scratch memory. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/decode/image.h"
#include "data/loader/pixel_cache.h"
#include "data/transform/transform.h"
#include "format/shard_source.h"

namespace stoker::data {

/// "sample 'cat/0042' (in shard 'train-000001.tar')".
std::string name_of(const formats::ShardSource& source, std::uint64_t sample);

/// What came of one sample.
enum class Outcome { decoded, cached, damaged, failed };

class SampleReader {
 public:
  /// All three must outlive the reader.
  SampleReader(const formats::ShardSource& source, PixelCache& cache, const Transform& transform)
      : source_(source), cache_(cache), transform_(transform) {}

  /// Fills `out` with the transformed image. `damaged`: what is stored is no whole image; `failed`: it could
  /// not be read at all or does not fit the transform. In both cases `error` says why, naming shard and
  /// sample.
  Outcome read(const Occasion& occasion, std::span<std::byte> out, Status& error);

 private:
  // Decodes the sample into image_.
  Outcome fetch(std::uint64_t sample, Status& error);

  const formats::ShardSource& source_;
  PixelCache& cache_;
  const Transform& transform_;
  TransformScratch scratch_;
  std::vector<std::byte> bytes_;
  Image image_;
};

}  // namespace stoker::data
