// The progress line of rank 0, rewritten on a terminal and repeated elsewhere. Values and text only; no
// libtorch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/time.h"

namespace stoker::train {

struct StepRow;

/// Sums over consecutive steps of this rank.
struct StepTotals {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double loss_sum = 0;  ///< over samples
  std::int64_t top1 = 0;
  double seconds = 0;
  double data_s = 0;
  double communication_s = 0;

  void add(const StepRow& row);
};

struct ProgressStats {
  std::int64_t epoch = 0, epochs = 0;  ///< epoch counts from 1 here
  std::int64_t step = 0, steps = 0;    ///< within the epoch, from 1
  int world_size = 1;
  std::string_view unit = "img";  ///< name of a sample
  double seconds_left = 0;
  StepTotals totals;  ///< since the last line
};

/// "epoch 1/90   step 390/390   loss 6.41   top-1 3.1 %   1 204 img/s   data 0.4 %   comm 6 %   ETA 2 h 11
/// min"
std::string progress_line(const ProgressStats& facts);

/// "GPU memory: 12.250 GiB at most", and its number of bytes from a training's output; 0 without such a line.
std::string gpu_memory_line(std::uint64_t bytes);
std::uint64_t gpu_memory_in(std::string_view output);

struct EpochStats {
  std::int64_t epoch = 0, epochs = 0;
  double seconds = 0;
  double train_loss = 0, train_top1 = 0;
  bool validated = false;
  double val_loss = 0, val_top1 = 0, val_top5 = 0;
};

/// "epoch 1/90   12.4 s   loss 6.41   top-1 3.1 %   validation: loss 6.02   top-1 4.8 %   top-5 13.7 %"
std::string epoch_line(const EpochStats& facts);

}  // namespace stoker::train
