// The built-in trainer: one rank of a data-parallel training, from the job to its end. Used by train_main.cc.
// One object belongs to one thread.
#pragma once

#include <memory>

#include "base/status.h"
#include "job/job.h"
#include "torch/trainer/environment.h"
#include "torch/trainer/report/voice.h"
#include "torch/trainer/stop.h"

namespace stoker::torch {

enum class Ending {
  finished,         ///< all epochs, or `train.steps`
  stopped_saved,    ///< on request or for lack of time, after a checkpoint
  stopped_unsaved,  ///< the same, but the job has no checkpoint folder
};

class Training {
 public:
  /// Opens data, meets the other ranks, builds the model or reads the checkpoint. Collective. REQUIRES:
  /// job.train. `signals` and `voice` must outlive it.
  static Result<std::unique_ptr<Training>> prepare(const job::Job& job, const RankEnvironment& environment,
                                                   const StopSignals& signals, Voice& voice);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Trains to the end. Collective. When it returns without an error, the last checkpoint is on disk.
  Result<Ending> run();
  /// After run() has ended by `why`: blocks until the checkpoint that all ranks have handed over is on disk,
  /// at most `timeouts.checkpoint`; the training can be gone on from there. Returns at once where another
  /// rank is gone.
  void keep_what_is_handed_over(const Status& why);

 private:
  class Loop;
  explicit Training(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace stoker::torch
