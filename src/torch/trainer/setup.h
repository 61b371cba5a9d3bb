// From the job's words to what the trainer is made of. Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "job/job.h"
#include "torch/data_parallel.h"
#include "torch/models/model.h"
#include "torch/optim/optimizer.h"
#include "torch/process_group.h"
#include "torch/trainer/environment.h"

namespace stoker::torch {

Rendezvous rendezvous(const RankEnvironment& environment, const job::Timeouts& timeouts);
/// With the job's choice of how ranks talk. REQUIRES: job.train.
Rendezvous rendezvous(const RankEnvironment& environment, const job::Job& job);

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

/// How many numbers a sample has for the model `mlp`: as many as train.mlp.columns, else as the first array.
/// 0 for other models.
Result<std::int64_t> column_count(const job::TrainOptions& train, const data::Dataset& dataset);

/// `columns` as column_count says.
ModelSpec model_spec(const job::TrainOptions& train, std::int64_t classes, std::int64_t columns);
/// Shares the parameters with the model.
std::unique_ptr<Optimizer> make_optimizer(const NamedTensors& parameters,
                                          const job::OptimizerOptions& options);

/// How gradients of that model are exchanged.
DataParallelOptions parallel_options(const job::TrainOptions& train, const Model& model);

/// What `train` asks for that makes no difference here, in one line each.
std::vector<std::string> without_effect(const job::TrainOptions& train, WorldSize world_size);

}  // namespace stoker::torch
