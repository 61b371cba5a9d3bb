// What differs between two steps: of one run, or of two. Used by `stoker checkpoint diff`. Reads both steps
// once for their CRC-32C and once for the comparison, in bounded memory. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "checkpoint/manifest.h"

namespace stoker::checkpoint {

/// How a tensor of one step stands to that of the other.
enum class TensorChange : std::uint8_t {
  same,     ///< byte by byte
  changed,  ///< other numbers
  only_in_first,
  only_in_second,
  other_form,  ///< another type or shape: its numbers are not compared
};
constexpr std::string_view to_text(TensorChange change) {
  constexpr std::string_view kNames[] = {"same", "changed", "only in first", "only in second", "other form"};
  return kNames[static_cast<std::size_t>(change)];
}

/// One tensor in both steps. Norms are Euclidean, over all elements that are finite in both steps.
struct TensorDiff {
  Part part = Part::model;
  std::string name;
  TensorChange change = TensorChange::same;
  TensorInfo first;   ///< type and shape; empty name when it is only in the second
  TensorInfo second;  ///< empty name when it is only in the first
  double first_norm = 0;
  double second_norm = 0;
  double distance = 0;           ///< the norm of second - first
  double largest = 0;            ///< the largest |second - first|
  std::uint64_t not_finite = 0;  ///< elements that are infinite or no number in either step

  /// distance / first_norm: 0.01 is a change by one per cent. Infinite when the first was all zero.
  double relative() const;
};

/// Mean over the channels of a batch norm's running statistics, in each step.
struct BatchNormDiff {
  std::string layer;  ///< "layer1.0.bn1": the tensors are <layer>.running_mean and .running_var
  double first_mean = 0;
  double second_mean = 0;
  double first_variance = 0;
  double second_variance = 0;
};

/// A value of the state or the hyper-parameters that is not the same, as JSON; empty where it is not set.
struct ValueDiff {
  std::string name;
  std::string first;
  std::string second;
};

struct StepDiff {
  Manifest first;
  Manifest second;
  std::vector<TensorDiff> tensors;  ///< all, by part and name
  std::vector<BatchNormDiff> batch_norms;
  std::vector<ValueDiff> state;
  std::vector<ValueDiff> hyper_parameters;

  bool is_same() const;
  std::uint64_t count(TensorChange change) const;
};

struct StepDiffOptions {
  bool with_optimizer = false;  ///< compare part `optimizer` too
};

/// Compares the steps in two folders. Errors: not_found, corrupt with the damage that a load would name,
/// cancelled.
Result<StepDiff> diff_steps(const Path& first, const Path& second, const StepDiffOptions& options,
                            Progress& progress);

}  // namespace stoker::checkpoint
