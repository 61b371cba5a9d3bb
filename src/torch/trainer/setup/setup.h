// Puts a training together on one rank, up to the meeting of all ranks: data, model, what the checkpoint
// holds, the process group. Used by Training. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "base/status.h"
#include "base/stopwatch.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "job/job.h"
#include "torch/data_parallel.h"
#include "torch/models/model.h"
#include "torch/process_group.h"
#include "torch/trainer/environment.h"
#include "torch/trainer/learn/batch_tensors.h"
#include "torch/trainer/learn/learner.h"
#include "torch/trainer/learn/rate_plan.h"
#include "torch/trainer/report/recorder.h"
#include "torch/trainer/report/voice.h"
#include "torch/trainer/saving.h"

namespace stoker::torch {

/// What a training is made of. All of it but `validation_data` is there once set_up() has returned. Destroyed
/// from the last member to the first: what stands above is used by what stands below.
struct Parts {
  const Stopwatch begun;  ///< since setting up began
  Recorder recorder;
  Saving saving;
  std::optional<data::Dataset> training_data;
  std::optional<data::Dataset> validation_data;  ///< empty: nothing is validated
  std::unique_ptr<ProcessGroup> group;
  std::unique_ptr<Model> model;
  BatchForm form;
  std::optional<Learner> learner;
  std::unique_ptr<DataParallel> parallel;
  std::unique_ptr<data::Loader> loader;
  std::optional<RatePlan> rates;
  /// One number of rank 0 that every forward pass sends to all ranks, with the batch-norm statistics.
  at::Tensor orders;
  Place place;  ///< where the training begins: behind the checkpoint's step, with its sums on rank 0 alone
};

/// How many optimizer steps `batches` batches make (train.accumulate).
std::int64_t steps_of(const job::TrainOptions& train, std::uint64_t batches);

/// Opens data, builds the model or reads the checkpoint, meets the other ranks. Collective. REQUIRES:
/// job.train. `voice` must outlive the parts.
Result<std::unique_ptr<Parts>> set_up(const job::Job& job, const RankEnvironment& environment, Voice& voice);

}  // namespace stoker::torch
