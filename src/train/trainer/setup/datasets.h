// The job's datasets for the trainer: loader options, class count and column count. No libtorch. Thread-safe:
// no state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "stoker/dataset.h"
#include "stoker/loader.h"
#include "stoker/status.h"
#include "stoker/time.h"
#include "train/trainer/environment.h"

namespace stoker::train {

/// Opens a dataset from the job's `data:` and the rank's environment.
Result<dataset::Dataset> open_dataset(const job::Job& job, const RankEnvironment& environment,
                                      const std::string& name);

/// Where batches are wanted.
struct BatchPlace {
  bool is_gpu = false;                                ///< images may then have the type of train.precision
  std::shared_ptr<loader::BatchAllocator> allocator;  ///< null: the heap
};

/// All ranks have the same number of samples, in the order of train.shuffle: the first samples repeat if the
/// number is not a multiple.
loader::LoaderOptions training_loader(const job::TrainOptions& train, const RankEnvironment& environment,
                                      const BatchPlace& place);
/// Every sample once over all ranks, in stored order, center-cropped.
loader::LoaderOptions validation_loader(const job::TrainOptions& train, const RankEnvironment& environment,
                                        const BatchPlace& place);

/// The loader's next batch, empty at the end of the epoch. Waits for `limit`; a Timeout names timeouts.data.
Result<std::optional<loader::Batch>> next_batch(loader::Loader& loader, Duration limit);

/// A dataset and its name in the job.
struct NamedDataset {
  std::string name;
  const dataset::Dataset* dataset = nullptr;
};
/// `train.classes`, or the number of classes of all datasets. Invalid if a label is out of range,
/// "train.classes: 10 is too few: labels of 'val' go up to 11", or if datasets name a class differently.
Result<std::int64_t> class_count(const job::TrainOptions& train, const std::vector<NamedDataset>& datasets);

/// Numbers per sample for the model `mlp`: the number of train.mlp.columns, or the size of the first array. 0
/// for other models.
Result<std::int64_t> column_count(const job::TrainOptions& train, const dataset::Dataset& dataset);

}  // namespace stoker::train
