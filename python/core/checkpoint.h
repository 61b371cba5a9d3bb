// C++ part of python/stoker/checkpoint.py: a saver, and a reader of one step. Tensors are passed as addresses
// of memory that Python keeps alive during the call. Under the GIL, which is released during I/O.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/read/row_reader.h"
#include "stoker/checkpoint.h"

namespace stoker::python {

/// kind, name, dtype, shape, address, bytes, shape of the whole, first row. The last two are for shards.
using SavedTensor = std::tuple<int, std::string, std::string, std::vector<std::int64_t>, std::uintptr_t,
                               std::uint64_t, std::vector<std::int64_t>, std::int64_t>;
/// is_optimizer, name, dtype, shape, first row, address, whether the memory is in use
/// (RowTarget::is_scratch).
using RowsToRead =
    std::tuple<bool, std::string, std::string, std::vector<std::int64_t>, std::int64_t, std::uintptr_t, bool>;

/// Flags of SavedTensor's kind.
enum SavedKind { kOptimizer = 1, kRank0 = 2, kShard = 4 };

/// A checkpoint::Saver with Python exceptions and signal handling.
class PySaver {
 public:
  explicit PySaver(const nanobind::dict& options);

  void reserve(const std::vector<SavedTensor>& tensors);
  /// Queues the step; returns its save id. `state`, `rank_state` and `hyper_parameters` are JSON of
  /// StateValues.
  std::uint64_t save(std::int64_t step, const std::vector<SavedTensor>& tensors, const std::string& state,
                     const std::string& rank_state, const std::string& hyper_parameters);
  /// Fails the save of that step on all ranks with this reason; called instead of save().
  void abandon(std::int64_t step, const std::string& why);
  /// Waits until the save has ended; raises its error, or TimeoutError.
  void wait(std::uint64_t save_id, double timeout_s);
  bool is_done(std::uint64_t save_id) const;
  /// Error of the save; None if it has not failed.
  std::optional<std::string> failure(std::uint64_t save_id) const;
  /// Times of the last published step, or None.
  std::optional<nanobind::dict> times() const;
  void finish(double timeout_s);
  /// For a forked child, which has no writer thread: leaks the saver on purpose.
  void forget() { [[maybe_unused]] auto* const left = saver_.release(); }

 private:
  checkpoint::Saver& saver() const;
  std::unique_ptr<checkpoint::Saver> saver_;
};

/// Reads one step. The memory of the rows stays alive from verify() to fill().
class StepReader {
 public:
  explicit StepReader(const std::string& folder);

  std::int64_t step() const { return manifest_.step.value; }
  int world_size() const { return manifest_.world_size.value; }
  const std::string& run() const { return manifest_.run; }
  const std::string& save() const { return manifest_.save; }
  std::string state() const { return manifest_.state.to_json(); }
  std::string hyper_parameters() const { return manifest_.hyper_parameters.to_json(); }
  std::vector<std::string> rank_states() const;
  /// (is_optimizer, name, dtype, shape) of each tensor.
  std::vector<std::tuple<bool, std::string, std::string, std::vector<std::int64_t>>> tensors() const;
  /// Reads and verifies; changes no memory that is in use. fill() then fills it.
  void verify(const std::vector<RowsToRead>& targets);
  void fill();

 private:
  Path folder_;
  checkpoint::StepManifest manifest_;
  std::optional<checkpoint::RowReader> reader_;
};

/// Adds the classes and functions to the module.
void define_checkpoint(nanobind::module_& m);

}  // namespace stoker::python
