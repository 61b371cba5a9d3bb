// One pass over the validation data, each sample exactly once over all ranks. Used by the training loop.
#pragma once

#include <functional>

#include "base/status.h"
#include "base/time.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "job/job.h"
#include "torch/models/model.h"
#include "torch/process_group.h"
#include "torch/trainer/learn/batch_tensors.h"

namespace stoker::torch {

/// Over all samples of all ranks; the same on every rank.
struct Scores {
  double loss = 0, top1 = 0, top5 = 0;
  std::int64_t samples = 0;
  bool interrupted = false;  ///< some rank was asked to stop: the figures mean nothing
};

struct ValidationOptions {
  data::LoaderOptions loader;
  BatchForm form;
  job::Precision precision = job::Precision::fp32;
  Duration patience{0};                    ///< how long a batch may take to come
  std::function<bool()> should_interrupt;  ///< asked between batches
};

/// Evaluates the model on `dataset`. Collective. Leaves the model in training mode.
Result<Scores> validate(ProcessGroup& group, Model& model, const data::Dataset& dataset,
                        const ValidationOptions& options);

}  // namespace stoker::torch
