// Everything a training leaves in its run folder: where it is (beacon), a row per step and epoch, which
// samples each step took, events. Outside a run all of it is swallowed. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "job/job.h"
#include "record/beacon.h"
#include "record/events.h"
#include "record/metrics.h"
#include "record/receipts.h"
#include "record/run_events.h"
#include "record/trace/trace.h"
#include "torch/trainer/environment.h"

namespace stoker::torch {

/// One optimizer step of this rank. Losses are means over its samples, accuracies parts of them.
struct StepRow {
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t step = 0;   ///< optimizer steps done, this one included
  std::int64_t samples = 0;
  double loss = 0, top1 = 0, top5 = 0, lr = 0;
  double data_s = 0, forward_s = 0, backward_s = 0, communication_s = 0, optimizer_s = 0, checkpoint_s = 0;
  double step_s = 0;  ///< all of it, the rest included
};

/// One epoch over all ranks. NaN: not validated.
struct EpochRow {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  double train_loss = 0, train_top1 = 0;
  double val_loss = 0, val_top1 = 0, val_top5 = 0;
  double seconds = 0;        ///< with validation
  double samples_per_s = 0;  ///< of training
  double validation_s = 0;
};

class Recorder {
 public:
  static Result<Recorder> open(const RankEnvironment& environment, const job::RecordOptions& options);

  void enter(record::Phase phase);
  void at(std::int64_t epoch, std::int64_t step);

  Status step(const StepRow& row);
  Status epoch(const EpochRow& row);
  /// Step `row` took these samples.
  Status receipt(const StepRow& row, std::span<const std::uint64_t> samples);
  /// Rank 0 only: other ranks' events are swallowed.
  Status saved(const record::CheckpointSaved& event);
  Status resumed(const record::Resumed& event);
  /// Where exchanges are traced, too; null without record.trace.
  const std::shared_ptr<record::Trace>& trace() const { return trace_; }
  /// Ends the trace; the error of one that could not be written.
  Status finish_trace();

 private:
  record::Beacon beacon_;
  record::MetricWriter steps_;
  record::MetricWriter epochs_;
  record::ReceiptWriter receipts_;
  record::EventWriter events_;
  std::shared_ptr<record::Trace> trace_;  ///< shared with the group's ledger
};

}  // namespace stoker::torch
