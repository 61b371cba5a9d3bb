// One pass over the validation data, each sample once over all ranks. Used by the training loop.
#pragma once

#include <functional>

#include "job/job.h"
#include "stoker/dataset.h"
#include "stoker/loader.h"
#include "stoker/model.h"
#include "stoker/process_group.h"
#include "stoker/status.h"
#include "stoker/time.h"
#include "train/trainer/learn/batch_tensors.h"

namespace stoker::train {

/// Over all samples of all ranks; the same on every rank.
struct Scores {
  double loss = 0, top1 = 0, top5 = 0;
  std::int64_t samples = 0;
  bool interrupted = false;  ///< a rank has to stop: the metrics are invalid
};

struct ValidationOptions {
  loader::LoaderOptions loader;
  BatchForm form;
  at::Device device{at::kCPU};  ///< of the model
  job::Precision precision = job::Precision::fp32;
  Duration batch_timeout{0};               ///< timeout for a batch
  std::function<bool()> should_interrupt;  ///< checked between batches
};

/// Evaluates the model on `dataset`. Collective. Leaves the model in training mode.
Result<Scores> validate(ProcessGroup& group, Model& model, const dataset::Dataset& dataset,
                        const ValidationOptions& options);

}  // namespace stoker::train
