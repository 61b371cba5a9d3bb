// Turns files in shards into the contents of a batch: reads and checks them, then decodes and transforms,
// copies, compares or parses. Each of the loader's threads has one, with its scratch memory.
// Thread-compatible.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread.h"
#include "image/decode/image.h"
#include "loader/batch.h"
#include "loader/contents.h"
#include "loader/fetcher.h"
#include "loader/pixel_cache.h"
#include "loader/schedule.h"
#include "loader/stage_clock.h"
#include "stoker/status.h"

namespace stoker::loader {

/// Shared by the loader's threads. All of it must outlive the reader.
struct ReaderContext {
  const dataset::ShardSource& source;
  const Contents& contents;
  ShardMemory* memory;  ///< null: samples are read from the source
  PixelCache& cache;
  Check check;
  std::uint32_t clock_period;
  std::uint64_t seed;
};

/// Units [begin, end) of a batch, and their destination. The reader writes the rows, labels and columns of
/// these units only.
struct PieceJob {
  const BatchPlan& plan;
  Batch::Memory& memory;
  std::span<const dataset::Locator> files;  ///< of all units, with Content::bytes
  std::size_t begin = 0;
  std::size_t end = 0;
  std::atomic<std::size_t>& current;  ///< the current unit, for messages
};

/// A unit that failed.
struct UnitFault {
  std::size_t place = 0;
  bool is_damage = false;  ///< the stored bytes are wrong; else they could not be read, or do not fit
  Status why;              ///< names shard and sample
};

/// The outcome of a piece beside its contents.
struct PieceResult {
  std::vector<UnitFault> faults;  ///< at most one for each unit
  StageClock::Seconds seconds{};
  std::uint64_t bytes = 0;   ///< of files that were read
  std::uint64_t cached = 0;  ///< units from the cache of decoded images
};

class SampleReader {
 public:
  explicit SampleReader(const ReaderContext& context)
      : context_(context), fetcher_(context.source, context.memory), clock_(context.clock_period) {}

  /// Returns early when `stop` is requested.
  PieceResult fill(const PieceJob& job, const StopToken& stop);

 private:
  PieceResult copy_files(const PieceJob& job, const StopToken& stop);
  Status copy_file(const PieceJob& job, std::size_t place);
  void plan_parts(const PieceJob& job, PieceResult& result);
  bool load_cached(const PieceJob& job, std::size_t place, PieceResult& result);
  Status load_part(const Part& part, std::size_t place, const PieceJob& job);
  Status load_bytes(const Part& part, std::size_t place, std::span<std::byte> out);
  Status load_image(const Part& part, std::span<const std::byte> file, const PieceJob& job);
  Status load_array(const Part& part, std::span<const std::byte> file, std::span<std::byte> out);
  Status load_tokens(const Part& part, std::span<const std::byte> file, std::span<std::byte> out);
  Status load_fields(const Part& part, std::span<const std::byte> file, Batch::Memory& memory);
  Status decode_and_cache(std::span<const std::byte> file, const image::SampleKey& sample_key,
                          std::span<std::byte> out);
  Status check(const Part& part, std::span<const std::byte> bytes) const;
  bool is_damage(const dataset::Locator& file, const Status& status) const;
  Status with_sample_name(const Part& part, Status status) const;
  image::SampleKey sample_key(const PieceJob& job, std::uint64_t sample) const;

  const ReaderContext context_;
  Fetcher fetcher_;
  image::TransformScratch scratch_;
  StageClock clock_;
  image::Image image_;
  std::vector<Part> parts_;
  std::vector<dataset::Locator> files_;  // of parts_
  std::vector<std::byte> file_buffer_;   // a file that is not in memory
  std::uint64_t read_ = 0;
  bool is_file_read_ = false;  // the bytes of the current file arrived: later errors are damage
};

}  // namespace stoker::loader
