// The job's datasets as the trainer reads them: which batches a rank takes of them, what is done to a sample,
// how many classes and columns there are. No libtorch. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "job/job.h"
#include "torch/trainer/environment.h"

namespace stoker::torch {

/// The dataset of that name, as `data:` of the job and the rank's environment say.
Result<data::Dataset> open_dataset(const job::Job& job, const RankEnvironment& environment,
                                   const std::string& name);

/// Every rank takes the same number of samples, in the order of train.shuffle: the first ones come twice if
/// they do not divide.
data::LoaderOptions training_loader(const job::TrainOptions& train, const RankEnvironment& environment);
/// Every sample exactly once over all ranks, in the dataset's order, cut from the middle.
data::LoaderOptions validation_loader(const job::TrainOptions& train, const RankEnvironment& environment);

/// The loader's next batch, empty at the end of the epoch. Waits for `limit`; a Timeout names timeouts.data.
Result<std::optional<data::Batch>> next_batch(data::Loader& loader, Duration limit);

/// A dataset and the job's name of it.
struct NamedDataset {
  std::string name;
  const data::Dataset* dataset = nullptr;
};
/// As many classes as `train.classes` says, else as the datasets have together. Invalid when a label of one
/// of them is no class or does not fit, "train.classes: 10 is too few: labels of 'val' go up to 11", and when
/// a class has another name in one than in the other.
Result<std::int64_t> class_count(const job::TrainOptions& train, const std::vector<NamedDataset>& datasets);

/// How many numbers a sample has for the model `mlp`: as many as train.mlp.columns, else as the first array.
/// 0 for other models.
Result<std::int64_t> column_count(const job::TrainOptions& train, const data::Dataset& dataset);

}  // namespace stoker::torch
