// Batches for training and validation: threads read, check, decode and transform samples ahead of the
// consumer, and hand them over in an order that depends on nothing but (seed, epoch, position) and the rank.
// Used by the trainer, by `stoker data bench` and by the Python module. All but cancel() belong to one thread
// at a time; cancel() may be called from any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong.h"
#include "base/tensor_view.h"
#include "base/time.h"
#include "data/components/fields.h"
#include "data/components/tokens.h"
#include "data/order/order.h"
#include "data/transform/mix.h"
#include "data/transform/transform.h"

namespace stoker::formats {
class ShardSource;
}

namespace stoker::data {

/// What becomes of the samples that do not fill a batch at the end of an epoch.
enum class LastBatch { keep, drop };

/// What a damaged sample does: end the loading, or be left out of its batch and counted. A batch of which
/// nothing is left is passed over; with several ranks and a remainder that keeps them in step it is given all
/// the same.
enum class Faults { stop, skip };

/// What a batch holds of its samples.
enum class Content {
  images,  ///< transformed images
  bytes,   ///< the stored bytes as they are: text, and whatever others decode
  arrays,  ///< numbers of one shape, out of .npy files or stored without any header
  tokens,  ///< sequences of one length, out of documents of any length
};

/// With Content::arrays: what every sample must be.
struct ArrayForm {
  DType element = DType::f32;
  Shape shape;

  bool operator==(const ArrayForm&) const = default;
};

/// Whether each sample's bytes are compared with the CRC-32C of the index.
enum class Check { crc, none };

struct LoaderOptions {
  std::uint64_t seed = 0;  ///< of the order and of the random part of the transform
  Shuffle shuffle = Shuffle::every_epoch;
  std::uint32_t window = 16;  ///< Shuffle::by_shard, by_chunk: so many of these are mixed with each other
  /// Shuffle::weighted: one for each sample. Shared with the orders of all epochs.
  std::shared_ptr<const WeightTable> weights = {};
  /// Shuffle::mixed, over a MixedSource: MixedSource::parts().
  std::vector<MixturePart> mixture = {};
  RankOptions rank;         ///< which rank of how many; validation wants Remainder::exact
  std::uint32_t batch = 1;  ///< samples per rank and step
  LastBatch last_batch = LastBatch::keep;
  Content content = Content::images;
  TransformOptions transform;  ///< for Content::images
  /// With Content::images: the samples of each batch are mixed with each other in one of these ways, by
  /// chance. A function of (seed, epoch, position of the batch's first sample).
  std::vector<MixOptions> mixing = {};
  /// Which of a sample's files, "npy" or "seg.png". Empty: `npy` for arrays if there is one; the first image;
  /// with the other contents the first file.
  std::string component = {};
  std::optional<ArrayForm> array = {};  ///< none: as the first sample's .npy says
  TokenOptions tokens = {};             ///< a dataset of tokens has sequences in place of samples
  std::vector<Field> fields = {};       ///< single values out of each sample's files, beside its content
  std::uint32_t threads = 1;            ///< that decode, beside the caller's; at least 1
  std::uint32_t prefetch = 4;  ///< batches ready ahead of next(), beside those the caller holds; at least 1
  Check check = Check::crc;
  Faults faults = Faults::stop;
  std::uint64_t most_faults = 1000;  ///< Faults::skip ends the loading when more were skipped
  /// Shards of together at most this much are kept in memory as they are stored, read in blocks when first
  /// touched: small samples then cost no system call each. Larger datasets are read sample by sample.
  ByteCount resident{0};
  /// Decoded pixels are kept up to this much, so that later epochs of a small dataset decode nothing. For
  /// Content::images.
  ByteCount cache{0};
};

/// What the loader did since it was opened. Seconds of stages are those of all threads together; where
/// samples are small every eighth is timed and counted eightfold.
struct LoaderStats {
  double wait_s = 0;          ///< next() blocked because the next batch was not ready
  double idle_s = 0;          ///< threads had nothing to do: as many batches as allowed were ready
  double work_s = 0;          ///< CPU seconds of the loader's threads
  double read_s = 0;          ///< bytes from the storage
  double check_s = 0;         ///< CRC-32C
  double decode_s = 0;        ///< decoding, and what is done in the same pass: crop, resize, normalise
  double transform_s = 0;     ///< those alone, for images that were kept decoded
  std::uint64_t batches = 0;  ///< handed over
  std::uint64_t samples = 0;  ///< handed over
  std::uint64_t skipped = 0;  ///< damaged and left out of those batches
  std::uint64_t cached = 0;   ///< samples taken from the cache instead of decoded
  ByteCount cache_used{0};
  ByteCount read{0};  ///< bytes of samples that were read
};

/// The stage that keeps `stats` from being faster, in a few words: "decode (71 % of the threads' time)", or
/// "the consumer" when batches were waiting for it.
std::string limiting_stage(const LoaderStats& stats);

/// A damaged sample that was left out of its batch.
struct SkippedSample {
  std::uint64_t sample = 0;
  Epoch epoch;
  std::string why;  ///< names shard and sample
};

/// One batch in memory of the loader. Gives the memory back when destroyed, may outlive the loader, and
/// should not be kept longer than needed. Movable, not copyable. Thread-compatible.
class Batch {
 public:
  struct Memory;  // the loader's own

  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  /// Samples in it: fewer than asked for at the end of an epoch, or when damaged ones were left out.
  std::uint32_t count() const;
  /// count x 3 x height x width, or count x height x width x 3, C order, of the transform's element type; the
  /// memory is aligned to 64 bytes. With Content::arrays count x the arrays' shape, with Content::tokens
  /// count x (length + ahead). Without data with Content::bytes.
  MutableTensorView image();
  /// The same as numbers. REQUIRES: the transform's element type is f32.
  std::span<float> images();
  /// With Content::bytes: the samples' files one after the other, where sample i is bytes()[offsets()[i] ..
  /// offsets()[i + 1]].
  std::span<std::byte> bytes();
  std::span<std::int64_t> offsets();
  /// The classes, one per sample; -1 without one.
  std::span<std::int64_t> labels();
  /// With LoaderOptions::mixing, count x classes: what each class counts for each sample. Without it empty.
  MutableTensorView soft_labels();
  /// The values of LoaderOptions::fields[i], one per sample. REQUIRES: it is of that kind.
  std::span<double> numbers(std::size_t i);
  std::span<std::int64_t> integers(std::size_t i);
  std::span<std::string> texts(std::size_t i);
  /// The samples' numbers in the source (with Content::tokens the sequences'), in the order of the batch.
  std::span<std::uint64_t> samples();
  std::span<const std::uint64_t> samples() const;
  Epoch epoch() const;
  /// Where the data stands once this batch has been used: what a checkpoint after its step must hold.
  const OrderState& after() const;

 private:
  friend class Loader;
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

  /// Gives up what was prepared and goes on where `state` stands; threads, cache and statistics stay. Fails
  /// with Invalid as open() does, and with the error of a loader that has failed or was cancelled; the loader
  /// is then as before. Blocks until the samples that threads are at are done.
  Status restart(const OrderState& state);

  /// Where the data stands after the last batch that next() gave, or after the end of the epoch it told of.
  const OrderState& state() const;
  /// Batches of this rank in a whole epoch, those that damage leaves empty among them.
  std::uint64_t batches_per_epoch() const;
  /// Batches of this rank that are still to come in the epoch of state().
  std::uint64_t batches_left() const;
  LoaderStats stats() const;
  /// The first 1000 samples that were left out, in the order in which they would have come.
  const std::vector<SkippedSample>& skipped() const;

 private:
  class Engine;
  explicit Loader(std::unique_ptr<Engine> engine);

  std::unique_ptr<Engine> engine_;
};

}  // namespace stoker::data
