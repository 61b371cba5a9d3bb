// From the job's words to what the trainer is made of. No libtorch tensors. Pure functions.
#pragma once

#include "base/status.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "job/job.h"
#include "torch/models/model.h"
#include "torch/optim/schedule.h"
#include "torch/optim/sgd.h"
#include "torch/process_group.h"
#include "torch/trainer/environment.h"

namespace stoker::torch {

Rendezvous rendezvous(const RankEnvironment& environment, const job::Timeouts& timeouts);

/// The dataset of that name, as `data:` of the job and the rank's environment say.
Result<data::Dataset> open_dataset(const job::Job& job, const RankEnvironment& environment,
                                   const std::string& name);

/// Every rank takes the same number of samples, in PyTorch's order: the first ones come twice if they do not
/// divide.
data::LoaderOptions training_loader(const job::TrainOptions& train, const RankEnvironment& environment);
/// Every sample exactly once over all ranks, in the dataset's order, cut from the middle.
data::LoaderOptions validation_loader(const job::TrainOptions& train, const RankEnvironment& environment);

/// The loader's next batch, empty at the end of the epoch. Waits for `limit`; a Timeout names timeouts.data.
Result<std::optional<data::Batch>> next_batch(data::Loader& loader, Duration limit);

/// As many classes as `train.classes` says, else as the dataset has. Invalid when a label of either dataset
/// does not fit: "train.classes: 10 is too few: labels of 'val' go up to 11".
struct NamedDataset {
  std::string name;
  const data::Dataset* dataset = nullptr;
};
Result<std::int64_t> class_count(const job::TrainOptions& train, const std::vector<NamedDataset>& datasets);

ModelSpec model_spec(const job::TrainOptions& train, std::int64_t classes);
SgdOptions sgd_options(const job::OptimizerOptions& optimizer);

/// The rates of every step of a training.
class RatePlan {
 public:
  RatePlan(const job::TrainOptions& train, std::int64_t total_steps);
  /// For optimizer step `index`, from 0; what lies behind the plan's end uses its last step's.
  Rates at(std::int64_t index) const;

 private:
  job::ScheduleOptions schedule_;
  job::OptimizerOptions optimizer_;
  OneCycle one_cycle_;
};

}  // namespace stoker::torch
