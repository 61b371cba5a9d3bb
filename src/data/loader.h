// Batches of images for training and validation: threads read, check, decode and transform samples ahead of
// the consumer, and hand them over in an order that depends on nothing but (seed, epoch, position) and the
// rank. Used by the trainer and by `stoker data bench`. next(), state() and stats() belong to one thread;
// cancel() may be called from any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "data/order/order.h"
#include "data/transform/transform.h"

namespace stoker::formats {
class ShardSource;
}

namespace stoker::data {

/// What becomes of the samples that do not fill a batch at the end of an epoch.
enum class LastBatch { keep, drop };

/// What a damaged sample does: end the loading, or be left out of its batch and counted.
enum class Faults { stop, skip };

struct LoaderOptions {
  std::uint64_t seed = 0;  ///< of the order and of the random part of the transform
  Shuffle shuffle = Shuffle::every_epoch;
  RankOptions rank;         ///< which rank of how many; validation wants Remainder::exact
  std::uint32_t batch = 1;  ///< samples per rank and step
  LastBatch last_batch = LastBatch::keep;
  TransformOptions transform;
  std::uint32_t threads = 1;   ///< that decode, beside the caller's; at least 1
  std::uint32_t prefetch = 4;  ///< batches ready ahead of next(), beside those the caller holds; at least 1
  Faults faults = Faults::stop;
  /// Decoded pixels are kept up to this much, so that later epochs of a small dataset decode nothing.
  ByteCount cache{0};
};

/// What the loader did since it was opened.
struct LoaderStats {
  double wait_s = 0;          ///< next() blocked because the next batch was not ready
  double work_s = 0;          ///< CPU seconds of the loader's threads
  std::uint64_t batches = 0;  ///< handed over
  std::uint64_t samples = 0;  ///< handed over
  std::uint64_t skipped = 0;  ///< damaged and left out of those batches
  std::uint64_t cached = 0;   ///< samples taken from the cache instead of decoded
  ByteCount cache_used{0};
};

/// One batch in memory of the loader. Gives the memory back when destroyed, may outlive the loader, and
/// should not be kept longer than needed. Movable, not copyable. Thread-compatible.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  /// Samples in it: fewer than asked for at the end of an epoch, or when damaged ones were left out.
  std::uint32_t count() const;
  /// count x 3 x size x size, C order; the memory is aligned to 64 bytes.
  std::span<float> images();
  /// The classes, one per sample.
  std::span<std::int64_t> labels();
  /// The samples' numbers in the source, in the order of the batch.
  std::span<const std::uint64_t> samples() const;
  Epoch epoch() const;
  /// Where the data stands once this batch has been used: what a checkpoint after its step must hold.
  const OrderState& after() const;

 private:
  friend class Loader;
  struct Memory;
  struct Pool;
  Batch(std::unique_ptr<Memory> memory, std::shared_ptr<Pool> pool);

  std::unique_ptr<Memory> memory_;
  std::shared_ptr<Pool>
      pool_;  // shared with the loader, which may be gone when the batch gives back its memory
};

class Loader {
 public:
  /// Starts the threads, which begin to fill batches at once. `source` must outlive the loader. `resume` goes
  /// on where such a state was taken, on any world size and batch size. Fails with Invalid when the options
  /// make no sense, or when `resume` has another seed or belongs to a dataset with another number of samples.
  static Result<std::unique_ptr<Loader>> open(const formats::ShardSource& source,
                                              const LoaderOptions& options,
                                              const std::optional<OrderState>& resume = std::nullopt);
  /// Stops the threads; returns when the samples they are at are done.
  ~Loader();

  /// The next batch of this rank; nothing at the end of an epoch, after which the next call begins the epoch
  /// that follows (its batches are already being filled). Blocks until the batch is ready. Fails with
  /// - Timeout naming the shard and sample it waits for; calling again goes on waiting;
  /// - Corrupt, NotFound or Unavailable naming the shard and sample that cannot be read or decoded, and the
  ///   same again on every later call;
  /// - Cancelled after cancel().
  Result<std::optional<Batch>> next(Deadline deadline);
  /// Makes next() return, now and ever after.
  void cancel();

  /// Where the data stands after the last batch that next() gave, or after the end of the epoch it told of.
  const OrderState& state() const;
  /// Batches of this rank in a whole epoch.
  std::uint64_t batches_per_epoch() const;
  /// Batches of this rank that are still to come in the epoch of state().
  std::uint64_t batches_left() const;
  LoaderStats stats() const;

 private:
  class Engine;
  explicit Loader(std::unique_ptr<Engine> engine);

  std::unique_ptr<Engine> engine_;
};

}  // namespace stoker::data
