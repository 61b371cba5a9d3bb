// What python/stoker/checkpoint.py is built on: a Saver, and one step that is read. Tensors come as addresses
// of memory that Python keeps alive during the call. Under the GIL; it is let go while bytes are moved.
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

namespace stoker::python {

/// kind, name, dtype, shape, address, bytes, shape of the whole, first row. The last two are of shards.
using SavedTensor = std::tuple<int, std::string, std::string, std::vector<std::int64_t>, std::uintptr_t,
                               std::uint64_t, std::vector<std::int64_t>, std::int64_t>;
/// is_optimizer, name, dtype, shape, first row, address.
using WantedRows =
    std::tuple<bool, std::string, std::string, std::vector<std::int64_t>, std::int64_t, std::uintptr_t>;

/// The values of SavedTensor's kind, added up.
enum SavedKind { kOptimizer = 1, kOfRankZero = 2, kShard = 4 };

/// A checkpoint::Saver with Python's exceptions and signals.
class Saver {
 public:
  explicit Saver(const nanobind::dict& options);

  void reserve(const std::vector<SavedTensor>& tensors);
  /// Hands the step over; its turn. `state`, `rank_state` and `hyper_parameters` are JSON as State writes it.
  std::uint64_t save(std::int64_t step, const std::vector<SavedTensor>& tensors, const std::string& state,
                     const std::string& rank_state, const std::string& hyper_parameters);
  /// Until that turn has ended; raises what it ended with, or TimeoutError.
  void wait(std::uint64_t turn, double timeout_s);
  bool is_done(std::uint64_t turn) const;
  /// Why that turn failed; None when it has not, or not yet.
  std::optional<std::string> failure(std::uint64_t turn) const;
  /// Of the step published last, or None.
  std::optional<nanobind::dict> times() const;
  void finish(double timeout_s);
  /// For a forked child, which has no writer thread: leaves the memory as it is.
  void forget() { [[maybe_unused]] auto* const left = saver_.release(); }

 private:
  checkpoint::Saver& saver() const;
  std::unique_ptr<checkpoint::Saver> saver_;
};

/// One step, to be read.
class StepReader {
 public:
  explicit StepReader(const std::string& folder);

  std::int64_t step() const { return manifest_.step.value; }
  int world_size() const { return manifest_.world_size.value; }
  const std::string& run() const { return manifest_.run; }
  std::string state() const { return manifest_.state.to_json(); }
  std::string hyper_parameters() const { return manifest_.hyper_parameters.to_json(); }
  std::vector<std::string> rank_states() const;
  /// (is_optimizer, name, dtype, shape) of each.
  std::vector<std::tuple<bool, std::string, std::string, std::vector<std::int64_t>>> tensors() const;
  void read(const std::vector<WantedRows>& targets) const;

 private:
  Path folder_;
  checkpoint::Manifest manifest_;
};

/// Adds the classes and functions to the module.
void define_checkpoint(nanobind::module_& m);

}  // namespace stoker::python
