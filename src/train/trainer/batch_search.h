// `stoker-train --find-batch`: runs short trainings with 2, 4, 8, ... samples per step, each in a separate
// process, and reports which batch size fits into memory and which is fastest. Trials use the data, threads
// and memory of the real training. No libtorch. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "job/job.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/text.h"
#include "train/trainer/training.h"

namespace stoker::train {

/// Resources of one rank.
struct BatchLimits {
  ByteCount memory{0};             ///< share of the node's memory, or of the GPU's
  std::uint32_t ranks = 1;         ///< ranks that share it
  std::uint64_t samples = 0;       ///< training samples per rank
  std::uint32_t largest = 65'536;  ///< maximum of train.batch
};

/// One trial.
struct BatchTrial {
  std::uint32_t batch = 0;
  double step_s = 0;  ///< mean, without the first steps
  double samples_per_s = 0;
  ByteCount memory{0};  ///< peak memory of the process, or on its GPU
  std::string failed;   ///< error; empty: successful
};

/// Recommendation from the trials so far, in ascending order.
struct BatchRecommendation {
  std::optional<std::uint32_t> next;  ///< next batch size to try; empty: finished
  std::string why;                    ///< why larger ones are not tried
  std::uint32_t fastest = 0;          ///< smallest size within 5 % of the best; 0: none succeeded
  std::uint64_t fits = 0;             ///< estimated size that fits into memory; 0: unknown
};
BatchRecommendation recommend_batch(std::span<const BatchTrial> trials, const BatchLimits& limits);

/// How to start a trial.
struct BatchSearch {
  Path job;
  std::vector<std::string> set;              ///< overrides, as for --set
  std::optional<ByteCount> gpu_memory = {};  ///< free on the GPU of one rank; none: the model is on the CPU
};
/// Runs trials until recommend_batch() has finished, and logs a line per trial and the result. Invalid if
/// even the smallest batch fails. Blocks for seconds to minutes.
Status search_batch(const BatchSearch& search, const job::Job& job, TrainerLog& log);

}  // namespace stoker::train
