// Precision, determinism and TF32. Used by training and validation.
#pragma once

#include "job/job.h"
#include "stoker/model_state.h"
#include "stoker/status.h"

namespace stoker::train {

/// Applies process-wide settings: threads, train.deterministic, train.tf32. Call it before a GPU is used.
void configure_numerics(const job::TrainOptions& train);

/// Invalid with the name of the first tensor that contains NaN or infinity.
Status check_finite(const NamedTensors& tensors);

/// While it exists, matrix products and convolutions of this thread use this precision, as under
/// torch.autocast. No effect with fp32.
class Autocast {
 public:
  Autocast(job::Precision precision, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool is_on_;
  const at::DeviceType device_;
};

}  // namespace stoker::train
