// Sets up a training on one rank, up to the rendezvous: data, model, checkpoint, process group. Used by
// Training. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "base/stopwatch.h"
#include "job/job.h"
#include "stoker/data_parallel.h"
#include "stoker/dataset.h"
#include "stoker/loader.h"
#include "stoker/model.h"
#include "stoker/process_group.h"
#include "stoker/status.h"
#include "train/device/stream.h"
#include "train/trainer/checkpoint_manager.h"
#include "train/trainer/environment.h"
#include "train/trainer/learn/batch_tensors.h"
#include "train/trainer/learn/batch_upload.h"
#include "train/trainer/learn/learner.h"
#include "train/trainer/learn/rate_plan.h"
#include "train/trainer/report/recorder.h"
#include "train/trainer/setup/datasets.h"
#include "train/trainer/trainer_log.h"

namespace stoker::train {

/// The parts of a training. After set_up() all of them but `validation_data` are set. Destroyed from last to
/// first: later members use earlier ones.
struct Parts {
  const Stopwatch begun;              ///< start of the setup
  at::Device device{at::kCPU};        ///< of the model
  std::optional<StreamScope> stream;  ///< on a GPU: the stream of all steps, which is not the default one
  Recorder recorder;
  CheckpointManager checkpoint_manager;
  std::optional<dataset::Dataset> training_data;
  std::optional<dataset::Dataset> validation_data;  ///< empty: no validation
  std::unique_ptr<ProcessGroup> group;
  std::unique_ptr<Model> model;
  BatchForm form;
  BatchPlace place;
  std::optional<Learner> learner;
  std::unique_ptr<BatchUploader> uploader;
  std::unique_ptr<DataParallel> parallel;
  std::unique_ptr<loader::Loader> loader;
  std::optional<RatePlan> rates;
  /// A number of rank 0 that every forward pass broadcasts with the batch-norm buffers.
  at::Tensor control_flags;
  ResumePosition position;  ///< start position: after the checkpoint's step, with its sums on rank 0 only
};

/// Optimizer steps of `batches` batches (train.accumulate).
std::int64_t steps_of(const job::TrainOptions& train, std::uint64_t batches);

/// Opens data, builds the model or loads the checkpoint, and connects to the peers. Collective. REQUIRES:
/// job.train. `log` must outlive the result.
Result<std::unique_ptr<Parts>> set_up(const job::Job& job, const RankEnvironment& environment,
                                      TrainerLog& log);

}  // namespace stoker::train
