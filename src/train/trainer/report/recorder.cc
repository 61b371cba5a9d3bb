#include "train/trainer/report/recorder.h"

#include <iterator>
#include <vector>

#include "net/port.h"
#include "record/run_folder.h"
#include "stoker/time.h"

namespace stoker::train {

namespace {

int number_of(const Path& attempt) {
  std::int64_t number = 0;
  return parse_number(attempt.filename().string(), &number) ? static_cast<int>(number) : 0;
}

}  // namespace

Result<Recorder> Recorder::open(const RankEnvironment& environment, const job::RecordOptions& options) {
  Recorder recorder;
  if (environment.attempt.empty()) return recorder;
  const int rank = environment.rank.value;
  const record::Attempt files(environment.attempt, number_of(environment.attempt));
  STOKER_ASSIGN_OR_RETURN(beacon, record::Beacon::create(files.beacon(rank), rank));
  recorder.beacon_ = std::move(beacon);
  std::vector<Path> synced;
  if (options.metrics) {
    STOKER_ASSIGN_OR_RETURN(steps, record::MetricWriter::create(files.metrics(rank), record::kStepColumns));
    recorder.steps_ = std::move(steps);
    synced.push_back(files.metrics(rank));
    if (rank == 0) {
      STOKER_ASSIGN_OR_RETURN(epochs, record::MetricWriter::create(files.epochs(), record::kEpochColumns));
      recorder.epochs_ = std::move(epochs);
      synced.push_back(files.epochs());
    }
  }
  if (options.receipts) {
    STOKER_ASSIGN_OR_RETURN(receipts, record::ReceiptWriter::create(files.receipts(rank)));
    recorder.receipts_ = std::move(receipts);
    synced.push_back(files.receipts(rank));
  }
  if (options.trace > 0) {
    STOKER_ASSIGN_OR_RETURN(trace,
                            record::Trace::create(files.trace(rank), rank, net::host_name(), options.trace));
    recorder.trace_ = std::move(trace);
  }
  if (rank == 0) {
    STOKER_ASSIGN_OR_RETURN(events, record::EventWriter::open(files.rank_events(rank)));
    recorder.events_ = std::move(events);
    synced.push_back(files.rank_events(rank));
  }
  if (!synced.empty()) recorder.sync_ = std::make_unique<record::BackgroundSync>(std::move(synced));
  return recorder;
}

void Recorder::at(std::int64_t epoch, std::int64_t step) {
  beacon_.at(static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(step));
  if (trace_) trace_->at(static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(step));
}

void Recorder::enter(record::Phase phase) {
  beacon_.enter(phase);
  if (trace_) trace_->enter(phase);
}

void Recorder::sync_later() {
  if (sync_) sync_->request();
}

// A slow disk delays the end of the training no longer.
Status Recorder::finish() {
  sync_later();
  Status synced = sync_ ? sync_->wait(Deadline::after(std::chrono::seconds(2))) : Status();
  if (trace_) {
    if (Status traced = trace_->finish(); !traced.ok()) return std::move(traced).with_context("record.trace");
  }
  return synced.code() == Code::timeout ? Status() : std::move(synced).with_context("record");
}

Status Recorder::step(const StepRow& row) {
  const double values[] = {unix_seconds(RealClock().wall()),
                           static_cast<double>(row.epoch),
                           static_cast<double>(row.step),
                           static_cast<double>(row.samples),
                           row.loss,
                           row.top1,
                           row.top5,
                           row.lr,
                           row.data_s,
                           row.forward_s,
                           row.backward_s,
                           row.communication_s,
                           row.optimizer_s,
                           row.checkpoint_s,
                           row.step_s};
  static_assert(std::size(values) == std::size(record::kStepColumns));
  return steps_.append(values);
}

Status Recorder::epoch(const EpochRow& row) {
  const double values[] = {static_cast<double>(row.epoch),
                           static_cast<double>(row.step),
                           row.train_loss,
                           row.train_top1,
                           row.val_loss,
                           row.val_top1,
                           row.val_top5,
                           row.seconds,
                           row.samples_per_s,
                           row.validation_s};
  static_assert(std::size(values) == std::size(record::kEpochColumns));
  return epochs_.append(values);
}

Status Recorder::receipt(const StepRow& row, std::span<const std::uint64_t> samples) {
  return receipts_.append(static_cast<std::uint32_t>(row.epoch), static_cast<std::uint32_t>(row.step),
                          samples);
}

Status Recorder::saved(const record::CheckpointSaved& event) { return write_event(events_, event); }
Status Recorder::resumed(const record::Resumed& event) { return write_event(events_, event); }

}  // namespace stoker::train
