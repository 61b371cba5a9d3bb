// From files in shards to what a batch holds of them: read, check, and then decode and transform, copy,
// compare or parse. Each of the loader's threads has one, with its scratch memory. Thread-compatible.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "data/decode/image.h"
#include "data/loader/batch.h"
#include "data/loader/contents.h"
#include "data/loader/fetcher.h"
#include "data/loader/pixel_cache.h"
#include "data/loader/schedule.h"
#include "data/loader/stage_clock.h"

namespace stoker::data {

/// What the loader's threads share, and how they read. All of it must outlive the reader.
struct ReadingPlan {
  const formats::ShardSource& source;
  const Contents& contents;
  ShardMemory* memory;  ///< null: samples are read from the source
  PixelCache& cache;
  Check check;
  std::uint32_t clock_period;
  std::uint64_t seed;
};

/// Units [begin, end) of a batch, and where they go. The reader writes the rows, labels and columns of these
/// units alone.
struct PieceJob {
  const BatchPlan& plan;
  Batch::Memory& memory;
  std::span<const formats::Locator> files;  ///< of all units, with Content::bytes
  std::size_t begin = 0;
  std::size_t end = 0;
  std::atomic<std::size_t>& current;  ///< the unit it is at, for messages
};

/// A unit that is not whole.
struct UnitFault {
  std::size_t place = 0;
  bool is_damage = false;  ///< what is stored is wrong; else it could not be read, or does not fit
  Status why;              ///< names shard and sample
};

/// What came of a piece beside its contents.
struct Filled {
  std::vector<UnitFault> faults;  ///< at most one for each unit
  StageClock::Seconds seconds{};
  std::uint64_t bytes = 0;   ///< of files that were read
  std::uint64_t cached = 0;  ///< units that were kept decoded
};

class SampleReader {
 public:
  explicit SampleReader(const ReadingPlan& plan)
      : plan_(plan), fetcher_(plan.source, plan.memory), clock_(plan.clock_period) {}

  /// Returns early when `stop` is requested.
  Filled fill(const PieceJob& job, const StopToken& stop);

 private:
  Filled copy_files(const PieceJob& job, const StopToken& stop);
  Status copy_file(const PieceJob& job, std::size_t place);
  void plan_parts(const PieceJob& job, Filled& filled);
  bool take_cached(const PieceJob& job, std::size_t place, Filled& filled);
  Status take(const Part& part, std::size_t place, const PieceJob& job);
  Status take_bytes(const Part& part, std::size_t place, std::span<std::byte> out);
  Status take_image(const Part& part, std::span<const std::byte> file, const PieceJob& job);
  Status take_array(const Part& part, std::span<const std::byte> file, std::span<std::byte> out);
  Status take_tokens(const Part& part, std::span<const std::byte> file, std::span<std::byte> out);
  Status take_fields(const Part& part, std::span<const std::byte> file, Batch::Memory& memory);
  Status decode_and_keep(std::span<const std::byte> file, const Occasion& occasion, std::span<std::byte> out);
  Status check(const Part& part, std::span<const std::byte> bytes) const;
  bool is_damage(const formats::Locator& file, const Status& status) const;
  Status explain(const Part& part, Status status) const;
  Occasion occasion(const PieceJob& job, std::uint64_t sample) const;

  const ReadingPlan plan_;
  Fetcher fetcher_;
  TransformScratch scratch_;
  StageClock clock_;
  Image image_;
  std::vector<Part> parts_;
  std::vector<formats::Locator> files_;  // of parts_
  std::vector<std::byte> alone_;         // a file that is not in memory yet
  std::uint64_t read_ = 0;
  bool has_come_ = false;  // the file at hand: what is wrong then is wrong with its bytes
};

}  // namespace stoker::data
