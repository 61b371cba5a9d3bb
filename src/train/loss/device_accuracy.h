// Top-1 and top-5 counts of a classifier where its scores are, without waiting for the device. Thread-safe:
// no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::train {

/// For rows x classes of scores and their labels: two float64, the numbers of labels with the highest score
/// and with one of the five highest. Ties and NaN count as in count_correct(), but a label whose own score is
/// NaN is never among them. Throws libtorch's exceptions.
at::Tensor correct_on_device(const at::Tensor& scores, const at::Tensor& labels);

}  // namespace stoker::train
