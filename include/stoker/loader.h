// Batches for training and validation: threads read, check, decode and transform samples ahead of the
// consumer. The order depends only on (seed, epoch, position) and the rank. Used by the trainer, by `stoker
// data bench` and by the Python module. All calls but cancel() belong to one thread at a time; cancel() may
// be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/fields.h"
#include "stoker/sampler.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/tensor_view.h"
#include "stoker/time.h"
#include "stoker/transform_options.h"

namespace stoker::dataset {
class ShardSource;
}

namespace stoker::loader {

/// Whether the samples that do not fill a batch at the end of an epoch are kept.
enum class LastBatch { keep, drop };

/// What the loader does with a damaged sample: stop with an error, or drop it from its batch and count it.
/// An empty batch is dropped, too. But with several ranks and a remainder that keeps them in lockstep, it is
/// returned.
enum class DamagePolicy { stop, skip };

/// What a batch holds for each sample.
enum class Content {
  images,  ///< transformed images
  bytes,   ///< the stored bytes unchanged: text, and formats that the caller decodes
  arrays,  ///< numbers of one shape, from .npy files or stored without a header
  tokens,  ///< sequences of one length, from documents of any length
};

/// With Content::arrays: the type and shape of every sample.
struct ArrayForm {
  DType element = DType::f32;
  Shape shape;

  bool operator==(const ArrayForm&) const = default;
};

/// Whether the bytes of each sample are compared with the CRC-32C of the index.
enum class Check { crc, none };

/// With Content::tokens: how documents are cut into sequences.
struct TokenOptions {
  std::uint32_t length = 1024;  ///< tokens by which the next sequence is shifted: 1 to 2^24
  std::uint32_t ahead = 1;      ///< further tokens, shared with the next sequence: the prediction targets
  /// u8, u16, u32, i32 or i64, little-endian. None: the type in the header of .npy files, else u16. Another
  /// type than the header's is an error.
  std::optional<DType> stored = {};
  DType element = DType::i64;  ///< in the batch: i32 or i64

  bool operator==(const TokenOptions&) const = default;
};

/// Where the content of batches is kept: in page-locked memory, for copies to a GPU. Thread-safe: the threads
/// of loaders allocate, and any thread that destroys a batch releases.
class BatchAllocator {
 public:
  virtual ~BatchAllocator() = default;
  /// At least `size` bytes, aligned to 64 bytes; null when memory is short. Does not throw.
  virtual std::byte* allocate(std::size_t size) = 0;
  /// Releases the memory of allocate(size).
  virtual void release(std::byte* memory, std::size_t size) = 0;
};

struct LoaderOptions {
  std::uint64_t seed = 0;  ///< of the order and of the random part of the transform
  Shuffle shuffle = Shuffle::every_epoch;
  std::uint32_t window = 16;  ///< Shuffle::by_shard, by_chunk: shards or chunks mixed with each other
  /// Shuffle::weighted: one weight per sample. Shared by the orders of all epochs.
  std::shared_ptr<const WeightTable> weights = {};
  /// Shuffle::mixed, over a MixedSource: MixedSource::parts().
  std::vector<MixturePart> mixture = {};
  RankOptions rank;         ///< rank and world size; validation wants Remainder::exact
  std::uint32_t batch = 1;  ///< batch size per rank
  LastBatch last_batch = LastBatch::keep;
  Content content = Content::images;
  image::TransformOptions transform;  ///< for Content::images
  /// With Content::images: each batch is mixed in one of these ways, chosen at random. A function of (seed,
  /// epoch, position of the batch's first sample).
  std::vector<image::MixOptions> mixing = {};
  /// The file to use of each sample, "npy" or "seg.png". Empty: `npy` for arrays and `input_ids.npy` for
  /// tokens if it exists, the first image for images, else the first file.
  std::string component = {};
  std::optional<ArrayForm> array = {};      ///< none: from the header of the first sample's .npy
  TokenOptions tokens = {};                 ///< a dataset of tokens has sequences instead of samples
  std::vector<ComponentField> fields = {};  ///< single values from files of each sample, beside its content
  std::uint32_t threads = 1;                ///< decoding threads, beside the caller's; at least 1
  std::uint32_t prefetch = 4;  ///< batches ready ahead of next(), beside the caller's batches; at least 1
  Check check = Check::crc;
  DamagePolicy on_damage = DamagePolicy::stop;
  std::uint64_t max_skipped = 1000;  ///< DamagePolicy::skip stops with an error after this many
  /// Shards up to this total size are kept in memory in stored form, and read in blocks on first use. Small
  /// samples then need no system call each. Larger datasets are read sample by sample.
  ByteCount resident{0};
  /// Keeps the content of batches (not labels and fields); shared with the batches. Null: the heap.
  std::shared_ptr<BatchAllocator> allocator = {};
  /// Decoded pixels are cached up to this size, so that later epochs of a small dataset decode nothing. For
  /// Content::images.
  ByteCount cache{0};
};

/// Statistics since the loader was opened. Seconds of stages are totals over all threads. For small samples,
/// every eighth is timed and counts eightfold.
struct LoaderStats {
  double wait_s = 0;          ///< next() blocked because the next batch was not ready
  double idle_s = 0;          ///< threads waited: the allowed number of batches was ready
  double work_s = 0;          ///< CPU seconds of the loader's threads
  double read_s = 0;          ///< reading from storage
  double check_s = 0;         ///< CRC-32C
  double decode_s = 0;        ///< decoding, and the crop, resize and normalisation in the same pass
  double transform_s = 0;     ///< the same without decoding, for cached images
  std::uint64_t batches = 0;  ///< returned by next()
  std::uint64_t samples = 0;  ///< returned by next()
  std::uint64_t skipped = 0;  ///< damaged and dropped from those batches
  std::uint64_t cached = 0;   ///< samples from the cache instead of decoded
  ByteCount cache_used{0};
  ByteCount read{0};  ///< bytes of samples that were read
};

/// The stage that limits the speed: "decode (71 % of the threads' time)", or "the consumer" when batches
/// were waiting for it.
std::string limiting_stage(const LoaderStats& stats);

/// A damaged sample that was dropped from its batch.
struct SkippedSample {
  std::uint64_t sample = 0;
  Epoch epoch;
  std::string why;  ///< names shard and sample
};

/// One batch. Its destructor returns the memory to the loader's pool. It may outlive the loader, but should
/// not be kept longer than needed. Movable, not copyable. Thread-compatible.
class Batch {
 public:
  struct Memory;  // private to the loader

  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  /// Samples in the batch: fewer than requested at the end of an epoch, or when damaged samples were
  /// dropped.
  std::uint32_t count() const;
  /// LoaderOptions::content.
  Content content() const;
  /// count x 3 x height x width, or count x height x width x 3, C order, of the transform's element type; the
  /// memory is aligned to 64 bytes. With Content::arrays count x the arrays' shape, with Content::tokens
  /// count x (length + ahead). Without data with Content::bytes.
  MutableTensorView image();
  /// The same as floats. REQUIRES: the transform's element type is f32.
  std::span<float> images();
  /// With Content::bytes: the files of the samples, concatenated. Sample i is bytes()[offsets()[i] ..
  /// offsets()[i + 1]].
  std::span<std::byte> bytes();
  std::span<std::int64_t> offsets();
  /// The labels, one per sample; -1 for none.
  std::span<std::int64_t> labels();
  /// With LoaderOptions::mixing, count x classes: the probability of each class for each sample. Else empty.
  MutableTensorView soft_labels();
  /// The values of LoaderOptions::fields[i], one per sample. REQUIRES: it is of that kind.
  std::span<double> numbers(std::size_t i);
  std::span<std::int64_t> integers(std::size_t i);
  std::span<std::string> texts(std::size_t i);
  /// Indexes of the samples (with Content::tokens: of the sequences) in the source, in the order of the
  /// batch.
  std::span<std::uint64_t> samples();
  std::span<const std::uint64_t> samples() const;
  Epoch epoch() const;
  /// The position in the data after this batch: the state for a checkpoint after its step.
  const OrderState& after() const;

 private:
  friend class Loader;
  struct Pool;
  Batch(std::unique_ptr<Memory> memory, std::shared_ptr<Pool> pool);

  std::unique_ptr<Memory> memory_;
  std::shared_ptr<Pool> pool_;  // shared with the loader, which may not outlive the batch
};

class Loader {
 public:
  /// Starts the threads, which begin to fill batches at once. `source` must outlive the loader. `resume`
  /// continues at that state, with any world size and batch size. Fails with Invalid for invalid options,
  /// and when `resume` has a different seed or number of samples.
  static Result<std::unique_ptr<Loader>> open(const dataset::ShardSource& source,
                                              const LoaderOptions& options,
                                              const std::optional<OrderState>& resume = std::nullopt);
  /// Stops the threads. Returns when their current samples are done.
  ~Loader();

  /// The next batch of this rank, or nothing at the end of an epoch. The next call then begins the following
  /// epoch, whose batches are already being filled. Blocks until the batch is ready. Fails with
  /// - Timeout, naming the shard and sample that it waits for; a repeated call continues to wait;
  /// - Corrupt, NotFound or Unavailable, naming the shard and sample; every later call fails with the same
  /// error;
  /// - Cancelled after cancel().
  Result<std::optional<Batch>> next(Deadline deadline);
  /// Makes this and every later next() return.
  void cancel();

  /// Discards the prepared batches and continues at `state`; threads, cache and statistics stay. Fails with
  /// Invalid as open() does, and with the error of a loader that has failed or was cancelled; the loader is
  /// then unchanged. Blocks until the current samples of the threads are done.
  Status restart(const OrderState& state);

  /// The position in the data after the last batch or end of epoch returned by next().
  const OrderState& state() const;
  /// Batches of this rank in a whole epoch, including batches that damage leaves empty.
  std::uint64_t batches_per_epoch() const;
  /// Remaining batches of this rank in the epoch of state().
  std::uint64_t batches_left() const;
  LoaderStats stats() const;
  /// The first 1000 dropped samples, in their order.
  const std::vector<SkippedSample>& skipped() const;

 private:
  class Engine;
  explicit Loader(std::unique_ptr<Engine> engine);

  std::unique_ptr<Engine> engine_;
};

}  // namespace stoker::loader
