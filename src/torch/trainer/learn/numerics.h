// How numbers are computed: 16 bits where they are enough, operations that repeat themselves, TF32. Used by
// training and validation.
#pragma once

#include "base/status.h"
#include "job/job.h"
#include "torch/named_tensor.h"

namespace stoker::torch {

/// Applies what holds for the whole process: threads, train.deterministic, train.tf32.
void set_up_numerics(const job::TrainOptions& train);

/// Invalid, with the name of the first, when one of them holds a nan or an infinity.
Status check_finite(const NamedTensors& tensors);

/// While one lives, this thread's matrix products and convolutions compute in that precision, as under
/// torch.autocast. With fp32 it does nothing.
class Autocast {
 public:
  explicit Autocast(job::Precision precision);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool is_on_;
};

}  // namespace stoker::torch
