// `stoker-train --find-batch`: trains a few steps with 2, 4, 8, ... samples a step, each in a process of its
// own that may fail, and says which batch fits into memory and which is fastest. What is measured is the
// training itself: its data, its threads, its memory. No libtorch. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/text.h"
#include "job/job.h"
#include "torch/trainer/training.h"

namespace stoker::torch {

/// What one rank can have.
struct BatchLimits {
  ByteCount memory{0};             ///< of the node's, shared out evenly
  std::uint32_t ranks = 1;         ///< that share it
  std::uint64_t samples = 0;       ///< of the training data, for one rank
  std::uint32_t largest = 65'536;  ///< that a job may ask for
};

/// One batch that was tried.
struct BatchTrial {
  std::uint32_t batch = 0;
  double step_s = 0;  ///< mean, without the first steps
  double samples_per_s = 0;
  ByteCount memory{0};  ///< the process at its largest
  std::string failed;   ///< why it has no figures; empty: it has
};

/// What follows from the trials so far, in ascending order.
struct BatchVerdict {
  std::optional<std::uint32_t> next;  ///< to be tried; nothing: enough is known
  std::string why;                    ///< then: why no larger one is
  std::uint32_t fastest = 0;          ///< the least that comes within a twentieth of the best; 0: none worked
  std::uint64_t fits = 0;             ///< about what fits into memory, by what the trials took; 0: not known
};
BatchVerdict judge_batches(std::span<const BatchTrial> trials, const BatchLimits& limits);

/// How to start a trial.
struct BatchSearch {
  Path job;                      ///< the job file
  std::vector<std::string> set;  ///< as for --set
};
/// Tries until judge_batches() has enough, and tells `voice` a line for each trial and the answer. Invalid
/// when not even the least batch works. Blocks for seconds to minutes.
Status search_batch(const BatchSearch& search, const job::Job& job, Voice& voice);

}  // namespace stoker::torch
