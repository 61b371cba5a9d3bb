// Compares two steps of one or two runs. Used by `stoker checkpoint diff`. Reads both steps once to verify
// their CRC-32C and once to compare, with bounded memory. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

/// Kind of difference of a tensor between the steps.
enum class TensorChange : std::uint8_t {
  same,     ///< identical bytes
  changed,  ///< different values
  only_in_first,
  only_in_second,
  different_form,  ///< different type or shape: values are not compared
};
constexpr std::string_view to_text(TensorChange change) {
  constexpr std::string_view kNames[] = {"same", "changed", "only in first", "only in second",
                                         "different type or shape"};
  return kNames[static_cast<std::size_t>(change)];
}

/// Comparison of one tensor. Norms are Euclidean, over the elements that are finite in both steps.
struct TensorDiff {
  StepPart part = StepPart::model;
  std::string name;
  TensorChange change = TensorChange::same;
  TensorInfo first;   ///< type and shape; empty name if it is only in the second
  TensorInfo second;  ///< empty name if it is only in the first
  double first_norm = 0;
  double second_norm = 0;
  double distance = 0;           ///< norm of second - first
  double largest = 0;            ///< largest |second - first|
  std::uint64_t not_finite = 0;  ///< elements that are infinite or NaN in either step

  /// distance / first_norm: 0.01 is a change of one per cent. Infinite if the first is all zero.
  double relative() const;
};

/// Running statistics of a batch norm, averaged over channels, in each step.
struct BatchNormDiff {
  std::string layer;  ///< "layer1.0.bn1": its tensors are <layer>.running_mean and .running_var
  double first_mean = 0;
  double second_mean = 0;
  double first_variance = 0;
  double second_variance = 0;
};

/// A differing value of the state or the hyper-parameters, as JSON; empty if not set.
struct ValueDiff {
  std::string name;
  std::string first;
  std::string second;
};

struct StepDiff {
  StepManifest first;
  StepManifest second;
  std::vector<TensorDiff> tensors;  ///< all, by part and name
  std::vector<BatchNormDiff> batch_norms;
  std::vector<ValueDiff> state;
  std::vector<ValueDiff> hyper_parameters;

  bool is_same() const;
  std::uint64_t count(TensorChange change) const;
};

struct StepDiffOptions {
  bool with_optimizer = false;  ///< also compare part `optimizer`
};

/// Compares the steps in two folders. Errors: not_found, corrupt with the same damage text as a load,
/// cancelled.
Result<StepDiff> diff_steps(const Path& first, const Path& second, const StepDiffOptions& options,
                            Progress& progress);

}  // namespace stoker::checkpoint
