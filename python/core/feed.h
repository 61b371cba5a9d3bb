// What python/stoker/loader.py is built on: one split of a dataset, and the loader over it, with Python's
// exceptions, signals and lock. Any thread may call; one at a time waits in next().
#pragma once

#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <tuple>

#include "core/batch.h"
#include "data/loader.h"
#include "data/loader/advice.h"
#include "format/shard_source.h"

namespace stoker::python {

/// (seed, epoch, position, samples), as in data::OrderState.
using State = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

/// What loader.py has made of the arguments of stoker.Loader.
struct FeedOptions {
  std::vector<std::string> paths;    ///< of more than one: what `weights` mixes
  std::optional<std::string> split;  ///< none: the only one, else "train"
  nanobind::object transform;        ///< as recipes.h reads it, or None
  nanobind::object content;          ///< as recipes.h reads it
  std::string element;               ///< "float32", ...
  data::Layout layout = data::Layout::nchw;
  std::vector<data::MixOptions> mixing;
  std::uint64_t seed = 0;
  std::string shuffle;  ///< "none", "every_epoch", "full", "by_shard" or "by_chunk"
  std::uint32_t window = 16;
  std::vector<double> weights;  ///< of samples, or of datasets
  std::uint32_t batch = 1;
  bool drops_last = false;
  int rank = 0;
  int world = 1;
  std::string remainder;  ///< "pad", "drop" or "exact"
  data::Wanted wanted;
  bool checks = true;
  bool skips = false;
  std::uint64_t most_faults = 0;
  std::uint64_t cache = 0;
  std::uint64_t chunk_cache = 0;  ///< unpacked bytes of packed shards that are kept
};

class Feed {
 public:
  /// Opens the dataset and starts the threads. Raises what data::Loader::open says.
  Feed(const FeedOptions& options, const std::optional<State>& resume);
  ~Feed() { close(); }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// The next batch, or None at the end of an epoch. Waits without the GIL; Python's signal handlers run
  /// meanwhile, so that Ctrl-C works at once. Raises TimeoutError after `timeout_s`; 0: waits for ever.
  nanobind::object next(double timeout_s);
  void restart(const State& state);
  State state();
  /// Ends the threads. Later calls raise; batches stay valid.
  void close();
  bool is_open() const { return loader_ != nullptr; }

  std::uint64_t batches_per_epoch();
  std::uint64_t batches_left();
  nanobind::dict stats();
  nanobind::list skipped();
  std::string limiting_stage();
  const std::vector<std::string>& reasons() const { return advice_.reasons; }
  /// Empty, or that less of packed chunks is kept than a sample needs.
  const std::string& small_cache() const { return small_cache_; }
  nanobind::list classes() const;
  std::uint64_t samples() const { return source_->samples().size(); }
  std::string version() const { return source_->manifest().version; }
  std::string split() const { return source_->split().name; }
  std::uint32_t threads() const { return advice_.threads; }
  std::uint32_t prefetch() const { return advice_.prefetch; }

 private:
  data::Loader& loader();
  Status open(const FeedOptions& options, data::LoaderOptions& o, const std::optional<State>& resume);

  const int pid_;
  std::shared_ptr<formats::ShardSource> source_;         // shared with the batches, for their keys
  std::vector<const formats::LocalShardSource*> local_;  // what source_ is made of
  data::Advice advice_;
  std::string small_cache_;
  std::vector<data::FieldKind> kinds_;  // of the batches' columns
  std::mutex mutex_;                    // taken without the GIL; guards the calls of loader_
  std::unique_ptr<data::Loader> loader_;
};

}  // namespace stoker::python
