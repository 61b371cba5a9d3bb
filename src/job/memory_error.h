// Out of memory, on a GPU or in libtorch's allocator for CPUs, in terms of a training's settings. Used by
// room train. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "job/train_options.h"
#include "stoker/status.h"

namespace stoker::job {

/// Whether libtorch's message is about memory.
bool is_out_of_memory(std::string_view error);

/// The facts of such a message: "2.00 GiB more requested, 1.20 GiB of 79.15 GiB free"; "" if it has none.
std::string memory_facts(std::string_view error);

/// A smaller `train.batch` with the `train.accumulate` that keeps the samples of an optimizer step. The batch
/// is divided by its smallest divisor; if nothing remains, by two, and the step gets smaller, too.
struct SmallerBatch {
  std::uint32_t batch = 0;
  std::uint32_t accumulate = 0;
  bool keeps_step = false;  ///< whether a step has as many samples as before
};
SmallerBatch smaller_batch(std::uint32_t batch, std::uint32_t accumulate);

/// `error` of a pass over one batch on `device` ("cuda:0", "cpu") as NoSpace with the batch and what to
/// change. `place`: "epoch 1, step 7".
Status step_memory_error(std::string_view place, std::string_view device, const TrainOptions& train,
                         std::string_view error);

/// The same for a validation.
Status validation_memory_error(std::string_view place, std::string_view device, const TrainOptions& train,
                               std::string_view error);

/// The same for the model and the optimizer's state, before the first step: no batch would fit.
Status model_memory_error(std::string_view device, std::string_view error);

}  // namespace stoker::job
