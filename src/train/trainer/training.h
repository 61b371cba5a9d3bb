// The built-in trainer: one rank of a data parallel training, from the job to its end. Used by train_main.cc.
// One object belongs to one thread.
#pragma once

#include <memory>

#include "job/job.h"
#include "stoker/status.h"
#include "train/trainer/environment.h"
#include "train/trainer/stop.h"
#include "train/trainer/trainer_log.h"

namespace stoker::train {

enum class TrainingOutcome {
  finished,         ///< all epochs, or `train.steps`
  stopped_saved,    ///< on request or before a deadline, after a checkpoint
  stopped_unsaved,  ///< the same without a checkpoint folder
};

class Training {
 public:
  /// Opens data, builds the model or loads the checkpoint, and connects to the peers. Collective. REQUIRES:
  /// job.train. `signals` and `log` must outlive it.
  static Result<std::unique_ptr<Training>> prepare(const job::Job& job, const RankEnvironment& environment,
                                                   const StopSignals& signals, TrainerLog& log);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Trains to the end. Collective. If it succeeds, the last checkpoint is on disk.
  Result<TrainingOutcome> run();
  /// Call it after run() failed with `why`: blocks until the step in flight is on disk, at most
  /// `timeouts.checkpoint`, so that the training can resume from it. Returns at once if a peer has failed.
  void flush_pending_checkpoint(const Status& why);

 private:
  class Loop;
  explicit Training(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace stoker::train
