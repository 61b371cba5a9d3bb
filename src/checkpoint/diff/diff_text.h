// The differences between two steps as text and JSON: `stoker checkpoint diff`. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <string>

#include "checkpoint/diff/step_diff.h"

namespace stoker::checkpoint {

/// Names of the two steps in the columns of the text.
struct DiffLabels {
  std::string first;
  std::string second;
};

/// The first difference of the steps: their numbers, their runs, else "first" and "second".
DiffLabels default_labels(const StepDiff& diff);

/// State, hyper-parameters, up to `most` differing tensors (unmatched first, then the largest changes), batch
/// norms and a summary, one per line.
std::string diff_text(const StepDiff& diff, const DiffLabels& labels, std::size_t most);
/// All of it as one JSON value; the tensors are complete and in the order of the steps.
std::string diff_json(const StepDiff& diff, const DiffLabels& labels);

}  // namespace stoker::checkpoint
