// Records of a training in its run folder: beacon, a row per step and epoch, sample receipts, events. Outside
// a run it records nothing. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "job/job.h"
#include "record/background_sync.h"
#include "record/beacon.h"
#include "record/events.h"
#include "record/metrics.h"
#include "record/receipts.h"
#include "record/run_events.h"
#include "record/trace/trace.h"
#include "stoker/status.h"
#include "train/trainer/environment.h"

namespace stoker::train {

/// One optimizer step of this rank. Losses are means over its samples, accuracies are shares.
struct StepRow {
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t step = 0;   ///< optimizer steps done, including this one
  std::int64_t samples = 0;
  double loss = 0, top1 = 0, top5 = 0, lr = 0;
  double data_s = 0, forward_s = 0, backward_s = 0, communication_s = 0, optimizer_s = 0, checkpoint_s = 0;
  double step_s = 0;  ///< total time of the step
};

/// One epoch over all ranks. NaN: not validated.
struct EpochRow {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  double train_loss = 0, train_top1 = 0;
  double val_loss = 0, val_top1 = 0, val_top5 = 0;
  double seconds = 0;        ///< including validation
  double samples_per_s = 0;  ///< training only
  double validation_s = 0;
};

class Recorder {
 public:
  static Result<Recorder> open(const RankEnvironment& environment, const job::RecordOptions& options);

  void enter(record::Phase phase);
  void at(std::int64_t epoch, std::int64_t step);

  Status step(const StepRow& row);
  Status epoch(const EpochRow& row);
  /// Records the samples of step `row`.
  Status receipt(const StepRow& row, std::span<const std::uint64_t> samples);
  /// On rank 0 only; other ranks ignore events.
  Status saved(const record::CheckpointSaved& event);
  Status resumed(const record::Resumed& event);
  /// Trace for collectives; null without record.trace.
  const std::shared_ptr<record::Trace>& trace() const { return trace_; }
  /// Has the rows and events so far survive a power failure, and returns at once. For checkpoints.
  void sync_later();
  /// Ends the trace, and waits up to two seconds for the disk. Returns the first error.
  Status finish();

 private:
  record::Beacon beacon_;
  record::MetricWriter steps_;
  record::MetricWriter epochs_;
  record::ReceiptWriter receipts_;
  record::EventWriter events_;
  std::shared_ptr<record::Trace> trace_;  ///< shared with the group's collective recorder
  std::unique_ptr<record::BackgroundSync> sync_;
};

}  // namespace stoker::train
