// C++ part of python/stoker/loader.py: one split of a dataset and its loader, with Python exceptions, signal
// handling and the GIL. Callable from any thread; one at a time waits in next().
#pragma once

#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <tuple>

#include "core/batch.h"
#include "core/page_locked.h"
#include "dataset/shard_source.h"
#include "loader/advice.h"
#include "stoker/loader.h"

namespace stoker::python {

/// (seed, epoch, position, samples), as in loader::OrderState.
using State = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

/// Arguments of stoker.Loader, converted by options.py.
struct FeedOptions {
  std::vector<std::string> paths;    ///< several are mixed by `weights`
  std::optional<std::string> split;  ///< nullopt: the only one, otherwise "train"
  nanobind::object transform;        ///< for operations_of(), or None
  nanobind::object content;          ///< for read_content()
  std::string element;               ///< "float32", ...
  image::ImageLayout layout = image::ImageLayout::nchw;
  std::vector<image::MixOptions> mixing;
  std::uint64_t seed = 0;
  std::string shuffle;  ///< "none", "every_epoch", "full", "by_shard" or "by_chunk"
  std::uint32_t window = 16;
  std::vector<double> weights;  ///< of samples, or of datasets
  std::uint32_t batch = 1;
  bool drops_last = false;
  int rank = 0;
  int world = 1;
  std::string remainder;  ///< "pad", "drop" or "exact"
  loader::LoaderOverrides wanted;
  bool checks = true;
  bool skips = false;
  std::uint64_t max_skipped = 0;
  std::uint64_t cache = 0;
  std::uint64_t chunk_cache = 0;                 ///< cache size for decompressed chunks in bytes
  std::optional<PageLockedOptions> page_locked;  ///< memory of the batches' content; nullopt: the heap
};

class Feed {
 public:
  /// Opens the dataset and starts the threads. Raises the errors of loader::Loader::open.
  Feed(const FeedOptions& options, const std::optional<State>& resume);
  ~Feed() { close(); }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// The next batch, or None at the end of an epoch. Waits without the GIL and runs Python signal handlers,
  /// so that Ctrl-C works immediately. Raises TimeoutError after `timeout_s`; 0: no timeout.
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
  /// Empty, or a warning that the chunk cache is smaller than one sample requires.
  const std::string& small_cache() const { return small_cache_; }
  nanobind::list classes() const;
  std::uint64_t samples() const { return source_->samples().size(); }
  std::string version() const { return source_->manifest().version; }
  std::string split() const { return source_->split().name; }
  std::uint32_t threads() const { return advice_.threads; }
  std::uint32_t prefetch() const { return advice_.prefetch; }

 private:
  loader::Loader& loader();
  Status open(const FeedOptions& options, loader::LoaderOptions& o, const std::optional<State>& resume);

  const int pid_;
  std::shared_ptr<dataset::ShardSource> source_;         // shared with the batches, for their keys
  std::vector<const dataset::LocalShardSource*> local_;  // parts of source_
  loader::Advice advice_;
  std::string small_cache_;
  std::vector<loader::FieldKind> kinds_;  // of the batches' columns
  std::mutex mutex_;                      // acquired without the GIL; guards calls of loader_
  std::unique_ptr<loader::Loader> loader_;
};

}  // namespace stoker::python
