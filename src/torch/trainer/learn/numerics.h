// How numbers are computed: 16 bits where they are enough, operations that repeat themselves, TF32. Used by
// training and validation.
#pragma once

#include "job/job.h"

namespace stoker::torch {

/// Applies what holds for the whole process: threads, train.deterministic, train.tf32.
void set_up_numerics(const job::TrainOptions& train);

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
