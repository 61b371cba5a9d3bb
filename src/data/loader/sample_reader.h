// One sample from its shard to what the batch holds of it: read, check, and for images decode and transform.
// Each of the loader's threads has one, with its scratch memory. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/decode/image.h"
#include "data/loader.h"
#include "data/loader/pixel_cache.h"
#include "data/loader/shard_memory.h"
#include "data/loader/stage_clock.h"
#include "data/transform/transform.h"
#include "format/shard_source.h"

namespace stoker::data {

/// "sample 'cat/0042' (in shard 'train-000001.tar')".
std::string name_of(const formats::ShardSource& source, std::uint64_t sample);

/// Larger files are no samples; the bound comes before memory is taken for them.
inline constexpr std::uint64_t kLargestFile = 1u << 30;

/// What came of one sample.
enum class Outcome { whole, cached, damaged, failed };

/// What the loader's threads share, and how they read. All of it must outlive the reader.
struct ReadingPlan {
  const formats::ShardSource& source;
  ShardMemory* memory;  ///< null: samples are read one by one
  PixelCache& cache;
  Check check;
  std::uint32_t clock_period;
};

class SampleReader {
 public:
  /// Without a transform it reads bytes only. The transform must outlive the reader.
  SampleReader(const ReadingPlan& plan, const Transform* transform)
      : plan_(plan), transform_(transform), clock_(plan.clock_period) {}

  /// Fills `out` with the transformed image. REQUIRES: a transform. `damaged`: what is stored is no whole
  /// image; `failed`: it could not be read at all or does not fit the transform. In both cases `error` says
  /// why, naming shard and sample.
  Outcome read_image(const Occasion& occasion, std::span<std::byte> out, Status& error);
  /// Fills `out` with the file at `locator`, which must be as long. Outcomes as above.
  Outcome read_bytes(std::uint64_t sample, const formats::Locator& locator, std::span<std::byte> out,
                     Status& error);

  /// Per stage, since the last call.
  StageClock::Seconds take_seconds() { return clock_.take(); }
  /// Bytes of samples read since the last call.
  std::uint64_t take_bytes() { return std::exchange(read_, 0); }

 private:
  // The sample's stored image, read and checked.
  Outcome fetch(std::uint64_t sample, std::span<const std::byte>& file, Status& error);
  Status decode_and_keep(std::span<const std::byte> file, const Occasion& occasion, std::span<std::byte> out);
  Result<std::span<const std::byte>> stored(const formats::Locator& locator);
  Outcome explain(std::uint64_t sample, Status& error) const;

  const ReadingPlan plan_;
  const Transform* const transform_;
  TransformScratch scratch_;
  StageClock clock_;
  std::vector<std::byte> bytes_;
  Image image_;
  std::uint64_t read_ = 0;
};

}  // namespace stoker::data
